//! A model in parts (`--parallel model`): consecutive layers on each device, so that every device has about the
//! same part of its memory in use. Memory is estimated from the description of the model: tensors that live as
//! long as the run, and the outputs that the backward pass needs.

use std::ops::Range;

use yolo_base::format::count;

use super::{LayerCost, ModelSpec};
use crate::error::PlanError;

/// Bytes of a number in single precision.
const NUMBER: u64 = 4;
/// Copies of each parameter besides the optimizer's: the weight, its gradient, and its moving average.
const COPIES: u64 = 3;

/// What a run keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Side of the square images in pixels.
    pub image_size: usize,
    /// Images per step.
    pub batch: usize,
    /// Numbers that the optimizer keeps of each parameter.
    pub buffers: u64,
}

impl Load {
    /// The memory of a layer in bytes, at most a number of which those of all layers can be added.
    fn bytes(&self, cost: &LayerCost) -> u64 {
        let parameters = cost.parameters.saturating_mul(COPIES + self.buffers);
        let numbers = parameters.saturating_add(cost.kept.saturating_mul(self.batch as u64));
        numbers.saturating_mul(NUMBER).min(u64::MAX >> 16)
    }
}

/// The layers on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPart {
    /// Indices of the layers; at least one.
    pub layers: Range<usize>,
    /// Their estimated memory in bytes.
    pub memory: u64,
}

impl ModelSpec {
    /// Splits the layers among `devices` devices, in their order. `memory` is how much of each device can be
    /// used, in any unit; if it is empty, all devices count the same. The largest used share of a device's
    /// memory is as small as consecutive layers allow.
    ///
    /// # Errors
    /// When there are more devices than layers, or the images do not fit the model.
    pub fn parts(&self, load: &Load, devices: usize, memory: &[u64]) -> Result<Vec<ModelPart>, PlanError> {
        self.check_parts(devices)?;
        let costs = self.costs(load.image_size, load.image_size)?;
        let bytes: Vec<u64> = costs.iter().map(|cost| load.bytes(cost)).collect();
        let memory: Vec<u64> = (0..devices).map(|device| *memory.get(device).unwrap_or(&1)).collect();
        let part = |layers: Range<usize>| ModelPart { memory: bytes[layers.clone()].iter().sum(), layers };
        Ok(balanced(&bytes, &memory).into_iter().map(part).collect())
    }

    /// Fails if the model has fewer layers than there are devices.
    ///
    /// # Errors
    /// As it says.
    pub fn check_parts(&self, devices: usize) -> Result<(), PlanError> {
        let layers = self.layers.len();
        if devices <= layers {
            return Ok(());
        }
        Err(PlanError::usage(format!(
            "--parallel model cannot spread the {} of {} over {devices} devices",
            count(layers, "layer"),
            self.name
        ))
        .with_hint(format!("name at most {layers} devices with --device")))
    }
}

/// Consecutive ranges of `bytes`, one for each entry of `memory` and none of them empty, with the least
/// maximum of bytes relative to memory.
fn balanced(bytes: &[u64], memory: &[u64]) -> Vec<Range<usize>> {
    let mut sums = vec![0_u64];
    for layer in bytes {
        sums.push(sums[sums.len() - 1] + layer);
    }
    let (layers, devices) = (bytes.len(), memory.len());
    let used = |range: Range<usize>, device: usize| {
        (sums[range.end] - sums[range.start]) as f64 / memory[device].max(1) as f64
    };
    // least[end] is the least maximum if the devices so far have the layers before `end`, and start[d][end]
    // where the last of these devices, d, then starts.
    let mut least: Vec<f64> = (0..=layers).map(|end| used(0..end, 0)).collect();
    let mut start = vec![vec![0; layers + 1]];
    for device in 1..devices {
        let best = |end: usize| {
            // Every device before this one has a layer.
            let firsts = device..end;
            let most = |first: usize| (least[first].max(used(first..end, device)), first);
            firsts.map(most).reduce(|best, other| if other.0 < best.0 { other } else { best })
        };
        let row: Vec<(f64, usize)> =
            (0..=layers).map(|end| best(end).unwrap_or((f64::INFINITY, 0))).collect();
        start.push(row.iter().map(|(_, first)| *first).collect());
        least = row.into_iter().map(|(most, _)| most).collect();
    }
    let mut ranges = Vec::with_capacity(devices);
    let mut end = layers;
    for device in (0..devices).rev() {
        ranges.push(start[device][end]..end);
        end = start[device][end];
    }
    ranges.reverse();
    ranges
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    #[test]
    fn ranges_have_about_the_same_share_of_their_memory() {
        assert_eq!(balanced(&[5, 1, 1, 1, 1, 1], &[1, 1]), [0..1, 1..6]);
        assert_eq!(balanced(&[1; 6], &[1, 1, 1]), [0..2, 2..4, 4..6]);
        assert_eq!(balanced(&[1; 6], &[2, 1]), [0..4, 4..6]);
        assert_eq!(balanced(&[1; 6], &[1, 2]), [0..2, 2..6]);
        // No device stays without a layer.
        assert_eq!(balanced(&[0, 0, 9], &[1, 1, 1]), [0..1, 1..2, 2..3]);
        assert_eq!(balanced(&[1, 1], &[0, 0]), [0..1, 1..2]);
    }

    #[test]
    fn early_layers_are_large_for_a_large_batch_and_late_ones_for_a_small_one() {
        let model = ModelSpec::load("yolov5s", 80, None).unwrap();
        let parts = |batch, image_size, memory: &[u64]| {
            let load = Load { image_size, batch, buffers: 1 };
            model.parts(&load, 2, memory).unwrap()
        };
        let large = parts(64, 640, &[]);
        assert_eq!((large[0].layers.start, large[1].layers.end), (0, model.layers.len()));
        let small = parts(1, 64, &[]);
        assert!(large[0].layers.end < small[0].layers.end, "{large:?} {small:?}");
        let uneven = parts(64, 640, &[1, 3]);
        assert!(uneven[0].layers.end < large[0].layers.end, "{large:?} {uneven:?}");
        for parts in [large, small] {
            let total = parts[0].memory + parts[1].memory;
            assert!(parts.iter().all(|part| part.memory * 10 > total * 3), "{parts:?}");
        }
    }

    #[test]
    fn the_memory_of_a_run_is_of_the_measured_size() {
        // What autograd saved for one image of 320 pixels in the original, without parameters
        // (`memory_estimate.rs` of the checks), within a quarter.
        for (name, measured) in [("yolov5n", 38.6e6), ("yolov5s", 76.0e6), ("yolov5l", 229.7e6)] {
            let model = ModelSpec::load(name, 80, None).unwrap();
            let kept: u64 = model.costs(320, 320).unwrap().iter().map(|cost| cost.kept * NUMBER).sum();
            let ratio = kept as f64 / measured;
            assert!((0.75..1.25).contains(&ratio), "{name}: {kept} bytes, {ratio} of what was measured");
        }
    }

    #[test]
    fn there_are_no_more_parts_than_layers() {
        let model = ModelSpec::load("yolov5n", 2, None).unwrap();
        let load = Load { image_size: 64, batch: 2, buffers: 2 };
        assert_eq!(model.parts(&load, 25, &[]).unwrap().len(), 25);
        let error = model.parts(&load, 26, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--parallel model cannot spread the 25 layers of yolov5n over 26 devices"
        );
        assert_eq!(error.hint().as_deref(), Some("name at most 25 devices with --device"));
    }
}
