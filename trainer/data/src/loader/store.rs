//! Decoded images whose longer side is scaled to the image size. Decoding costs more than all augmentation,
//! and mosaics need each image about four times per epoch, so images stay in memory until a budget is used
//! up. Because the order is random, keeping the first images is as good as any eviction policy, and needs no
//! lock. They are kept by this process, or by all ranks of its machine together.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(target_os = "linux")]
use sha2::{Digest as _, Sha256};
use yolo_plan::options::Cache;

use super::disk;
use super::memory::{available_memory, ram_warning};
#[cfg(target_os = "linux")]
use super::shared::SharedImages;
use super::{ImageMemory, Kept, LoaderError};
use crate::image::decode;
use crate::image::{Image, ImageView, Part, Window, resize};
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
    /// The ranks of this machine keep it.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "ranks run on Linux"))]
    Shared(ImageView<'a>),
    /// It, or a part of it, is in a buffer.
    Buffered(Part<'a>),
}

impl Loaded<'_> {
    /// The pixels.
    pub(super) fn part(&self) -> Part<'_> {
        match self {
            Self::Kept(image) => Part::whole(&**image),
            Self::Shared(view) => Part::whole(*view),
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
    kept: Images,
    disk_failed: AtomicBool,
    /// The images that a warning has named as damaged.
    damaged: Mutex<HashSet<PathBuf>>,
    warnings: Mutex<Vec<String>>,
}

/// The images that are kept.
enum Images {
    /// Those of this process.
    Own(OwnImages),
    /// Those of all ranks of this machine, and how many these are.
    #[cfg(target_os = "linux")]
    Shared(SharedImages, usize),
}

/// Images that only this process keeps.
struct OwnImages {
    slots: Box<[OnceLock<Arc<Image>>]>,
    /// The bytes left for images.
    budget: AtomicUsize,
    decoded: AtomicU64,
    /// The ranks of this machine, each of which has such a budget.
    ranks: usize,
}

/// What a store may keep.
#[derive(Debug)]
pub(super) struct StoreSettings<'a> {
    /// The longer side of an image in pixels.
    pub(super) size: usize,
    /// The filter that shrinks images.
    pub(super) shrink: Shrink,
    /// Where images are kept.
    pub(super) cache: Option<Cache>,
    /// The samples that this process loads.
    pub(super) used: &'a [usize],
    /// The bytes of images that the ranks of this machine keep together, unless [`Cache::Ram`] finds room for all.
    pub(super) keep: usize,
    /// The memory of this machine.
    pub(super) memory: &'a ImageMemory,
    /// The bytes of it that other images will take.
    pub(super) promised: u64,
}

impl ImageStore {
    /// A store that keeps images as `settings` say. With a file that ranks share, all of them must load the same
    /// samples.
    pub(super) fn new(samples: Arc<[Sample]>, settings: &StoreSettings<'_>) -> Self {
        let StoreSettings { size, shrink, cache, .. } = *settings;
        let mut warnings = Vec::new();
        let kept = images(&samples, settings, &mut warnings);
        Self {
            samples,
            size,
            shrink,
            on_disk: cache == Some(Cache::Disk),
            kept,
            disk_failed: AtomicBool::new(false),
            damaged: Mutex::default(),
            warnings: Mutex::new(warnings),
        }
    }

    /// The samples of the images.
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Keeps at most about this many bytes more from now on.
    pub(super) fn keep_at_most(&self, bytes: usize) {
        match &self.kept {
            Images::Own(own) => own.budget.store(bytes, Ordering::Relaxed),
            #[cfg(target_os = "linux")]
            Images::Shared(shared, _) => shared.keep_at_most(bytes as u64),
        }
    }

    /// The bytes of memory that images may still take, in all processes that share them or have the same
    /// budget.
    pub(super) fn to_come(&self) -> u64 {
        match &self.kept {
            Images::Own(own) => (own.budget.load(Ordering::Relaxed) as u64).saturating_mul(own.ranks as u64),
            #[cfg(target_os = "linux")]
            Images::Shared(shared, _) => shared.to_come(),
        }
    }

