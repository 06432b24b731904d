//! The device of a rank, or its devices if it has several. For a GPU, libtorch's CUDA libraries, and the libnccl
//! that the plan names, are opened here, before any other call into libtorch.

use std::path::Path;

use yolo_base::env::YOLO_LIBTORCH_LIB;
use yolo_base::format::count;
use yolo_plan::device::{Device, cuda_numbers};
use yolo_plan::run::Ranks;

use super::context::Devices;
use crate::error::TrainError;

/// The devices of rank `rank`.
///
/// # Errors
/// When the plan has no device for this rank, or a GPU cannot be used.
pub(super) fn open(ranks: &Ranks, rank: usize) -> Result<Devices, TrainError> {
    let planned = planned(ranks, rank);
    if planned.is_empty() {
        let here = count(ranks.devices.len(), "rank");
        return Err(TrainError::new(format!(
            "the plan, which has {here} from number {}, has no rank {rank}",
            ranks.first
        )));
    }
    let numbers = cuda_numbers(&planned);
    if let Some(last) = numbers.iter().flatten().max() {
        // libtorch_cuda takes the libnccl that is there before it loads its own.
        if let Some(nccl) = &ranks.nccl {
            tch_distributed::preload_nccl(nccl)?;
        }
        open_cuda(&planned, last + 1)?;
    }
    // The launcher makes only the GPUs of this rank visible, so CUDA numbers them from 0.
    Ok(Devices {
        all: numbers.into_iter().map(|number| number.map_or(tch::Device::Cpu, tch::Device::Cuda)).collect(),
        names: planned.into_iter().map(name).collect(),
        memory: ranks.device_memory.clone(),
    })
}

/// Invariant: no CUDA query comes before this one. libtorch would remember its answer, that there
/// is no CUDA.
fn open_cuda(planned: &[Device], gpus: usize) -> Result<(), TrainError> {
    let names: Vec<String> = planned.iter().map(Device::to_string).collect();
    let planned = yolo_base::format::list(&names);
    let folder = std::env::var_os(YOLO_LIBTORCH_LIB).ok_or_else(|| {
        TrainError::new(format!("{YOLO_LIBTORCH_LIB} is not set, so libtorch_cuda.so cannot be found"))
            .with_hint("start the trainer through `yolo train`, which sets it")
    })?;
    let cuda = tch_train::cuda::open(Path::new(&folder)).map_err(|error| {
        TrainError::new(format!("{planned} needs libtorch with CUDA: {error}"))
            .with_hint("set LIBTORCH to a libtorch 2.11 with CUDA, or train with `--device cpu`")
    })?;
    if cuda.devices() >= gpus {
        return Ok(());
    }
    let found = match cuda.devices() {
        0 => "no CUDA device".to_owned(),
        some => format!("only {}", count(some, "CUDA device")),
    };
    Err(TrainError::new(format!("the plan uses {planned}, but libtorch finds {found}"))
        .with_hint("run `yolo doctor` to find out why, or train with `--device cpu`"))
}

fn planned(ranks: &Ranks, rank: usize) -> Vec<Device> {
    rank.checked_sub(ranks.first)
        .filter(|index| *index < ranks.devices.len())
        .map_or(Vec::new(), |index| ranks.devices_of(index))
}

/// The device as events name it: by its number on the machine, not among the devices that this rank sees.
fn name(device: Device) -> String {
    match device {
        Device::Cuda(index) => format!("cuda:{index}"),
        Device::Mig { .. } => device.to_string(),
        Device::Cpu => "cpu".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_the_devices_of_the_plan() {
        let ranks = |devices: &[Device], first: usize| -> Ranks {
            let plan = serde_json::json!({
                "devices": devices, "first": first, "world_size": 8, "backend": null, "threads": 1,
            });
            serde_json::from_value(plan).unwrap()
        };
        let gpus = [Device::Cuda(2), Device::Cuda(5)];
        assert_eq!(planned(&ranks(&gpus, 0), 1), [Device::Cuda(5)]);
        assert_eq!(planned(&ranks(&gpus, 4), 5), [Device::Cuda(5)]);
        assert_eq!((name(Device::Cuda(5)).as_str(), name(Device::Cpu).as_str()), ("cuda:5", "cpu"));
        let several =
            Ranks { further_devices: vec![Device::Cuda(5), Device::Cuda(2)], ..ranks(&gpus[..1], 0) };
        assert_eq!(planned(&several, 0), [2, 5, 2].map(Device::Cuda));
        let cpus = Ranks { further_devices: vec![Device::Cpu], ..ranks(&[Device::Cpu], 0) };
        let opened = open(&cpus, 0).unwrap();
        assert_eq!((opened.all.as_slice(), opened.name().as_str()), (&[tch::Device::Cpu; 2][..], "cpu,cpu"));
        let error = open(&ranks(&gpus, 4), 1).unwrap_err().to_string();
        assert_eq!(error, "the plan, which has 2 ranks from number 4, has no rank 1");
    }
}
