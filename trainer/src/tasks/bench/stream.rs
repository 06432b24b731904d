//! The batches of a training loader without end, one epoch after the other, and how many images they have.

use std::time::{Duration, Instant};

use yolo_data::loader::{Batch, Halt, Recycler, TrainLoader, Work};

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

    /// A batch of this many images. The last batch of an epoch may be smaller, and so are all if the
    /// split is, so the next batches are joined until they suffice.
    pub(super) fn batch_of(&mut self, images: usize) -> Result<Batch, TrainError> {
        let mut whole = self.batch()?;
        while whole.items.len() < images {
            let next = self.batch()?;
            join(&mut whole, &next);
            self.recycle(next.pixels);
        }
        keep(&mut whole, images);
        Ok(whole)
    }

    /// Takes the buffer of a used batch.
    pub(super) fn recycle(&self, pixels: Vec<u8>) {
        self.recycler.give(pixels);
    }

    /// Takes the buffers of used batches while the batches are in use elsewhere.
    pub(super) fn recycler(&self) -> Recycler {
        self.recycler.clone()
    }

    /// Whether the loader has threads.
    pub(super) fn has_threads(&self) -> bool {
        self.loader.has_threads()
    }

    /// Ends the making of batches while they are in use elsewhere.
    pub(super) fn halt(&self) -> Halt {
        self.loader.halt()
    }

    /// The time that the loader's threads have worked.
    pub(super) fn work(&self) -> Work {
        self.loader.work()
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

    /// Continues with the first batch of an epoch, so that all ranks are at the same one.
    pub(super) fn go_to_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.next = 0;
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

/// Appends the images of `next`, which have the same size.
fn join(batch: &mut Batch, next: &Batch) {
    let before = batch.items.len() as f32;
    batch.pixels.extend_from_slice(&next.pixels);
    batch.items.extend_from_slice(&next.items);
    let moved = |&[image, rest @ ..]: &[f32; 6]| {
        let [class, x, y, width, height] = rest;
        [before + image, class, x, y, width, height]
    };
    batch.targets.extend(next.targets.iter().map(moved));
}

/// Drops all but the first images.
fn keep(batch: &mut Batch, images: usize) {
    batch.items.truncate(images);
    batch.pixels.truncate(batch.items.len() * 3 * batch.height * batch.width);
    batch.targets.retain(|&[image, ..]| (image as usize) < images);
}

/// How many of these images are measured: as many as fill whole batches, or all if they are fewer than a batch. A step
/// with the few images that are left over at the end of an epoch takes a small model on a GPU nearly as long as a whole
/// one, so training on few images would look slower than its network and its loader, which have none.
pub(super) fn whole_batches(images: usize, batch: usize) -> usize {
    match images / batch.max(1) {
        0 => images,
        batches => batches * batch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yolo_data::loader::Item;

    /// A batch of 1×2 images, of which number `i` has `i` targets of class `i`.
    fn batch(images: usize) -> Batch {
        let item = Item { sample: 0, native: [1, 2], ratio: [1.0; 2], pad: [0.0; 2] };
        let targets = (0..images)
            .flat_map(|image| std::iter::repeat_n([image as f32, image as f32, 0.5, 0.5, 1.0, 1.0], image));
        Batch {
            height: 1,
            width: 2,
            pixels: (0..images * 6).map(|byte| byte as u8).collect(),
            targets: targets.collect(),
            items: vec![item; images],
        }
    }

    #[test]
    fn joined_batches_keep_the_targets_of_each_image() {
        let mut whole = batch(2);
        join(&mut whole, &batch(3));
        assert_eq!((whole.items.len(), whole.pixels.len()), (5, 30));
        assert_eq!(&whole.pixels[12..], &batch(3).pixels[..]);
        let of: Vec<[f32; 2]> = whole.targets.iter().map(|&[image, class, ..]| [image, class]).collect();
        assert_eq!(of, [[1.0, 1.0], [3.0, 1.0], [4.0, 2.0], [4.0, 2.0]]);
    }

    #[test]
    fn images_beyond_those_wanted_are_dropped_with_their_targets() {
        let mut whole = batch(4);
        keep(&mut whole, 3);
        assert_eq!(whole, Batch { pixels: (0..18).collect(), ..batch(3) });
    }

    #[test]
    fn images_that_do_not_fill_a_batch_are_left_out() {
        assert_eq!(whole_batches(205, 64), 192);
        assert_eq!(whole_batches(192, 64), 192);
        assert_eq!(whole_batches(63, 64), 63, "a smaller batch is better than none");
        assert_eq!([whole_batches(0, 64), whole_batches(5, 1)], [0, 5]);
    }
}
