//! The training loader: shuffled, augmented batches, which are the same for any number of threads and ranks
//! (spec §7, order of augmentation; §8).

use std::sync::Arc;

use yolo_plan::options::Cache;

use super::batches::Batches;
use super::pipeline::{BatchPlan, Made, Pipeline, Recycler, Scratch, Source};
use super::store::{ImageStore, Shrink};
use super::{Batch, Item, LoaderError};
use crate::augment::label::{Label, normalize};
use crate::augment::mosaic::{draw_center, mosaic};
use crate::augment::perspective::perspective;
use crate::augment::transform::Draws;
use crate::augment::{Augment, copy_paste, mixup};
use crate::image::letterbox::{Letterbox, LetterboxOptions};
use crate::random::{Purpose, Random};
use crate::rect_batches::{RectBatches, batch_shapes};
use crate::sampler::Sampler;
use crate::scan::Sample;

/// The bytes of scaled images kept in memory without `--cache`: enough for small data sets, and little
/// compared with the memory of a machine that trains large ones.
const KEEP: usize = 256 << 20;

/// The settings of a training loader.
#[derive(Debug, Clone)]
pub struct LoaderSettings {
    /// Side of the square network input in pixels.
    pub image_size: usize,
    /// Largest stride of the model; rectangular batches are multiples of it.
    pub stride: usize,
    /// Images per step on this rank.
    pub batch_per_rank: usize,
    /// This rank.
    pub rank: usize,
    /// Ranks of the run.
    pub world: usize,
    /// Seed of order and augmentation.
    pub seed: u64,
    /// Threads that load images; 0 loads in the caller's thread.
    pub workers: usize,
    /// Rectangular batches of images with similar shapes, in a fixed order and without mosaic.
    pub rect: bool,
    /// Where scaled images are kept between epochs.
    pub cache: Option<Cache>,
    /// How strongly images are augmented.
    pub augment: Augment,
}

/// Loads training batches.
pub struct TrainLoader(Pipeline<TrainSource>);

impl TrainLoader {
    /// Starts a loader of `samples`.
    ///
    /// # Errors
    ///
    /// If there are no samples, a size is zero, or threads cannot be started.
    pub fn new(samples: Arc<[Sample]>, settings: LoaderSettings) -> Result<Self, LoaderError> {
        if samples.is_empty() {
            return Err(LoaderError::NoImages);
        }
        let positive = [
            ("the image size", settings.image_size),
            ("the stride", settings.stride),
            ("the batch of a rank", settings.batch_per_rank),
            ("the number of ranks", settings.world),
        ];
        if let Some((name, value)) = positive.into_iter().find(|&(_, value)| value == 0) {
            return Err(LoaderError::Setting { name, requirement: "at least 1", value });
        }
        if settings.rank >= settings.world {
            let requirement = "below the number of ranks";
            return Err(LoaderError::Setting { name: "the rank", requirement, value: settings.rank });
        }
        let LoaderSettings { batch_per_rank, rank, world, seed, workers, .. } = settings;
        let seed = (!settings.rect).then_some(seed);
        let sampler = Sampler::new(samples.len(), batch_per_rank, rank, world, seed);
        let rect = settings.rect.then(|| {
            // The images of all ranks determine the shape, so that it is the same on every rank.
            batch_shapes(&sizes(&samples), batch_per_rank * world, settings.image_size, settings.stride, 0.0)
        });
        let store = ImageStore::new(samples, settings.image_size, Shrink::Linear, settings.cache, KEEP);
        Ok(Self(Pipeline::new(TrainSource { store, sampler, rect, settings }, workers)?))
    }

    /// The number of batches in an epoch, the same on every rank. The last may be smaller.
    pub fn batches_per_epoch(&self) -> usize {
        self.0.source().batches()
    }

    /// Starts making the batches of an epoch in the background, beginning with `first_batch`.
    pub fn prefetch(&mut self, epoch: u64, first_batch: usize) {
        if first_batch < self.batches_per_epoch() {
            self.0.seek(epoch, first_batch);
        }
    }

    /// Stops the threads, which otherwise make batches ahead, until the next batch is requested.
    pub fn pause(&mut self) {
        self.0.pause();
    }

    /// The same loader with this many threads. Images that it keeps in memory stay there.
    ///
    /// # Errors
    ///
    /// If threads cannot be started.
    pub fn with_workers(self, workers: usize) -> Result<Self, LoaderError> {
        Ok(Self(self.0.with_workers(workers)?))
    }

