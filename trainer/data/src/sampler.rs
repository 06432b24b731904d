//! Assigns images to batches and ranks. An epoch is one permutation of all images, keyed by (seed,
//! epoch). A global batch is a window of it, and each rank takes an equal share of the window. So all
//! ranks have the same number of batches, of the same sizes, and the images of a step do not depend on
//! the number of ranks.

use std::ops::Range;

use crate::random::{Purpose, Random};

/// Assigns the images of an epoch to batches and ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampler {
    images: usize,
    batch_per_rank: usize,
    rank: usize,
    world: usize,
    /// The seed of the order; with `None`, images keep their order.
    seed: Option<u64>,
}

impl Sampler {
    /// A sampler of `images` images, in random order if there is a seed.
    pub fn new(images: usize, batch_per_rank: usize, rank: usize, world: usize, seed: Option<u64>) -> Self {
        debug_assert!(rank < world && batch_per_rank > 0);
        Self { images, batch_per_rank, rank, world, seed }
    }

    /// The number of images in an epoch over all ranks: all images, and repetitions up to a multiple of
    /// the number of ranks.
    fn padded(&self) -> usize {
        self.images.next_multiple_of(self.world)
    }

    /// The number of batches in an epoch, the same on every rank. The last may be smaller.
    pub fn batches_per_epoch(&self) -> usize {
        self.padded().div_ceil(self.batch_per_rank * self.world)
    }

    /// The images of an epoch, in order.
    pub fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.images).collect();
        if let Some(seed) = self.seed {
            Random::keyed(seed, epoch, Purpose::Order, 0).shuffle(&mut order);
        }
        order
    }

    /// The positions of global batch `batch` in the order. Positions past the last image wrap around.
    pub fn global(&self, batch: usize) -> Range<usize> {
        let size = self.batch_per_rank * self.world;
        (batch * size).min(self.padded())..((batch + 1) * size).min(self.padded())
    }

    /// The positions of this rank in global batch `batch`.
    pub fn local(&self, batch: usize) -> Range<usize> {
        let Range { start, end } = self.global(batch);
        let share = (end - start) / self.world;
        start + self.rank * share..start + (self.rank + 1) * share
    }

    /// The images of this rank in batch `batch` of an epoch with `order`.
    pub fn batch(&self, order: &[usize], batch: usize) -> Vec<usize> {
        self.local(batch).map(|position| order[position % order.len()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_image_appears_once_and_ranks_get_equal_shares(
            images in 1_usize..200, batch in 1_usize..20, world in 1_usize..6, seed: u64, epoch: u64,
        ) {
            let ranks: Vec<Sampler> =
                (0..world).map(|rank| Sampler::new(images, batch, rank, world, Some(seed))).collect();
            let mut counts = vec![0; images];
            for b in 0..ranks[0].batches_per_epoch() {
                let mut sizes = Vec::new();
                for sampler in &ranks {
                    let part = sampler.batch(&sampler.order(epoch), b);
                    sizes.push(part.len());
                    part.into_iter().for_each(|image| counts[image] += 1);
                }
                prop_assert!(sizes[0] > 0 && sizes[0] <= batch);
                prop_assert!(sizes.iter().all(|&size| size == sizes[0]));
            }
            let repeated: usize = counts.iter().map(|&c| c - 1).sum();
            prop_assert_eq!(repeated, images.next_multiple_of(world) - images);
            prop_assert!(ranks[0].local(ranks[0].batches_per_epoch()).is_empty());
        }
    }

    #[test]
    fn the_batches_of_all_ranks_add_up_to_those_of_one() {
        let one = Sampler::new(22, 4, 0, 1, Some(3));
        let order = one.order(5);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_ne!(sorted, order);
        assert_ne!(one.order(6), order);
        for b in 0..one.batches_per_epoch() {
            let two = [0, 1].map(|rank| Sampler::new(22, 2, rank, 2, Some(3)).batch(&order, b));
            assert_eq!(two.concat(), one.batch(&order, b));
        }
    }

    #[test]
    fn without_a_seed_images_keep_their_order() {
        assert_eq!(Sampler::new(4, 2, 0, 1, None).order(9), [0, 1, 2, 3]);
    }
}
