//! The device of a rank. For a GPU, libtorch's CUDA libraries, and the libnccl that the plan names, are
//! opened here, before any other call into libtorch.

use std::path::Path;

use yolo_base::env::YOLO_LIBTORCH_LIB;
use yolo_plan::RunPlan;
use yolo_plan::device::Device;

use crate::error::TrainError;

/// The device of a local rank.
///
/// # Errors
/// When the plan has no device for this rank, or the GPU cannot be used.
pub(super) fn open(plan: &RunPlan, local_rank: usize) -> Result<tch::Device, TrainError> {
    let planned = plan.ranks.devices.get(local_rank).copied().ok_or_else(|| {
        TrainError::new(format!(
            "local rank {local_rank} has no device: the plan has {} for this machine",
            plan.ranks.devices.len()
        ))
    })?;
    match planned {
        Device::Cpu => Ok(tch::Device::Cpu),
        Device::Cuda(index) => {
            // libtorch_cuda takes the libnccl that is there before it loads its own.
            if let Some(nccl) = &plan.ranks.nccl {
                tch_distributed::preload_nccl(nccl)?;
            }
            open_cuda(index)
        }
    }
}

/// Invariant: no CUDA query comes before this one. libtorch would remember its answer, that there
/// is no CUDA.
fn open_cuda(index: usize) -> Result<tch::Device, TrainError> {
    let folder = std::env::var_os(YOLO_LIBTORCH_LIB).ok_or_else(|| {
        TrainError::new(format!("{YOLO_LIBTORCH_LIB} is not set, so libtorch_cuda.so cannot be found"))
            .with_hint("start the trainer through `yolo train`, which sets it")
    })?;
    let cuda = tch_train::cuda::open(Path::new(&folder)).map_err(|error| {
        TrainError::new(format!("GPU {index} needs libtorch with CUDA: {error}"))
            .with_hint("set LIBTORCH to a libtorch 2.11 with CUDA, or train with `--device cpu`")
    })?;
    if cuda.devices() == 0 {
        return Err(TrainError::new(format!("the plan uses GPU {index}, but libtorch finds no CUDA device"))
            .with_hint("run `yolo doctor` to find out why, or train with `--device cpu`"));
    }
    // The launcher makes only this rank's GPU visible, which is therefore CUDA device 0.
    Ok(tch::Device::Cuda(0))
}

/// The device as events name it.
pub(super) fn name(device: tch::Device) -> String {
    match device {
        tch::Device::Cuda(index) => format!("cuda:{index}"),
        _ => "cpu".to_owned(),
    }
}
