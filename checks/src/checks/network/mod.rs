//! Network and ports.

mod certificates;
mod efa;
mod firewall;
mod hostname;
mod infiniband;
mod interface_name;
mod interfaces;
mod internet;
mod one_subnet;
mod open_firewall;
mod packet_filter;
mod packet_rules;
mod plugin;
pub(in crate::checks) mod port;
pub(in crate::checks) mod proxy;
mod proxy_scheme;
mod ras;
mod roce;
mod roce_subnet;
mod sidecar;
mod slow_interface;

use super::Check;
pub(crate) use interface_name::{leads_out, reaches_others};
pub(crate) use interfaces::{contains, master};

pub(super) const CHECKS: &[&Check] = &[
    &port::CHECK,
    &hostname::CHECK,
    &interfaces::CHECK,
    &one_subnet::CHECK,
    &infiniband::CHECK,
    &efa::CHECK,
    &plugin::CHECK,
    &roce::CHECK,
    &sidecar::CHECK,
    &slow_interface::CHECK,
    &firewall::CHECK,
    &internet::CHECK,
    &certificates::CHECK,
    &proxy::CHECK,
    &proxy_scheme::CHECK,
    &ras::CHECK,
];
