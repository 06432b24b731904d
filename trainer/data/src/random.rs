//! Random numbers that depend on their use, not on the order of the calls. Every generator is keyed by
//! (seed, epoch, purpose, image), so data order and augmentation are the same for any number of workers
//! or ranks and after a resume. The generator is ChaCha8 with these four numbers as its key; different
//! keys give independent streams.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use yolo_plan::evolve::Draw;

/// The use of a stream of random numbers. Streams of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The order of the images of an epoch.
    Order,
    /// The augmentation of one image in one epoch.
    Augment,
    /// The search for anchors that fit the labels.
    Anchors,
    /// The size of the images of one batch in one epoch.
    BatchSize,
    /// The images of an epoch that are drawn by weight.
    ImageWeights,
    /// What four images of a batch become, in one epoch.
    Quad,
    /// The hyperparameters of one generation of an evolution.
    Evolution,
}

/// A stream of random numbers for one purpose.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream for `purpose` of image `image` in epoch `epoch` of a run with seed `seed`.
    pub fn keyed(seed: u64, epoch: u64, purpose: Purpose, image: u64) -> Self {
        let mut key = [0; 32];
        for (slot, word) in key.chunks_exact_mut(8).zip([seed, epoch, purpose as u64, image]) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// A number in `[low, high)`, or `low` if both are equal.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// An index below `n`, which must not be zero. It is drawn with 64 bits, so that 32-bit platforms get
    /// the same number.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n as u64) as usize
    }

    /// A number from Beta(`n`, `n`), computed from two sums of `n` exponentials.
    pub fn beta(&mut self, n: u32) -> f64 {
        // `1 - u` is in (0, 1], where the logarithm is finite.
        let mut gamma = || (0..n).map(|_| -(1.0 - self.unit()).ln()).sum::<f64>();
        let (a, b) = (gamma(), gamma());
        a / (a + b)
    }

    /// A number from the standard normal distribution, by the Box–Muller transform.
    pub fn normal(&mut self) -> f64 {
        // `1 - u` is in (0, 1], where the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The mutations of an evolution, whose rules are in the crate of the plan.
impl Draw for Random {
    fn unit(&mut self) -> f64 {
        Self::unit(self)
    }

    fn normal(&mut self) -> f64 {
        Self::normal(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_one_stream_and_each_part_of_the_key_changes_it() {
        let draw = |seed, epoch, purpose, image| Random::keyed(seed, epoch, purpose, image).unit();
        let base = draw(1, 2, Purpose::Augment, 3);
        assert_eq!(base, draw(1, 2, Purpose::Augment, 3));
        assert_ne!(base, draw(0, 2, Purpose::Augment, 3));
        assert_ne!(base, draw(1, 0, Purpose::Augment, 3));
        assert_ne!(base, draw(1, 2, Purpose::Order, 3));
        assert_ne!(base, draw(1, 2, Purpose::Augment, 0));
    }

    #[test]
    fn beta_32_32_has_mean_one_half_and_variance_one_260th() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| random.beta(32)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.002, "mean {mean}");
        // Beta(a, a) has variance 1 / (4 (2a + 1)).
        assert!((variance - 1.0 / 260.0).abs() < 0.0003, "variance {variance}");
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let mut random = Random::keyed(0, 0, Purpose::Anchors, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_uses_every_position() {
        let mut seen = [[false; 5]; 5];
        for image in 0..200 {
            let mut items = [0, 1, 2, 3, 4];
            Random::keyed(7, 0, Purpose::Order, image).shuffle(&mut items);
            for (position, &item) in items.iter().enumerate() {
                seen[position][item] = true;
            }
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3, 4]);
        }
        assert!(seen.iter().flatten().all(|&s| s));
    }
}
