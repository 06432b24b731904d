//! The iterator over the batches of an epoch.

use super::pipeline::{Pipeline, Source};
use super::{Batch, LoaderError};

/// The remaining batches of an epoch or a validation. The iterator ends after an error.
pub(super) struct Batches<'a, S: Source> {
    pipeline: &'a mut Pipeline<S>,
    epoch: u64,
    next: usize,
}

impl<'a, S: Source> Batches<'a, S> {
    pub(super) fn new(pipeline: &'a mut Pipeline<S>, epoch: u64, first: usize) -> Self {
        Self { pipeline, epoch, next: first }
    }
}

impl<S: Source> Iterator for Batches<'_, S> {
    type Item = Result<Batch, LoaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.pipeline.source().batches();
        if self.next >= batches {
            return None;
        }
        let batch = self.pipeline.batch(self.epoch, self.next);
        self.next = if batch.is_ok() { self.next + 1 } else { batches };
        Some(batch)
    }
}
