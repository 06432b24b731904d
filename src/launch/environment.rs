//! The environment of a rank: the variables that torchrun gives, one visible device, and the
//! libraries of one libtorch first.

use std::ffi::OsString;
use std::net::SocketAddr;

use yolo_plan::RunPlan;
use yolo_plan::device::Device;

use super::Programs;
use crate::setup::trainer_environment;

/// The variables of local rank `rank`, on top of those that this process has.
pub(super) fn of_rank(
    plan: &RunPlan,
    rank: usize,
    rendezvous: Option<SocketAddr>,
    programs: &Programs<'_>,
) -> Vec<(OsString, OsString)> {
    let mut set: Vec<(OsString, OsString)> = trainer_environment(programs.libtorch);
    let mut put = |name: &str, value: OsString| set.push((name.into(), value));
    let text = |number: usize| OsString::from(number.to_string());
    put("RANK", text(rank));
    put("LOCAL_RANK", text(rank));
    put("WORLD_SIZE", text(plan.ranks.world_size));
    put("LOCAL_WORLD_SIZE", text(plan.ranks.devices.len()));
    if let Some(address) = rendezvous {
        put("MASTER_ADDR", address.ip().to_string().into());
        put("MASTER_PORT", address.port().to_string().into());
    }
    put("OMP_NUM_THREADS", text(plan.ranks.threads));
    put("YOLO_LIBTORCH_LIB", programs.libtorch.lib_dir.clone().into_os_string());
    // The numbers of --device are nvidia-smi's, which counts by PCI bus and not by speed.
    put("CUDA_DEVICE_ORDER", "PCI_BUS_ID".into());
    // Each rank sees its own device alone: it can neither take another's memory nor count wrongly.
    match plan.ranks.devices.get(rank) {
        Some(Device::Cuda(index)) => put("CUDA_VISIBLE_DEVICES", text(*index)),
        _ => put("CUDA_VISIBLE_DEVICES", OsString::new()),
    }
    set
}