    /// What is in memory, and the work that it saved.
    pub(super) fn kept(&self) -> Kept {
        let of = self.samples.len();
        match &self.kept {
            Images::Own(own) => Kept {
                ranks: 1,
                images: own.slots.iter().flat_map(OnceLock::get).count(),
                of,
                bytes: own.slots.iter().flat_map(OnceLock::get).map(|image| image.data.len() as u64).sum(),
                decoded: own.decoded.load(Ordering::Relaxed),
            },
            #[cfg(target_os = "linux")]
            Images::Shared(shared, ranks) => {
                let kept = || (0..of).filter(|&image| shared.has(image));
                Kept {
                    ranks: *ranks,
                    images: kept().count(),
                    of,
                    bytes: kept().map(|image| bytes_of(self.size_of(image)) as u64).sum(),
                    decoded: shared.decoded(),
                }
            }
        }
    }

    /// The warnings since the last call.
    pub(super) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The width and height of the image of sample `index`.
    pub(super) fn size_of(&self, index: usize) -> [usize; 2] {
        size_of(&self.samples[index], self.size)
    }

    /// The image of sample `index`, or at least a `window` of it; in `buffers` if it is not kept.
    pub(super) fn get<'a>(
        &'a self,
        index: usize,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<Loaded<'a>, LoaderError> {
        match &self.kept {
            Images::Own(own) => self.get_own(own, index, window, buffers),
            #[cfg(target_os = "linux")]
            Images::Shared(shared, _) => self.get_shared(shared, index, window, buffers),
        }
    }

    fn get_own<'a>(
        &self,
        own: &OwnImages,
        index: usize,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<Loaded<'a>, LoaderError> {
        let slot = &own.slots[index];
        if let Some(image) = slot.get() {
            return Ok(Loaded::Kept(Arc::clone(image)));
        }
        let bytes = bytes_of(self.size_of(index));
        let fits =
            own.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if fits.is_err() {
            return self.load_part(index, window, buffers);
        }
        let kept = self.load(index, None, buffers).map(|(image, _)| Arc::new(std::mem::take(image)));
        if kept.as_ref().map_or(true, |image| slot.set(Arc::clone(image)).is_err()) {
            // It could not be loaded, or another thread has stored the same image in the meantime.
            own.budget.fetch_add(bytes, Ordering::Relaxed);
        }
        kept.map(Loaded::Kept)
    }

    #[cfg(target_os = "linux")]
    fn get_shared<'a>(
        &'a self,
        shared: &'a SharedImages,
        index: usize,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<Loaded<'a>, LoaderError> {
        let [width, height] = self.size_of(index);
        let bytes = bytes_of([width, height]);
        if let Some(data) = shared.get(index, bytes) {
            return Ok(Loaded::Shared(ImageView { width, height, data }));
        }
        let Some(claim) = shared.claim(index, bytes) else {
            return self.load_part(index, window, buffers);
        };
        let (image, _) = self.load(index, None, buffers)?;
        if let Err(error) = claim.publish(&image.data) {
            self.warn(format!(
                "the system has no more memory that ranks can share: {error}; images that are not kept yet are loaded again"
            ));
        }
        Ok(Loaded::Buffered(Part::whole(&*image)))
    }

    fn count_decoded(&self) {
        match &self.kept {
            Images::Own(own) => {
                own.decoded.fetch_add(1, Ordering::Relaxed);
            }
            #[cfg(target_os = "linux")]
            Images::Shared(shared, _) => shared.count_decoded(),
        }
    }

    fn warn(&self, message: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Names an image that has wrong pixels, once.
    fn name_damaged(&self, path: &Path, damage: &str) {
        if self.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()) {
            self.warn(format!(
                "{} is damaged: {damage}; it is used as it is, as YOLOv5 does",
                path.display()
            ));
        }
    }

    /// As [`Self::load`], for images that nobody keeps.
    fn load_part<'a>(
        &self,
        index: usize,
        window: Option<&Window>,
        buffers: &'a mut LoadBuffers,
    ) -> Result<Loaded<'a>, LoaderError> {
        let (image, first) = self.load(index, window, buffers)?;
        Ok(Loaded::Buffered(Part { image: image.view(), first }))
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
            self.warn(format!(
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
        self.count_decoded();
        let LoadBuffers { file, decoded: image, scaled: out } = buffers;
        let [width, height] = size_of(sample, self.size);
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
        if let Some(damage) = decoded.damage {
            self.name_damaged(&sample.image, damage);
        }
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
            resize::area_into(&*image, width, height, out);
            return Ok((out, [0; 2]));
        }
        let window = window.cloned().unwrap_or_else(|| Window::whole([width, height]));
        let part = Part { image: image.view(), first: decoded.first };
        resize::linear_window(part, native, [width, height], &window, out);
        Ok((out, window.first()))
    }
}

