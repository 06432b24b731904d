//! How much memory training takes: the peak of a run so far, and, for `--batch -1`, what steps with batches of several
//! sizes need. The batches are random pixels with many targets, so nothing is loaded. A batch for which the memory does
//! not suffice ends the measurement, and not the rank.

use std::time::Duration;

use tch::{Device, Kind, Tensor};
use yolo_plan::auto_batch::{BatchMemory, MemoryOfBatch, SIZES};
use yolo_plan::run::TrainTask;

use super::steps::Steps;
use crate::error::TrainError;
use crate::model::{MOST_AHEAD, Model};
use crate::rank::context::Context;
use crate::training::{build_learner, multi_scale};

/// Targets per image: more than most images have, because each needs some memory in the loss.
const TARGETS: usize = 64;

/// Measures steps of `model`, with the batches of [`SIZES`] one after the other.
pub(super) fn measure(context: &Context, task: &TrainTask, model: Model) -> Result<BatchMemory, TrainError> {
    let side = match task.multi_scale {
        true => multi_scale::largest_side(task.image_size, model.largest_stride()),
        false => task.image_size,
    };
    let learner = build_learner(context, task, model, None)?;
    let mut steps = Steps::new(context, task, learner, Duration::ZERO)?;
    let mut measured = BatchMemory { batches: Vec::new(), ran_out_at: None, available: 0 };
    for images in SIZES {
        context.reporter.phase(&format!("measuring the memory of a batch of {images}"));
        let free = release(context.device)?;
        if measured.batches.is_empty() {
            measured.available =
                free.map_or(Ok(0), |free| Ok::<_, TrainError>(free + reserved(context.device)?))?;
        }
        match steps_on(&mut steps, context.device, images, side) {
            Ok(()) => {
                let bytes = peak_memory(context.device)?;
                measured.batches.push(MemoryOfBatch { images, bytes });
            }
            Err(error) if error.is_out_of_memory() => {
                measured.ran_out_at = Some(images);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(measured)
}

/// Makes steps on random pixels until all memory that they need is allocated.
fn steps_on(steps: &mut Steps, device: Device, images: usize, side: usize) -> Result<(), TrainError> {
    let shape = [images as i64, 3, side as i64, side as i64];
    // Training has the bytes of the batches ahead on the device too.
    let ahead = (0..MOST_AHEAD).map(|_| Tensor::f_zeros(shape, (Kind::Uint8, device)));
    let _ahead = ahead.collect::<Result<Vec<_>, _>>()?;
    let pixels = Tensor::f_rand(shape, (Kind::Float, device))?;
    steps.warm_up_on(pixels, targets(images))
}

/// Targets of the first class all over each image, of sizes that match anchors of all levels.
fn targets(images: usize) -> Vec<[f32; 6]> {
    let place = |index: usize| (index as f32 + 0.5) / TARGETS as f32;
    let target = |image: usize, index: usize| {
        let size = 0.02 + 0.5 * place(index);
        // The factor sends neighbors of the list to different rows.
        [image as f32, 0.0, place(index), place(index * 29 % TARGETS), size, size]
    };
    (0..images).flat_map(|image| (0..TARGETS).map(move |index| target(image, index))).collect()
}

/// Begins a new peak on a GPU, and returns the bytes that are free there; `None` on the CPU.
fn release(device: Device) -> Result<Option<u64>, TrainError> {
    match device {
        Device::Cuda(index) => Ok(Some(tch_train::release_memory(index)?)),
        _ => Ok(None),
    }
}

/// The bytes that this process has on a GPU.
fn reserved(device: Device) -> Result<u64, TrainError> {
    match device {
        Device::Cuda(index) => Ok(tch_train::reserved_memory(index)?),
        _ => Ok(0),
    }
}

/// The most memory that this rank had so far, in bytes: reserved on a GPU, resident on the CPU. 0 where the
/// system does not report it.
pub(super) fn peak_memory(device: Device) -> Result<u64, TrainError> {
    match device {
        Device::Cuda(index) => Ok(tch_train::peak_reserved_memory(index)?),
        _ => {
            let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
            Ok(peak_resident(&status).unwrap_or(0))
        }
    }
}

/// The peak of resident memory in `/proc/self/status`, in bytes.
fn peak_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_resident_memory_is_read() {
        assert_eq!(peak_resident("VmPeak:\t  900 kB\nVmHWM:\t  123456 kB\n"), Some(123_456 << 10));
        assert_eq!(peak_resident("VmRSS:\t  1 kB\n"), None);
        #[cfg(target_os = "linux")]
        assert!(peak_memory(Device::Cpu).unwrap() > 1 << 20);
    }

    #[test]
    fn the_targets_of_each_image_are_inside_and_apart() {
        let targets = targets(2);
        assert_eq!(targets.iter().filter(|target| target[0] == 1.0).count(), TARGETS);
        assert!(targets.iter().all(|target| target[2..].iter().all(|value| (0.0..1.0).contains(value))));
        let rows: std::collections::BTreeSet<u32> =
            targets.iter().map(|target| target[3].to_bits()).collect();
        assert_eq!(rows.len(), TARGETS, "no two are in one row");
    }
}
