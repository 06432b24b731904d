//! The batches of a training loader without end: one epoch after the other.

use std::time::{Duration, Instant};

use yolo_data::loader::{Batch, Recycler, TrainLoader};

use crate::error::TrainError;

/// Batches without end.
pub(super) struct Stream {
    loader: TrainLoader,
    recycler: Recycler,
    epoch: u64,
    /// The next batch of the epoch.
    next: usize,
}

impl Stream {
    /// The batches of this loader, from the first.
    pub(super) fn new(loader: TrainLoader) -> Self {
        Self { recycler: loader.recycler(), loader, epoch: 0, next: 0 }
    }

    /// The next batch.
    pub(super) fn batch(&mut self) -> Result<Batch, TrainError> {
        if self.next == self.loader.batches_per_epoch() {
            self.epoch += 1;
            self.next = 0;
        }
        let batch = self.loader.epoch(self.epoch, self.next).next();
        self.next += 1;
        Ok(batch.ok_or_else(|| TrainError::new("the loader ended before the epoch"))??)
    }

    /// The next batch that is not the last of an epoch, which may be smaller.
    pub(super) fn whole_batch(&mut self) -> Result<Batch, TrainError> {
        let batch = self.batch()?;
        if self.next < self.loader.batches_per_epoch() {
            return Ok(batch);
        }
        self.recycle(batch.pixels);
        self.batch()
    }

    /// Takes the buffer of a used batch.
    pub(super) fn recycle(&self, pixels: Vec<u8>) {
        self.recycler.give(pixels);
    }

    /// Loads every image once, but stops after `limit`. A run keeps images in memory from its first
    /// epoch on, so later epochs are faster.
    pub(super) fn warm_up(&mut self, limit: Duration) -> Result<(), TrainError> {
        let began = Instant::now();
        for _ in 0..self.loader.batches_per_epoch() {
            let batch = self.batch()?;
            self.recycle(batch.pixels);
            if began.elapsed() >= limit {
                break;
            }
        }
        Ok(())
    }

    /// Lets the loader's threads rest until the next batch is needed.
    pub(super) fn pause(&mut self) {
        self.loader.pause();
    }

    /// The same batches, loaded by this many threads.
    pub(super) fn with_workers(self, workers: usize) -> Result<Self, TrainError> {
        let loader = self.loader.with_workers(workers)?;
        Ok(Self { recycler: loader.recycler(), loader, epoch: self.epoch, next: self.next })
    }
}
