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
use crate::image::decode;
use crate::image::{Image, Part, Window, resize};
use crate::scan::Sample;

/// The filter that shrinks images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shrink {
    /// Bilinear, for training.
    Linear,
    /// By area, for validation.
    Area,
}

/// The memory for loading an image that is not kept; the next image uses it again.
#[derive(Debug, Default)]
pub(super) struct LoadBuffers {
    file: Vec<u8>,
    decoded: Image,
    scaled: Image,
}

/// A loaded image.
#[derive(Debug)]
pub(super) enum Loaded<'a> {
    /// The store keeps it.
    Kept(Arc<Image>),
    /// It, or a part of it, is in a buffer.
    Buffered(Part<'a>),
}

impl Loaded<'_> {
    /// The pixels.
    pub(super) fn part(&self) -> Part<'_> {
        match self {
            Self::Kept(image) => Part::whole(image),
            Self::Buffered(part) => *part,
        }
    }
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

    /// The image of sample `index`, or at least a `window` of it; in `buffers` if it is not kept.
    pub(super) fn get<'a>(
        &self,
        index: usize,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<Loaded<'a>, LoaderError> {
        let slot = &self.slots[index];
        if let Some(image) = slot.get() {
            return Ok(Loaded::Kept(Arc::clone(image)));
        }
        let [width, height] = self.size_of(index);
        let bytes = width * height * 3;
        let fits =
            self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if fits.is_err() {
            return self
                .load(index, window, buffers)
                .map(|(image, first)| Loaded::Buffered(Part { image, first }));
        }
        let kept = self.load(index, None, buffers).map(|(image, _)| Arc::new(std::mem::take(image)));
        if kept.as_ref().map_or(true, |image| slot.set(Arc::clone(image)).is_err()) {
            // It could not be loaded, or another thread has stored the same image in the meantime.
            self.budget.fetch_add(bytes, Ordering::Relaxed);
        }
        kept.map(Loaded::Kept)
    }

    /// Loads an image, or at least a `window` of it, from the cache on disk or from its file. Also returns the
    /// first column and row.
    fn load<'a>(
        &self,
        index: usize,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<(&'a mut Image, [usize; 2]), LoaderError> {
        let sample = &self.samples[index];
        if !self.on_disk {
            return self.decode(sample, window, buffers);
        }
        let filter = match self.shrink {
            Shrink::Linear => "linear",
            Shrink::Area => "area",
        };
        let cached = disk::path_of(&sample.image, self.size, filter);
        let found = disk::read_into(&sample.image, &cached, &mut buffers.decoded).is_some();
        if found && [buffers.decoded.width, buffers.decoded.height] == self.size_of(index) {
            return Ok((&mut buffers.decoded, [0; 2]));
        }
        let (image, _) = self.decode(sample, None, buffers)?;
        if !self.disk_failed.load(Ordering::Relaxed)
            && let Err(error) = disk::write(&sample.image, &cached, image)
            && !self.disk_failed.swap(true, Ordering::Relaxed)
        {
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(format!(
                "cannot write {}: {error}; training continues, and images that are not on disk yet are not cached there",
                cached.display()
            ));
        }
        Ok((image, [0; 2]))
    }

    /// Decodes and scales the image of a sample, or at least a `window` of it. Also returns the first column and row.
    fn decode<'a>(
        &self,
        sample: &Sample,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<(&'a mut Image, [usize; 2]), LoaderError> {
        let LoadBuffers { file, decoded: image, scaled: out } = buffers;
        let [width, height] = scaled(sample.width as usize, sample.height as usize, self.size);
        let native = [sample.width as usize, sample.height as usize];
        let area = self.shrink == Shrink::Area && width <= native[0] && height <= native[1];
        // The mean over areas is for validation, which shows whole images.
        let window = window.filter(|_| !area);
        let needed = window.map(|window| match [width, height] == native {
            true => window.clone(),
            false => resize::source_of(native, [width, height], window),
        });
        let decoded = decode::decode_into(&sample.image, needed.as_ref(), file, image)
            .map_err(|source| LoaderError::Image { path: sample.image.clone(), source })?;
        let whole = decoded.whole;
        if whole != native {
            return Err(LoaderError::Changed {
                path: sample.image.clone(),
                width: whole[0],
                height: whole[1],
                scanned: [sample.width, sample.height],
            });
        }
        if [width, height] == whole {
            return Ok((image, decoded.first));
        }
        if area {
            resize::area_into(image, width, height, out);
            return Ok((out, [0; 2]));
        }
        let window = window.cloned().unwrap_or_else(|| Window::whole([width, height]));
        let part = Part { image, first: decoded.first };
        resize::linear_window(part, native, [width, height], &window, out);
        Ok((out, window.first()))
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
    use crate::image::encode::write_jpeg;

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

    #[test]
    fn an_image_that_is_not_kept_uses_the_memory_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let sample = |name: &str| {
            let image = folder.path().join(name);
            write_jpeg(&image, &Image::filled(64, 48, [90, 60, 30])).unwrap();
            Sample { image, width: 64, height: 48, ..Sample::default() }
        };
        let samples: Arc<[Sample]> = [sample("a.jpg"), sample("b.jpg")].into();
        for size in [64, 32, 128] {
            let bytes = size * (size * 3 / 4) * 3;
            let store = ImageStore::new(Arc::clone(&samples), &[], size, Shrink::Linear, None, bytes);
            let mut buffers = LoadBuffers::default();
            assert!(
                matches!(store.get(0, None, &mut buffers), Ok(Loaded::Kept(_))),
                "there is memory for one"
            );
            let mut place =
                || store.get(1, None, &mut buffers).map(|image| image.part().image.data.as_ptr()).unwrap();
            assert_eq!(place(), place());
            assert!(matches!(
                store.get(1, None, &mut buffers),
                Ok(Loaded::Buffered(Part { first: [0, 0], .. }))
            ));
        }
    }
}
