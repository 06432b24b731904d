//! The training loader: shuffled, augmented batches, which are the same for any number of threads and ranks
//! (spec §7, order of augmentation; §8).

use std::sync::Arc;

use rayon::prelude::*;
use yolo_plan::options::{Balance, Cache};

use super::batches::Batches;
use super::pipeline::{BatchPlan, Made, Pipeline, Recycler, Scratch, Source, TileBuffers};
use super::store::{ImageStore, Loaded, Shrink};
use super::{Batch, Item, LoaderError};
use crate::augment::label::{Label, normalize};
use crate::augment::layout::{Layout, LayoutTile, draw_images};
use crate::augment::picture::Picture;
use crate::augment::{Augment, mixup};
use crate::balance::balanced;
use crate::image::finish::Finish;
use crate::image::{Image, resize};
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
    /// Images per step of each rank.
    pub shares: Vec<usize>,
    /// This rank.
    pub rank: usize,
    /// The cost that the ranks of a step share alike; `None` for no balance.
    pub balance: Option<Balance>,
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
            ("the batch of a rank", settings.shares.iter().copied().min().unwrap_or(1)),
            ("the number of ranks", settings.shares.len()),
        ];
        if let Some((name, value)) = positive.into_iter().find(|&(_, value)| value == 0) {
            return Err(LoaderError::Setting { name, requirement: "at least 1", value });
        }
        if settings.rank >= settings.shares.len() {
            let requirement = "below the number of ranks";
            return Err(LoaderError::Setting { name: "the rank", requirement, value: settings.rank });
        }
        let LoaderSettings { rank, seed, workers, .. } = settings;
        let seed = (!settings.rect).then_some(seed);
        let sampler = Sampler::new(samples.len(), &settings.shares, rank, seed);
        let rect = settings.rect.then(|| {
            // The images of all ranks determine the shape, so that it is the same on every rank.
            let batch = settings.shares.iter().sum();
            batch_shapes(&sizes(&samples), batch, settings.image_size, settings.stride, 0.0)
        });
        let costs = settings.balance.map(|balance| costs(&samples, balance));
        let all: Vec<usize> = (0..samples.len()).collect();
        let store = ImageStore::new(samples, &all, settings.image_size, Shrink::Linear, settings.cache, KEEP);
        Ok(Self(Pipeline::new(TrainSource { store, sampler, rect, costs, settings }, workers)?))
    }

    /// The number of batches in an epoch, the same on every rank. The last may be smaller.
    pub fn batches_per_epoch(&self) -> usize {
        self.0.source().batches()
    }

    /// Which images each rank has in each batch.
    pub fn sampler(&self) -> &Sampler {
        &self.0.source().sampler
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

    /// Keeps at most about this many bytes of images in memory from now on, besides those already kept.
    pub fn keep_at_most(&self, bytes: usize) {
        self.0.source().store.keep_at_most(bytes);
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

/// The cost of each sample. A file that cannot be read costs nothing; loading it will fail.
fn costs(samples: &[Sample], balance: Balance) -> Vec<u64> {
    let bytes = |sample: &Sample| sample.image.metadata().map_or(0, |metadata| metadata.len());
    match balance {
        Balance::Boxes => samples.iter().map(|sample| sample.boxes.len() as u64).collect(),
        Balance::Bytes => samples.par_iter().map(bytes).collect(),
    }
}

struct TrainSource {
    store: ImageStore,
    sampler: Sampler,
    /// The order and shapes of rectangular batches.
    rect: Option<RectBatches>,
    /// The cost of each image, if ranks are balanced.
    costs: Option<Vec<u64>>,
    settings: LoaderSettings,
}

impl Source for TrainSource {
    const REPEATS: bool = true;

    fn batches(&self) -> usize {
        self.sampler.batches_per_epoch()
    }

    fn order(&self, epoch: u64) -> Vec<usize> {
        let order = self.rect.as_ref().map_or_else(|| self.sampler.order(epoch), |rect| rect.order.clone());
        match &self.costs {
            Some(costs) => balanced(&order, &self.sampler, |image| self.cost(costs, epoch, image)),
            None => order,
        }
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
        let samples = self.store.samples();
        let (mut random, is_mosaic) = self.random(epoch, index);
        let first = if is_mosaic {
            self.mosaic(index, &mut random)
        } else {
            Layout::single(index, &samples[index], self.store.size_of(index), size, augment, &mut random)
        };
        let second = (is_mosaic && random.chance(augment.mixup)).then(|| {
            let layout = self.mosaic(random.below(samples.len()), &mut random);
            (layout, mixup::draw_share(&mut random))
        });
        let finish = augment.draw_finish(&mut random);

        let Scratch { tiles: [tiles, other_tiles], canvases: [canvas, other_canvas], picture: buffers } =
            scratch;
        let images = self.images(&first, tiles)?;
        let other_images =
            second.as_ref().map_or(Ok(Vec::new()), |(layout, _)| self.images(layout, other_tiles))?;
        let view = first.view(images.iter().map(Loaded::part), canvas);
        let mixed = second.as_ref().map(|(layout, share)| {
            (layout.view(other_images.iter().map(Loaded::part), other_canvas), *share)
        });
        let picture = Picture { view, mixed, finish };
        picture.write(size, buffers, planes);

        let other_labels = second.into_iter().flat_map(|(layout, _)| layout.labels);
        let labels: Vec<Label> = first.labels.into_iter().chain(other_labels).collect();
        let Finish { up_down, left_right, .. } = picture.finish;
        let targets = normalize(&labels, size, up_down, left_right).collect();
        let native = [samples[index].height, samples[index].width];
        Ok((Item { sample: index, native, ratio: [1.0; 2], pad: [0.0; 2] }, targets))
    }
}

impl TrainSource {
    /// The random numbers of an image, and whether it becomes a mosaic.
    fn random(&self, epoch: u64, index: usize) -> (Random, bool) {
        let mut random = Random::keyed(self.settings.seed, epoch, Purpose::Augment, index as u64);
        let is_mosaic = !self.settings.rect && random.chance(self.settings.augment.mosaic);
        (random, is_mosaic)
    }

    /// The cost of making an image: that of a mosaic is the sum of its four images.
    fn cost(&self, costs: &[u64], epoch: u64, index: usize) -> u64 {
        let (mut random, is_mosaic) = self.random(epoch, index);
        if !is_mosaic {
            return costs[index];
        }
        let (_, images) = draw_images(index, costs.len(), self.settings.image_size, &mut random);
        images.into_iter().map(|image| costs[image]).sum()
    }

    /// Draws a mosaic of image `index` and three others.
    fn mosaic(&self, index: usize, random: &mut Random) -> Layout {
        let size_of = |image| self.store.size_of(image);
        let LoaderSettings { image_size, augment, .. } = &self.settings;
        Layout::mosaic(index, self.store.samples(), size_of, *image_size, augment, random)
    }

    /// The images of a layout, or the parts that it shows, each in the size that it needs.
    fn images<'a>(
        &self,
        layout: &Layout,
        buffers: &'a mut [TileBuffers],
    ) -> Result<Vec<Loaded<'a>>, LoaderError> {
        let image = |(tile, buffers): (&LayoutTile, &'a mut TileBuffers)| {
            let TileBuffers { load, fitted } = buffers;
            let Some(columns) = layout.shown(tile) else {
                fitted.clone_from(&Image::default());
                return Ok(Loaded::Buffered(fitted, 0));
            };
            let [width, height] = tile.size;
            let fits = self.store.size_of(tile.image) == tile.size;
            let loaded = self.store.get(tile.image, fits.then_some(&columns), load)?;
            if fits {
                return Ok(loaded);
            }
            resize::linear_into(loaded.part().0, width, height, fitted);
            Ok(Loaded::Buffered(fitted, 0))
        };
        layout.tiles.iter().zip(buffers).map(image).collect()
    }
}
