//! The driver and the GPUs.

mod acs;
mod compute_mode;
mod confidential;
mod device_files;
mod devices;
mod driver;
mod driver_unsuited;
mod dynamic_boost;
mod fabric;
mod forbidden;
mod gpu_direct;
mod hang_advice;
mod heat;
mod held_slow;
mod iommu;
mod job_unknown;
mod kernel_module;
mod lockdown;
mod lost;
mod lost_in_sleep;
mod lost_remedy;
mod memory_encryption;
mod memory_errors;
mod memory_taken;
mod merge;
mod mig;
mod mig_files;
mod mining;
mod mixed;
mod module_loading;
pub(in crate::checks) mod module_of_host;
mod mps;
mod no_card;
mod nvlink;
mod nvls;
mod oops;
mod outside_job;
pub(in crate::checks) mod pci;
mod pcie_link;
pub(in crate::checks) mod peer_access;
mod power_profile;
pub(in crate::checks) mod processes;
mod run_gpus;
mod screen_timeout;
mod suspended;
mod throttling;
mod uninitialized;
mod unloadable;
mod uvm_closed;
mod virtual_gpu;
mod visible_devices;
mod windows_host;
mod xid_before;

use super::Check;
pub(in crate::checks) use run_gpus::{chosen, is_native_linux, is_of_grace};
use run_gpus::{is_of_laptop, label, of_job, of_run, stops};

pub(super) const CHECKS: &[&Check] = &[
    &driver::CHECK,
    &device_files::CHECK,
    &devices::CHECK,
    &lost::CHECK,
    &xid_before::CHECK,
    &visible_devices::CHECK,
    &job_unknown::CHECK,
    &mixed::CHECK,
    &compute_mode::CHECK,
    &mps::CHECK,
    &fabric::CHECK,
    &confidential::CHECK,
    &mig::CHECK,
    &memory_taken::CHECK,
    &memory_errors::CHECK,
    &memory_encryption::CHECK,
    &virtual_gpu::CHECK,
    &throttling::CHECK,
    &held_slow::CHECK,
    &mining::CHECK,
    &dynamic_boost::CHECK,
    &pcie_link::CHECK,
    &peer_access::CHECK,
    &nvlink::CHECK,
    &nvls::CHECK,
];
