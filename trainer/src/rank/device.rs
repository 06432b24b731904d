//! The device of a rank. For a GPU, libtorch's CUDA libraries, and the libnccl that the plan names, are
//! opened here, before any other call into libtorch.

use std::path::Path;

use yolo_base::env::YOLO_LIBTORCH_LIB;
use yolo_base::format::count;
use yolo_plan::device::Device;
use yolo_plan::run::Ranks;

use crate::error::TrainError;

/// The device of rank `rank`.
///
/// # Errors
/// When the plan has no device for this rank, or the GPU cannot be used.
pub(super) fn open(ranks: &Ranks, rank: usize) -> Result<tch::Device, TrainError> {
    let planned = planned(ranks, rank).ok_or_else(|| {
        let here = count(ranks.devices.len(), "rank");
        TrainError::new(format!("the plan, which has {here} from number {}, has no rank {rank}", ranks.first))
    })?;
    match planned {
        Device::Cpu => Ok(tch::Device::Cpu),
        Device::Cuda(_) | Device::Mig { .. } => {
            // libtorch_cuda takes the libnccl that is there before it loads its own.
            if let Some(nccl) = &ranks.nccl {
                tch_distributed::preload_nccl(nccl)?;
            }
            open_cuda(planned)
        }
    }
}

/// Invariant: no CUDA query comes before this one. libtorch would remember its answer, that there
/// is no CUDA.
fn open_cuda(planned: Device) -> Result<tch::Device, TrainError> {
    let folder = std::env::var_os(YOLO_LIBTORCH_LIB).ok_or_else(|| {
        TrainError::new(format!("{YOLO_LIBTORCH_LIB} is not set, so libtorch_cuda.so cannot be found"))
            .with_hint("start the trainer through `yolo train`, which sets it")
    })?;
    let cuda = tch_train::cuda::open(Path::new(&folder)).map_err(|error| {
        TrainError::new(format!("{planned} needs libtorch with CUDA: {error}"))
            .with_hint("set LIBTORCH to a libtorch 2.11 with CUDA, or train with `--device cpu`")
    })?;
    if cuda.devices() == 0 {
        return Err(TrainError::new(format!("the plan uses {planned}, but libtorch finds no CUDA device"))
            .with_hint("run `yolo doctor` to find out why, or train with `--device cpu`"));
    }
    // The launcher makes only this rank's GPU visible, which is therefore CUDA device 0.
    Ok(tch::Device::Cuda(0))
}

fn planned(ranks: &Ranks, rank: usize) -> Option<Device> {
    ranks.devices.get(rank.checked_sub(ranks.first)?).copied()
}

/// The device as events name it: by its number on the machine, not among the devices that this rank sees.
pub(super) fn name(ranks: &Ranks, rank: usize) -> String {
    match planned(ranks, rank) {
        Some(Device::Cuda(index)) => format!("cuda:{index}"),
        Some(device @ Device::Mig { .. }) => device.to_string(),
        Some(Device::Cpu) | None => "cpu".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_by_its_number_on_the_machine() {
        let ranks = |devices: &[Device], first: usize| -> Ranks {
            let plan = serde_json::json!({
                "devices": devices, "first": first, "world_size": 8, "backend": null, "threads": 1,
            });
            serde_json::from_value(plan).unwrap()
        };
        let gpus = [Device::Cuda(2), Device::Cuda(5)];
        assert_eq!(name(&ranks(&gpus, 0), 1), "cuda:5");
        assert_eq!(name(&ranks(&gpus, 4), 5), "cuda:5");
        assert_eq!(name(&ranks(&[Device::Cpu], 0), 0), "cpu");
        let error = open(&ranks(&gpus, 4), 1).unwrap_err().to_string();
        assert_eq!(error, "the plan, which has 2 ranks from number 4, has no rank 1");
    }
}
