//! The training loader: shuffled, augmented batches, which are the same for any number of threads and ranks
//! (spec §7, order of augmentation; §8).

use std::sync::Arc;

use rayon::prelude::*;
use yolo_plan::batch::QUAD;
use yolo_plan::options::Balance;

use super::batches::Batches;
use super::pipeline::{Halt, Pipeline, Recycler, Source as _, Work};
use super::settings::LoaderSettings;
use super::store::{ImageStore, Shrink, StoreSettings};
use super::train_source::TrainSource;
use super::{Batch, Kept, LoaderError};
use crate::image_weights::WeightedImages;
use crate::rect_batches::batch_shapes;
use crate::sampler::Sampler;
use crate::scan::Sample;

/// The bytes of scaled images that a machine keeps in memory without `--cache`: enough for small data sets, and little
/// compared with the memory of a machine that trains large ones.
const KEEP: usize = 256 << 20;

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
        let mut sampler = Sampler::new(samples.len(), &settings.shares, rank, seed);
        if settings.quad {
            if let Some(share) = settings.shares.iter().find(|share| !share.is_multiple_of(QUAD)) {
                let (name, requirement) = ("the batch of a rank", "a multiple of 4");
                return Err(LoaderError::Setting { name, requirement, value: *share });
            }
            sampler = sampler.with_full_batches();
            if sampler.batches_per_epoch() == 0 {
                let batch = settings.shares.iter().sum();
                return Err(LoaderError::NoFullBatch { images: samples.len(), batch });
            }
        }
        let rect = settings.rect.then(|| {
            // The images of all ranks determine the shape, so that it is the same on every rank.
            let batch = settings.shares.iter().sum();
            batch_shapes(&sizes(&samples), batch, settings.image_size, settings.stride, 0.0)
        });
        let costs = settings.balance.map(|balance| costs(&samples, balance));
        let weighted = settings
            .image_weights
            .map(|classes| WeightedImages::new(Arc::clone(&samples), classes, settings.seed));
        let all: Vec<usize> = (0..samples.len()).collect();
        let store = ImageStore::new(
            samples,
            &StoreSettings {
                size: settings.image_size,
                shrink: Shrink::Linear,
                cache: settings.cache,
                used: &all,
                keep: KEEP,
                memory: &settings.memory,
                promised: 0,
            },
        );
        Ok(Self(Pipeline::new(TrainSource { store, sampler, rect, costs, weighted, settings }, workers)?))
    }

    /// The number of batches in an epoch, the same on every rank. The last may be smaller.
    pub fn batches_per_epoch(&self) -> usize {
        self.0.source().batches()
    }

    /// Which images each rank has in each batch.
    pub fn sampler(&self) -> &Sampler {
        &self.0.source().sampler
    }

    /// With image weights, sets the average precision of each class in the last validation: images of classes with
    /// a low one are drawn more often in the epochs that follow. Before the first validation, all are 0.
    pub fn set_average_precisions(&mut self, average_precisions: &[f64]) {
        if let Some(weighted) = &self.0.source().weighted {
            weighted.set_average_precisions(average_precisions);
            // What was made ahead is of another draw.
            self.0.pause();
        }
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

    /// What is kept in memory now.
    pub fn kept(&self) -> Kept {
        self.0.source().store.kept()
    }

    /// The bytes of this machine's memory that images may still take.
    pub fn memory_to_come(&self) -> u64 {
        self.0.source().store.to_come()
    }

    /// The batches of an epoch, beginning with `first_batch`. The threads start at once; after the last
    /// batch they make the first batches of the next epoch.
    pub fn epoch(
        &mut self,
        epoch: u64,
        first_batch: usize,
    ) -> impl Iterator<Item = Result<Batch, LoaderError>> + '_ {
        self.0.resume();
        self.prefetch(epoch, first_batch);
        Batches::new(&mut self.0, epoch, first_batch)
    }

    /// Ends the making of batches from another thread, until the next call of [`Self::epoch`].
    pub fn halt(&self) -> Halt {
        self.0.halt()
    }

    /// Whether threads make the batches. Without them, whoever asks for a batch makes it.
    pub fn has_threads(&self) -> bool {
        self.0.has_threads()
    }

    /// The time that the loader's threads have worked since they were started, on all batches.
    pub fn work(&self) -> Work {
        self.0.work()
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
