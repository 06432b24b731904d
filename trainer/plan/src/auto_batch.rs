//! `--batch -1`: the largest batch whose training needs at most 80 % of the memory that is free on a GPU (spec §6). A
//! rank measures what some small batches need; a straight line through these points says what larger ones would. On
//! the CPU nothing is measured.

use serde::{Deserialize, Serialize};
use yolo_base::format::memory;

use crate::error::PlanError;

/// The value of `--batch` that asks for this.
pub const AUTO: i64 = -1;
/// Images per step whose memory is measured, in this order (spec §6).
pub const SIZES: [usize; 5] = [1, 2, 4, 8, 16];
/// Images per step where nothing is measured (spec §6).
pub const WITHOUT_MEASUREMENT: usize = 16;
/// The part of the free memory that a batch may need, in percent (spec §6). The rest is for what the measurement does
/// not see: the buffers of the exchange with other ranks, a validation, and other programs.
const PERCENT: u64 = 80;
/// The line is not continued beyond this many images per device.
const MOST: usize = 1024;

/// What training needs of a device with batches of several sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMemory {
    /// The batches that could be trained, from small to large.
    pub batches: Vec<MemoryOfBatch>,
    /// Images per step with which memory ran out, which ended the measurement.
    pub ran_out_at: Option<usize>,
    /// Bytes that this process could take on the device in all; 0 if the driver does not report it.
    pub available: u64,
}

/// What training with one batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryOfBatch {
    /// Images per step.
    pub images: usize,
    /// Bytes that libtorch reserved on the device, at the peak.
    pub bytes: u64,
}

/// The batch that was chosen for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOfDevice {
    /// Images per step.
    pub images: usize,
    /// Bytes that they need, by the line or as measured.
    pub needed: u64,
    /// Bytes that they may need.
    pub limit: u64,
}

impl BatchMemory {
    /// The largest multiple of `unit` images that needs at most 80 % of the available memory, of which `sharing`
    /// processes have equal parts. It is at least `unit`, and never as many images as a measured batch that needed
    /// more or ran out of memory.
    ///
    /// # Errors
    /// When not even one image could be trained, or the driver does not report the memory.
    pub fn largest_batch(&self, sharing: usize, unit: usize) -> Result<BatchOfDevice, PlanError> {
        if self.batches.is_empty() {
            return Err(PlanError::new(
                "--batch -1: training ran out of memory with a single image per step, so no batch fits",
            )
            .with_hint("lower --imgsz, use a smaller model, or close other programs that use the GPU"));
        }
        if self.available == 0 {
            return Err(PlanError::new("--batch -1: the driver does not report how much memory is free")
                .with_hint("give the number of images per step, for example --batch 16"));
        }
        let (sharing, unit) = (sharing.max(1) as u64, unit.max(1));
        let limit = self.available.saturating_mul(PERCENT) / (100 * sharing);
        let fits = |batch: &&MemoryOfBatch| batch.bytes <= limit;
        let measured = self.batches.iter().filter(fits).map(|batch| batch.images).max().unwrap_or(1);
        let too_large = self.batches.iter().filter(|batch| !fits(batch)).map(|batch| batch.images);
        let too_large = too_large.chain(self.ran_out_at).min().unwrap_or(MOST + 1);
        let images = match self.line() {
            Some((start, slope)) => ((limit as f64 - start) / slope).max(1.0) as usize,
            // What does not grow with the batch says nothing about larger ones.
            None => measured,
        };
        let images = images.min(too_large.saturating_sub(1)) / unit * unit;
        let images = images.max(unit);
        let exact = self.batches.iter().find(|batch| batch.images == images).map(|batch| batch.bytes);
        let by_line =
            || self.line().map(|(start, slope)| (start + slope * images as f64).round().max(0.0) as u64);
        let most = self.batches.iter().map(|batch| batch.bytes).max().unwrap_or(0);
        Ok(BatchOfDevice { images, needed: exact.or_else(by_line).unwrap_or(most), limit })
    }

    /// The straight line with the least squared distance from the points, as bytes without images and bytes per
    /// image; `None` if there is one point, or the line does not rise.
    fn line(&self) -> Option<(f64, f64)> {
        let count = self.batches.len() as f64;
        let mean = |of: fn(&MemoryOfBatch) -> f64| self.batches.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|batch| batch.images as f64), mean(|batch| batch.bytes as f64));
        let mut squares = 0.0;
        let mut products = 0.0;
        for batch in &self.batches {
            let distance = batch.images as f64 - x;
            squares += distance * distance;
            products += distance * (batch.bytes as f64 - y);
        }
        let slope = products / squares;
        // A slope of 0/0 is no number, and is refused as well.
        (slope > 0.0).then_some((y - slope * x, slope))
    }
}

impl BatchOfDevice {
    /// Why it was chosen, as a phrase that follows the number.
    pub fn reason(&self) -> String {
        let relation = if self.needed <= self.limit { "needs about" } else { "is the least, and needs" };
        format!(
            "which {relation} {} of the {} that training may take, {PERCENT} % of what is free",
            memory(self.needed),
            memory(self.limit)
        )
    }
}

