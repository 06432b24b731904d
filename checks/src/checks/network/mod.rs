//! Network and ports.

mod certificates;
mod firewall;
mod hostname;
mod interface_name;
mod interfaces;
mod internet;
mod one_subnet;
pub(in crate::checks) mod port;
pub(in crate::checks) mod proxy;
mod proxy_scheme;
mod ras;

use super::Check;
pub(crate) use interface_name::leads_out;

pub(super) const CHECKS: &[&Check] = &[
    &port::CHECK,
    &hostname::CHECK,
    &interfaces::CHECK,
    &one_subnet::CHECK,
    &firewall::CHECK,
    &internet::CHECK,
    &certificates::CHECK,
    &proxy::CHECK,
    &proxy_scheme::CHECK,
    &ras::CHECK,
];
