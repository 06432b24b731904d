//! The validation loader: every image once, without augmentation, in rectangular batches of similar aspect
//! ratio or in square ones. Each item has the numbers that map boxes back to the pixels of the file (spec
//! §7, §9).

use std::sync::Arc;

use yolo_plan::options::Cache;

use super::batches::Batches;
use super::pipeline::{BatchPlan, Halt, Made, Pipeline, Recycler, Scratch, Source};
use super::store::{ImageStore, Shrink, StoreSettings};
use super::train::sizes;
use super::{Batch, ImageMemory, Item, LoaderError};
use crate::augment::label::{Label, normalize};
use crate::image::finish::Finish;
use crate::image::letterbox::{Letterbox, LetterboxOptions};
use crate::rect_batches::{RectBatches, batch_shapes};
use crate::sampler::Sampler;
use crate::scan::Sample;

/// The bytes of scaled images that a machine keeps in memory between validations without `--cache`.
const KEEP: usize = 64 << 20;

/// The settings of a validation loader.
#[derive(Debug, Clone)]
pub struct ValSettings {
    /// The longer side of an image in pixels.
    pub image_size: usize,
    /// Largest stride of the model; batches are multiples of it.
    pub stride: usize,
    /// Images per batch.
    pub batch: usize,
    /// Threads that load images; 0 loads in the caller's thread.
    pub workers: usize,
    /// Rectangular batches of images with similar shapes; otherwise square batches in the order of the images.
    pub rect: bool,
    /// Padding of rectangular batches in strides: 0.5 (spec §7).
    pub pad: f64,
    /// Where scaled images are kept between validations.
    pub cache: Option<Cache>,
    /// The memory for them. Ranks validate different images, so they share none.
    pub memory: ImageMemory,
    /// The bytes of that memory that a training loader will take.
    pub promised: u64,
    /// This rank, and the ranks that share the batches: the loader has every `world`th batch, beginning
    /// with number `rank`. The batches and their shapes do not depend on the ranks.
    pub rank: usize,
    /// Ranks that share the batches; 1 for all batches.
    pub world: usize,
}

/// Loads validation batches.
pub struct ValLoader(Pipeline<ValSource>);

impl ValLoader {
    /// Starts a loader of `samples`.
    ///
    /// # Errors
    ///
    /// If there are no samples, a size is zero, or threads cannot be started.
    pub fn new(samples: Arc<[Sample]>, settings: ValSettings) -> Result<Self, LoaderError> {
        if samples.is_empty() {
            return Err(LoaderError::NoImages);
        }
        let positive = [
            ("the image size", settings.image_size),
            ("the stride", settings.stride),
            ("the batch size", settings.batch),
            ("the number of ranks", settings.world),
        ];
        if let Some((name, value)) = positive.into_iter().find(|&(_, value)| value == 0) {
            return Err(LoaderError::Setting { name, requirement: "at least 1", value });
        }
        let sampler = Sampler::new(samples.len(), &[settings.batch], 0, None);
        if settings.rank >= settings.world {
            let requirement = "below the number of ranks";
            return Err(LoaderError::Setting { name: "the rank", requirement, value: settings.rank });
        }
        let ValSettings { image_size, stride, batch, pad, rank, world, .. } = settings;
        let rect = settings.rect.then(|| batch_shapes(&sizes(&samples), batch, image_size, stride, pad));
        let workers = settings.workers;
        let order = rect.as_ref().map_or_else(|| sampler.order(0), |rect| rect.order.clone());
        let all = sampler.batches_per_epoch();
        let own: Vec<usize> =
            (rank..all).step_by(world).flat_map(|number| sampler.batch(&order, number)).collect();
        let store = ImageStore::new(
            samples,
            &StoreSettings {
                size: image_size,
                shrink: Shrink::Area,
                cache: settings.cache,
                used: &own,
                keep: KEEP,
                memory: &settings.memory.apart(),
                promised: settings.promised,
            },
        );
        Ok(Self(Pipeline::new(ValSource { store, sampler, rect, image_size, rank, world }, workers)?))
    }

    /// The number of this rank's batches, which can be none.
    pub fn batches(&self) -> usize {
        self.0.source().batches()
    }

    /// The number among the batches of all ranks of this rank's batch `index`.
    pub fn number(&self, index: usize) -> usize {
        self.0.source().number(index)
    }

    /// All batches of this rank, from the first.
    pub fn iter(&mut self) -> impl Iterator<Item = Result<Batch, LoaderError>> + '_ {
        self.0.resume();
        if self.batches() > 0 {
            self.0.seek(0, 0);
        }
        Batches::new(&mut self.0, 0, 0)
    }

    /// Ends the making of batches from another thread, until the next call of [`Self::iter`].
    pub fn halt(&self) -> Halt {
        self.0.halt()
    }

    /// Whether threads make the batches. Without them, whoever asks for a batch makes it.
    pub fn has_threads(&self) -> bool {
        self.0.has_threads()
    }

    /// Takes the buffers of used batches.
    pub fn recycler(&self) -> Recycler {
        self.0.recycler()
    }

    /// The warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.0.source().store.take_warnings()
    }
}

struct ValSource {
    store: ImageStore,
    sampler: Sampler,
    /// The order and shapes of rectangular batches.
    rect: Option<RectBatches>,
    image_size: usize,
    rank: usize,
    world: usize,
}

impl ValSource {
    fn number(&self, index: usize) -> usize {
        index * self.world + self.rank
    }
}

impl Source for ValSource {
    fn runs_ahead(&self) -> bool {
        false
    }

    fn batches(&self) -> usize {
        let all = self.sampler.batches_per_epoch();
        all.saturating_sub(self.rank).div_ceil(self.world)
    }

    fn order(&self, epoch: u64) -> Vec<usize> {
        self.rect.as_ref().map_or_else(|| self.sampler.order(epoch), |rect| rect.order.clone())
    }

    fn plan(&self, order: &[usize], batch: usize) -> BatchPlan {
        let batch = self.number(batch);
        let [height, width] = self.rect.as_ref().map_or([self.image_size; 2], |rect| rect.shapes[batch]);
        BatchPlan { height, width, images: self.sampler.batch(order, batch), per_image: 1 }
    }

    fn make(
        &self,
        _epoch: u64,
        images: &[usize],
        size: [usize; 2],
        scratch: &mut Scratch,
        planes: &mut [u8],
    ) -> Result<Made, LoaderError> {
        let index = images[0];
        let sample = &self.store.samples()[index];
        let Scratch { tiles: [[buffers, ..], _], canvases: [canvas, _], .. } = scratch;
        let loaded = self.store.get(index, None, &mut buffers.load)?;
        let loaded = loaded.part().image;
        let letterbox = Letterbox::new(loaded.height, loaded.width, &LetterboxOptions::exact(size, false));
        letterbox.apply(loaded, canvas);
        Finish::default().write(canvas, planes);
        let extent = [loaded.width as f64 * letterbox.ratio[1], loaded.height as f64 * letterbox.ratio[0]];
        let labels: Vec<Label> = Label::of_sample(sample, extent, letterbox.pad).collect();
        let targets = normalize(&labels, size, false, false).collect();
        let item = Item {
            sample: index,
            native: [sample.height, sample.width],
            ratio: [
                (extent[1] / f64::from(sample.height)) as f32,
                (extent[0] / f64::from(sample.width)) as f32,
            ],
            pad: letterbox.pad.map(|p| p as f32),
        };
        Ok((item, targets))
    }
}
