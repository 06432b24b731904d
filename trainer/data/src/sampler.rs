//! Assigns images to batches and ranks. An epoch is one permutation of all images, keyed by (seed,
//! epoch). A global batch is a window of it, and each rank takes its share of the window. So all ranks
//! have the same number of batches, and the images of a step do not depend on the number of ranks.

use std::ops::Range;

use crate::random::{Purpose, Random};

/// Assigns the images of an epoch to batches and ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampler {
    images: usize,
    /// Images of each rank in a full batch.
    shares: Vec<usize>,
    rank: usize,
    /// The seed of the order; with `None`, images keep their order.
    seed: Option<u64>,
    /// Whether images that do not fill a batch are left out.
    only_full: bool,
}

impl Sampler {
    /// A sampler of `images` images, in random order if there is a seed. A full batch has `shares[r]`
    /// images of rank r, at least one.
    pub fn new(images: usize, shares: &[usize], rank: usize, seed: Option<u64>) -> Self {
        debug_assert!(rank < shares.len() && shares.iter().all(|share| *share > 0));
        Self { images, shares: shares.to_vec(), rank, seed, only_full: false }
    }

    /// The same sampler with full batches only: an epoch leaves out the last images of its order that do not
    /// fill one.
    #[must_use]
    pub fn with_full_batches(self) -> Self {
        Self { only_full: true, ..self }
    }

    /// The number of ranks.
    pub fn world(&self) -> usize {
        self.shares.len()
    }

    /// Images of a full batch over all ranks.
    fn size(&self) -> usize {
        self.shares.iter().sum()
    }

    /// The number of images in an epoch over all ranks: all images, and repetitions, so that each rank
    /// has an image in the last batch; or only those that fill batches. With equal shares the last batch has equal shares too.
    pub fn padded(&self) -> usize {
        let (world, size) = (self.world(), self.size());
        if self.only_full {
            return self.images - self.images % size;
        }
        if self.shares.iter().all(|share| *share == self.shares[0]) {
            return self.images.next_multiple_of(world);
        }
        let rest = self.images % size;
        if rest == 0 { self.images } else { self.images - rest + rest.max(world) }
    }

    /// The number of batches in an epoch, the same on every rank. The last may be smaller.
    pub fn batches_per_epoch(&self) -> usize {
        self.padded().div_ceil(self.size())
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
        let (size, padded) = (self.size(), self.padded());
        (batch * size).min(padded)..((batch + 1) * size).min(padded)
    }

    /// The positions of this rank in global batch `batch`.
    pub fn local(&self, batch: usize) -> Range<usize> {
        self.of_rank(batch, self.rank)
    }

    /// The positions of a rank in global batch `batch`: one image, and of the rest a part that is in
    /// proportion to its share.
    pub fn of_rank(&self, batch: usize, rank: usize) -> Range<usize> {
        let Range { start, end } = self.global(batch);
        if start == end {
            return start..start;
        }
        let world = self.world();
        let (rest, whole) = (end - start - world, self.size() - world);
        let first = |rank: usize| {
            let before: usize = self.shares[..rank].iter().map(|share| share - 1).sum();
            start + rank + (rest * before).checked_div(whole).unwrap_or(0)
        };
        first(rank)..first(rank + 1)
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
                (0..world).map(|rank| Sampler::new(images, &vec![batch; world], rank, Some(seed))).collect();
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

        #[test]
        fn unequal_shares_are_kept_in_full_batches_and_in_proportion_in_the_last(
            images in 1_usize..300, shares in prop::collection::vec(1_usize..20, 1..6), seed: u64,
        ) {
            let size: usize = shares.iter().sum();
            let ranks: Vec<Sampler> =
                (0..shares.len()).map(|rank| Sampler::new(images, &shares, rank, Some(seed))).collect();
            let order = ranks[0].order(0);
            let mut counts = vec![0; images];
            for b in 0..ranks[0].batches_per_epoch() {
                let window = ranks[0].global(b).len();
                for (sampler, share) in ranks.iter().zip(&shares) {
                    let part = sampler.batch(&order, b);
                    prop_assert!(!part.is_empty() && part.len() <= *share);
                    prop_assert!(window < size || part.len() == *share);
                    part.into_iter().for_each(|image| counts[image] += 1);
                }
            }
            prop_assert!(counts.iter().all(|&count| count > 0));
            prop_assert!(counts.iter().sum::<usize>() < images + shares.len());
        }
    }

    #[test]
    fn the_batches_of_all_ranks_add_up_to_those_of_one() {
        let one = Sampler::new(22, &[4], 0, Some(3));
        let order = one.order(5);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_ne!(sorted, order);
        assert_ne!(one.order(6), order);
        for b in 0..one.batches_per_epoch() {
            let two = [0, 1].map(|rank| Sampler::new(22, &[2, 2], rank, Some(3)).batch(&order, b));
            assert_eq!(two.concat(), one.batch(&order, b));
            let three = [0, 1].map(|rank| Sampler::new(22, &[3, 1], rank, Some(3)).batch(&order, b));
            assert_eq!(three.concat(), one.batch(&order, b));
        }
    }

    #[test]
    fn full_batches_leave_out_the_rest() {
        for (images, batches) in [(23, 2), (16, 2), (7, 0)] {
            let sampler = Sampler::new(images, &[4, 4], 1, Some(3)).with_full_batches();
            assert_eq!(sampler.batches_per_epoch(), batches);
            let order = sampler.order(0);
            assert!((0..batches).all(|batch| sampler.batch(&order, batch).len() == 4));
        }
    }

    #[test]
    fn without_a_seed_images_keep_their_order() {
        assert_eq!(Sampler::new(4, &[2], 0, None).order(9), [0, 1, 2, 3]);
    }
}
