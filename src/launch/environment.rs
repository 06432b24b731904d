//! The environment of a rank: the variables that torchrun gives, one visible device, and the
//! libraries of one libtorch first.

use std::ffi::OsString;
use std::net::SocketAddr;

use yolo_plan::RunPlan;
use yolo_plan::device::Device;

use super::Programs;
use crate::setup::trainer_environment;

/// How glibc's malloc shall treat a rank's tensors. By default it gives every large one back to the
/// kernel and takes fresh, zeroed pages of 4 KiB for the next; a training step on the CPU frees and
/// takes the same gigabytes again and again. Kept and in huge pages, two epochs of BCCD took 5 thousand
/// page faults instead of 594 thousand and 44 s of processor time instead of 52, for 85 MB of memory
/// that stays with the process. glibc before 2.35 and other C libraries ignore the variable.
const MALLOC_TUNABLES: &str = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824\
                               :glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864";

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
    if std::env::var_os("GLIBC_TUNABLES").is_none() {
        put("GLIBC_TUNABLES", MALLOC_TUNABLES.into());
    }
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