/// The images that a new store keeps, of which there are none yet unless other ranks were faster.
fn images(samples: &[Sample], settings: &StoreSettings<'_>, warnings: &mut Vec<String>) -> Images {
    let StoreSettings { size, used, memory, promised, .. } = *settings;
    let needed = used.iter().map(|&index| bytes_of(size_of(&samples[index], size)) as u64).sum();
    let available = available_memory().saturating_sub(promised);
    let budget = |processes: usize| match (settings.cache, ram_warning(needed, processes, available)) {
        (Some(Cache::Ram), None) => (needed, None),
        (Some(Cache::None), _) => (0, None),
        (cache, warning) => {
            ((settings.keep / processes) as u64, warning.filter(|_| cache == Some(Cache::Ram)))
        }
    };
    #[cfg(target_os = "linux")]
    if let Some(file) = memory.shared() {
        let (bytes, warning) = budget(1);
        let layout = layout(samples, settings);
        let opened = file.try_clone().and_then(|file| SharedImages::open(file, samples.len(), layout, bytes));
        match opened {
            Ok(Some(shared)) => {
                // The other ranks would say the same.
                warnings.extend(warning.filter(|_| shared.decided_here()));
                return Images::Shared(shared, memory.ranks());
            }
            Ok(None) => warnings.push(
                "the images have changed while the ranks started, so this rank keeps decoded ones of its own".to_owned(),
            ),
            Err(error) => warnings.push(format!(
                "this rank keeps decoded images of its own, because it cannot use the memory that ranks share: {error}"
            )),
        }
    }
    let (bytes, warning) = budget(memory.ranks());
    warnings.extend(warning);
    Images::Own(OwnImages {
        slots: samples.iter().map(|_| OnceLock::new()).collect(),
        budget: usize::try_from(bytes).unwrap_or(usize::MAX).into(),
        decoded: 0.into(),
        ranks: memory.ranks(),
    })
}

/// A fingerprint of the images of a store: their files, in their order, and their sizes.
#[cfg(target_os = "linux")]
fn layout(samples: &[Sample], settings: &StoreSettings<'_>) -> u64 {
    let mut hash = Sha256::new();
    hash.update(format!("{} {:?}", settings.size, settings.shrink));
    for Sample { image, width, height, .. } in samples {
        hash.update(image.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(width.to_le_bytes());
        hash.update(height.to_le_bytes());
    }
    let bytes: [u8; 32] = hash.finalize().into();
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// The width and height of the image of a sample whose longer side is scaled to `size`.
fn size_of(sample: &Sample, size: usize) -> [usize; 2] {
    scaled(sample.width as usize, sample.height as usize, size)
}

/// The bytes of an image of this width and height.
fn bytes_of([width, height]: [usize; 2]) -> usize {
    width * height * 3
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
            let settings = StoreSettings {
                size,
                shrink: Shrink::Linear,
                cache: None,
                used: &[],
                keep: bytes,
                memory: &ImageMemory::default(),
                promised: 0,
            };
            let store = ImageStore::new(Arc::clone(&samples), &settings);
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