    /// The batches of an epoch, beginning with `first_batch`. The threads start at once; after the last
    /// batch they make the first batches of the next epoch.
    pub fn epoch(
        &mut self,
        epoch: u64,
        first_batch: usize,
    ) -> impl Iterator<Item = Result<Batch, LoaderError>> + '_ {
        self.prefetch(epoch, first_batch);
        Batches::new(&mut self.0, epoch, first_batch)
    }

    /// Takes the buffers of used batches.
    pub fn recycler(&self) -> Recycler {
        self.0.recycler()
    }

    /// The warnings since the last call, such as too little memory for `--cache ram`.
    pub fn take_warnings(&self) -> Vec<String> {
        self.0.source().store.take_warnings()
    }
}

/// The width and height of each sample.
pub(super) fn sizes(samples: &[Sample]) -> Vec<[u32; 2]> {
    samples.iter().map(|sample| [sample.width, sample.height]).collect()
}

struct TrainSource {
    store: ImageStore,
    sampler: Sampler,
    /// The order and shapes of rectangular batches.
    rect: Option<RectBatches>,
    settings: LoaderSettings,
}

impl Source for TrainSource {
    const REPEATS: bool = true;

    fn batches(&self) -> usize {
        self.sampler.batches_per_epoch()
    }

    fn order(&self, epoch: u64) -> Vec<usize> {
        self.rect.as_ref().map_or_else(|| self.sampler.order(epoch), |rect| rect.order.clone())
    }

    fn plan(&self, order: &[usize], batch: usize) -> BatchPlan {
        let square = [self.settings.image_size; 2];
        let [height, width] = self.rect.as_ref().map_or(square, |rect| rect.shapes[batch]);
        BatchPlan { height, width, images: self.sampler.batch(order, batch) }
    }

    fn make(
        &self,
        epoch: u64,
        index: usize,
        size: [usize; 2],
        scratch: &mut Scratch,
        planes: &mut [u8],
    ) -> Result<Made, LoaderError> {
        let augment = &self.settings.augment;
        let mut random = Random::keyed(self.settings.seed, epoch, Purpose::Augment, index as u64);
        if !self.settings.rect && random.chance(augment.mosaic) {
            self.mosaic(index, &mut random, scratch)?;
            if random.chance(augment.mixup) {
                let mut other = Scratch::default();
                self.mosaic(random.below(self.store.samples().len()), &mut random, &mut other)?;
                let share = mixup::draw_share(&mut random);
                mixup::mixup(share, &mut scratch.image, &mut scratch.labels, &other.image, other.labels);
            }
        } else {
            self.single(index, size, &mut random, scratch)?;
        }
        let finish = augment.draw_finish(&mut random);
        finish.write(&scratch.image, planes);
        let targets = normalize(&scratch.labels, size, finish.up_down, finish.left_right).collect();
        let sample = &self.store.samples()[index];
        let native = [sample.height, sample.width];
        Ok((Item { sample: index, native, ratio: [1.0; 2], pad: [0.0; 2] }, targets))
    }
}

impl TrainSource {
    /// Makes a mosaic of image `index` and three random images in `scratch` and applies a random perspective.
    fn mosaic(&self, index: usize, random: &mut Random, scratch: &mut Scratch) -> Result<(), LoaderError> {
        let size = self.settings.image_size;
        let samples = self.store.samples();
        let center = draw_center(size, random);
        let mut indices = [index, 0, 0, 0];
        for other in &mut indices[1..] {
            *other = random.below(samples.len());
        }
        random.shuffle(&mut indices);
        let [a, b, c, d] = indices.map(|i| self.store.get(i).map(|image| (image, &samples[i])));
        let [a, b, c, d] = [a?, b?, c?, d?];
        let tiles = [(&*a.0, a.1), (&*b.0, b.1), (&*c.0, c.1), (&*d.0, d.1)];
        let Scratch { image, spare, labels } = scratch;
        mosaic(tiles, center, size, image, labels);
        copy_paste::copy_paste(self.settings.augment.copy_paste, image, labels, random);
        perspective(&Draws::random(&self.settings.augment, random), [size; 2], image, spare, labels);
        Ok(())
    }

    /// Letterboxes image `index` to `size` in `scratch` and applies a random perspective.
    fn single(
        &self,
        index: usize,
        size: [usize; 2],
        random: &mut Random,
        scratch: &mut Scratch,
    ) -> Result<(), LoaderError> {
        let loaded = self.store.get(index)?;
        let letterbox = Letterbox::new(loaded.height, loaded.width, &LetterboxOptions::exact(size, true));
        let Scratch { image, spare, labels } = scratch;
        letterbox.apply(&loaded, image);
        let extent = [loaded.width as f64 * letterbox.ratio[1], loaded.height as f64 * letterbox.ratio[0]];
        labels.clear();
        labels.extend(Label::of_sample(&self.store.samples()[index], extent, letterbox.pad));
        perspective(&Draws::random(&self.settings.augment, random), size, image, spare, labels);
        Ok(())
    }
}
