//! Decoded images whose longer side is scaled to the image size. Decoding costs more than all augmentation,
//! and mosaics need each image about four times per epoch, so images stay in memory until a budget is used
//! up. Because the order is random, keeping the first images is as good as any eviction policy, and needs no
//! lock.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sysinfo::System;
use yolo_base::format::memory;
use yolo_plan::options::Cache;

use super::LoaderError;
use super::disk;
use crate::image::{Image, decode, resize};
use crate::scan::Sample;

/// The filter that shrinks images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shrink {
    /// Bilinear, for training.
    Linear,
    /// By area, for validation.
    Area,
}

/// The images of a data set at one size.
pub(super) struct ImageStore {
    samples: Arc<[Sample]>,
    size: usize,
    shrink: Shrink,
    on_disk: bool,
    slots: Box<[OnceLock<Arc<Image>>]>,
    /// The bytes left for images.
    budget: AtomicUsize,
    disk_failed: AtomicBool,
    warnings: Mutex<Vec<String>>,
}

impl ImageStore {
    /// A store that keeps about `keep` bytes of images, or with [`Cache::Ram`] those of the samples `used`
    /// if there is enough memory.
    pub(super) fn new(
        samples: Arc<[Sample]>,
        used: &[usize],
        size: usize,
        shrink: Shrink,
        cache: Option<Cache>,
        keep: usize,
    ) -> Self {
        let mut warnings = Vec::new();
        let mut budget = keep;
        if cache == Some(Cache::Ram) {
            let needed: u64 = used
                .iter()
                .map(|&index| {
                    let sample = &samples[index];
                    let [width, height] = scaled(sample.width as usize, sample.height as usize, size);
                    (width * height * 3) as u64
                })
                .sum();
            match ram_warning(needed, available_memory()) {
                None => budget = usize::try_from(needed).unwrap_or(usize::MAX),
                Some(warning) => warnings.push(warning),
            }
        }
        Self {
            slots: samples.iter().map(|_| OnceLock::new()).collect(),
            samples,
            size,
            shrink,
            on_disk: cache == Some(Cache::Disk),
            budget: budget.into(),
            disk_failed: AtomicBool::new(false),
            warnings: Mutex::new(warnings),
        }
    }

    /// The samples of the images.
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Keeps at most about this many bytes more from now on.
    pub(super) fn keep_at_most(&self, bytes: usize) {
        self.budget.store(bytes, Ordering::Relaxed);
    }

    /// The warnings since the last call.
    pub(super) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The width and height of the image of sample `index`.
    pub(super) fn size_of(&self, index: usize) -> [usize; 2] {
        let sample = &self.samples[index];
        scaled(sample.width as usize, sample.height as usize, self.size)
    }

    /// The image of sample `index`.
    pub(super) fn get(&self, index: usize) -> Result<Arc<Image>, LoaderError> {
        let slot = &self.slots[index];
        if let Some(image) = slot.get() {
            return Ok(Arc::clone(image));
        }
        let image = Arc::new(self.load(index)?);
        let bytes = image.data.len();
        let fits =
            self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if fits.is_ok() && slot.set(Arc::clone(&image)).is_err() {
            // Another thread has stored the same image in the meantime.
            self.budget.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(image)
    }

    /// Loads an image from the cache on disk or from its file.
    fn load(&self, index: usize) -> Result<Image, LoaderError> {
        let sample = &self.samples[index];
        if !self.on_disk {
            return self.decode(sample);
        }
        let filter = match self.shrink {
            Shrink::Linear => "linear",
            Shrink::Area => "area",
        };
        let cached = disk::path_of(&sample.image, self.size, filter);
        if let Some(image) = disk::read(&sample.image, &cached)
            && [image.width, image.height] == self.size_of(index)
        {
            return Ok(image);
        }
        let image = self.decode(sample)?;
        if !self.disk_failed.load(Ordering::Relaxed)
            && let Err(error) = disk::write(&sample.image, &cached, &image)
            && !self.disk_failed.swap(true, Ordering::Relaxed)
        {
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(format!(
                "cannot write {}: {error}; training continues, and images that are not on disk yet are not cached there",
                cached.display()
            ));
        }
        Ok(image)
    }

    /// Decodes and scales the image of a sample.
    fn decode(&self, sample: &Sample) -> Result<Image, LoaderError> {
        let image = decode::decode(&sample.image)
            .map_err(|source| LoaderError::Image { path: sample.image.clone(), source })?;
        if [image.width, image.height] != [sample.width as usize, sample.height as usize] {
            return Err(LoaderError::Changed {
                path: sample.image.clone(),
                width: image.width,
                height: image.height,
                scanned: [sample.width, sample.height],
            });
        }
        let [width, height] = scaled(image.width, image.height, self.size);
        if [width, height] == [image.width, image.height] {
            return Ok(image);
        }
        Ok(if self.shrink == Shrink::Area && width <= image.width && height <= image.height {
            resize::area(&image, width, height)
        } else {
            resize::linear(&image, width, height)
        })
    }
}

/// The width and height after scaling the longer side to `size`, rounded up (spec §7).
pub(super) fn scaled(width: usize, height: usize, size: usize) -> [usize; 2] {
    let ratio = size as f64 / width.max(height) as f64;
    if ratio == 1.0 {
        [width, height]
    } else {
        [width, height].map(|side| (side as f64 * ratio).ceil() as usize)
    }
}

/// The memory available without swapping, within the limits of a container, in bytes.
fn available_memory() -> u64 {
    let mut system = System::new();
    system.refresh_memory();
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    system.available_memory().min(limit)
}

/// The warning if `needed` bytes of images, with a margin of 10 %, do not fit in memory (spec §7).
fn ram_warning(needed: u64, available: u64) -> Option<String> {
    let with_margin = needed.saturating_add(needed / 10);
    (with_margin >= available).then(|| {
        format!(
            "--cache ram needs {}, including a margin of 10 %, but {} is free; not all images are kept in memory",
            memory(with_margin),
            memory(available)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_from_the_longer_side() {
        assert_eq!(scaled(640, 480, 320), [320, 240]);
        assert_eq!(scaled(333, 500, 320), [214, 320]);
        assert_eq!(scaled(320, 100, 320), [320, 100]);
        assert_eq!(scaled(10, 1000, 320), [4, 320]);
    }

    #[test]
    fn the_ram_cache_needs_a_margin_of_a_tenth() {
        assert_eq!(ram_warning(100 << 20, 200 << 20), None);
        assert_eq!(
            ram_warning(100 << 20, 105 << 20).as_deref(),
            Some(
                "--cache ram needs 110.0 MiB, including a margin of 10 %, but 105.0 MiB is free; not all images are kept in memory"
            )
        );
    }
}