/// Images per step over `parts` devices without a measurement, as a multiple of `unit` images for each, and the line
/// that says so.
pub fn without_measurement(parts: usize, unit: usize) -> (usize, String) {
    let total = WITHOUT_MEASUREMENT.next_multiple_of(parts.max(1) * unit.max(1));
    (total, format!("--batch -1: {total} images per step, because memory is measured on GPUs only"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yolo_base::Hint as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A measurement of the first sizes, in MiB.
    fn measured(mebibytes: &[u64], ran_out: bool, available: u64) -> BatchMemory {
        let batches = SIZES.iter().zip(mebibytes);
        BatchMemory {
            batches: batches.map(|(&images, bytes)| MemoryOfBatch { images, bytes: bytes * MIB }).collect(),
            ran_out_at: ran_out.then(|| SIZES[mebibytes.len()]),
            available: available * MIB,
        }
    }

    fn images(measured: &BatchMemory) -> usize {
        measured.largest_batch(1, 1).unwrap().images
    }

    #[test]
    fn a_line_is_continued_up_to_80_percent() {
        // 500 MiB and 100 MiB per image: 8000 MiB of 10000 are 75 images.
        let line = measured(&[600, 700, 900, 1300, 2100], false, 10_000);
        let batch = line.largest_batch(1, 1).unwrap();
        assert_eq!((batch.images, batch.needed, batch.limit), (75, 8000 * MIB, 8000 * MIB));
        assert_eq!(
            batch.reason(),
            "which needs about 7.8 GiB of the 7.8 GiB that training may take, 80 % of what is free"
        );
        assert_eq!(line.largest_batch(1, 4).unwrap().images, 72, "--quad takes multiples of four");
        assert_eq!(line.largest_batch(2, 1).unwrap().images, 35, "two processes share the device");
        assert_eq!(images(&measured(&[600, 700, 900, 1300, 2100], false, 10_000_000)), 1024);
    }

    #[test]
    fn noise_changes_little() {
        let batch = images(&measured(&[640, 690, 880, 1330, 2090], false, 10_000));
        assert!((74..=76).contains(&batch), "{batch}");
    }

    #[test]
    fn memory_that_does_not_grow_gives_the_largest_measured_batch() {
        assert_eq!(images(&measured(&[2100, 1300, 900, 700, 600], false, 10_000)), 16);
        assert_eq!(images(&measured(&[600; 5], false, 10_000)), 16);
        assert_eq!(images(&measured(&[600, 600, 9000, 500, 400], false, 10_000)), 3, "four need too much");
    }

    #[test]
    fn a_batch_that_ran_out_of_memory_is_not_reached() {
        assert_eq!(images(&measured(&[600, 700, 900], true, 10_000)), 7, "the line alone says 75");
        assert_eq!(images(&measured(&[600], true, 10_000)), 1);
        assert_eq!(images(&measured(&[600], false, 10_000)), 1, "one point is no line");
    }

    #[test]
    fn one_image_is_chosen_even_if_it_needs_more_than_80_percent() {
        let batch = measured(&[900], true, 1000).largest_batch(1, 1).unwrap();
        assert_eq!(batch.images, 1);
        assert!(batch.reason().starts_with("which is the least, and needs 900"), "{}", batch.reason());
    }

    #[test]
    fn no_batch_at_all_is_an_error() {
        let error = measured(&[], true, 10_000).largest_batch(1, 1).unwrap_err();
        assert!(error.to_string().contains("with a single image per step"), "{error}");
        assert!(error.hint().unwrap().contains("--imgsz"));
        let unknown = measured(&[600, 700], false, 0).largest_batch(1, 1).unwrap_err();
        assert!(unknown.to_string().contains("does not report"), "{unknown}");
    }

    #[test]
    fn the_cpu_gets_16_images_or_the_next_multiple() {
        let total = |parts, unit| without_measurement(parts, unit).0;
        assert_eq!((total(1, 1), total(3, 1), total(32, 1), total(3, 4)), (16, 18, 32, 24));
        assert!(without_measurement(3, 1).1.starts_with("--batch -1: 18 images per step"));
    }

    proptest! {
        #[test]
        fn the_choice_is_safe_whatever_was_measured(
            mebibytes in prop::collection::vec(0..20_000_u64, 1..=5),
            ran_out in any::<bool>(),
            available in 1..100_000_u64,
            sharing in 1..5_usize,
            unit in prop::sample::select(vec![1_usize, 4]),
        ) {
            let measured = measured(&mebibytes, ran_out && mebibytes.len() < SIZES.len(), available);
            let batch = measured.largest_batch(sharing, unit).unwrap();
            prop_assert!((unit..=MOST).contains(&batch.images) && batch.images.is_multiple_of(unit));
            if batch.images > unit {
                for point in &measured.batches {
                    prop_assert!(point.bytes <= batch.limit || batch.images < point.images);
                }
                prop_assert!(measured.ran_out_at.is_none_or(|size| batch.images < size));
                prop_assert!(batch.limit <= available * MIB);
            }
        }

        #[test]
        fn a_true_line_is_found(start in 1..5000_u64, each in 1..3000_u64, available in 1..200_000_u64) {
            let points = SIZES.map(|images| start + each * images as u64);
            let limit = available * MIB / 100 * 80;
            let exact = (limit.saturating_sub(start * MIB) / (each * MIB)).clamp(1, MOST as u64) as i64;
            let found = images(&measured(&points, false, available)) as i64;
            prop_assert!((found - exact).abs() <= 1, "{found} instead of {exact}");
        }
    }
}
