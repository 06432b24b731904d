//! The environment of a rank: torchrun's variables, only its own devices visible, and the chosen libtorch
//! first on the library path.

use std::ffi::OsString;
use std::net::SocketAddr;

use yolo_base::env::{
    CUBLAS_WORKSPACE_CONFIG, CUDA_DEVICE_ORDER, CUDA_VISIBLE_DEVICES, GLIBC_TUNABLES, LOCAL_RANK,
    LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, OMP_NUM_THREADS, RANK, WORLD_SIZE, YOLO_CPUS,
    YOLO_LIBTORCH_LIB,
};
use yolo_plan::RunPlan;
use yolo_plan::device;

use super::Programs;

/// How glibc's malloc treats a rank's tensors. By default it returns every large block to the kernel
/// and takes fresh, zeroed pages of 4 KiB for the next one, while a training step on the CPU frees and
/// allocates the same gigabytes again and again. With blocks kept in huge pages, two epochs of BCCD
/// took 5 thousand page faults instead of 594 thousand and 44 s of CPU time instead of 52 s, for 85 MB
/// of memory that the process keeps. glibc before 2.35 and other C libraries ignore the variable.
const MALLOC_TUNABLES: &str = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824\
                               :glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864";

/// The memory with which the results of cuBLAS do not depend on which of its streams is first: eight buffers of 4 MB.
/// libtorch warns about each matrix product if it is to be deterministic and this is not set.
const CUBLAS_WORKSPACE: &str = ":4096:8";

/// The variables of the plan's rank with this index, in addition to those of this process.
pub(super) fn of_rank(
    plan: &RunPlan,
    index: usize,
    rendezvous: Option<SocketAddr>,
    programs: &Programs,
) -> Vec<(OsString, OsString)> {
    let mut set = programs.environment.clone();
    let mut put = |name: &str, value: OsString| set.push((name.into(), value));
    let text = |number: usize| OsString::from(number.to_string());
    put(RANK, text(plan.ranks.first + index));
    put(LOCAL_RANK, text(plan.ranks.first_here + index));
    put(WORLD_SIZE, text(plan.ranks.world_size));
    put(LOCAL_WORLD_SIZE, text(plan.ranks.on_this_machine()));
    if let Some(address) = rendezvous {
        put(MASTER_ADDR, address.ip().to_string().into());
        put(MASTER_PORT, address.port().to_string().into());
    }
    put(OMP_NUM_THREADS, text(plan.ranks.threads));
    if std::env::var_os(GLIBC_TUNABLES).is_none() {
        put(GLIBC_TUNABLES, MALLOC_TUNABLES.into());
    }
    if std::env::var_os(CUBLAS_WORKSPACE_CONFIG).is_none() {
        put(CUBLAS_WORKSPACE_CONFIG, CUBLAS_WORKSPACE.into());
    }
    for (name, value) in &plan.ranks.variables {
        if std::env::var_os(name).is_none() {
            put(name, value.into());
        }
    }
    if let Some(cpus) = plan.ranks.cpus.get(index) {
        put(YOLO_CPUS, cpus.into());
    }
    put(YOLO_LIBTORCH_LIB, programs.libtorch_lib.clone().into_os_string());
    // The numbers of --device are nvidia-smi's, which orders GPUs by PCI bus and not by speed.
    put(CUDA_DEVICE_ORDER, "PCI_BUS_ID".into());
    // Invariant: a rank sees no device but its own, so it cannot use another rank's memory.
    put(CUDA_VISIBLE_DEVICES, device::visible(&plan.ranks.devices_of(index)).into());
    set
}
