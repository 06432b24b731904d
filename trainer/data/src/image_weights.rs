//! The images of an epoch. They are all images once or, with `--image-weights`, as many that are drawn with
//! replacement, those with objects of classes that are found poorly more often (spec §6). The draw depends on seed,
//! epoch and the last average precisions only, so all ranks and a resumed run have the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::random::{Purpose, Random};
use crate::scan::Sample;

/// The images of an epoch, by their positions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EpochImages {
    /// This many, each at its own position.
    All(usize),
    /// Those that were drawn.
    Drawn(Arc<[usize]>),
}

impl EpochImages {
    /// The image at a position.
    pub fn at(&self, position: usize) -> usize {
        match self {
            Self::All(_) => position,
            Self::Drawn(images) => images[position],
        }
    }

    /// An image at a random position.
    pub fn any(&self, random: &mut Random) -> usize {
        self.at(random.below(self.count()))
    }

    /// The number of positions.
    pub fn count(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Drawn(images) => images.len(),
        }
    }
}

/// Draws the images of each epoch by weight.
#[derive(Debug)]
pub struct WeightedImages {
    samples: Arc<[Sample]>,
    seed: u64,
    /// The rarer a class, the higher; they add up to 1.
    class_weights: Vec<f64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    average_precisions: Vec<f64>,
    /// The draw of the epoch that is being loaded, which all of its images need.
    drawn: Option<(u64, Arc<[usize]>)>,
}

impl WeightedImages {
    /// Draws of these images, whose labels have `classes` classes. Until
    /// [`Self::set_average_precisions`], no class was found at all.
    pub fn new(samples: Arc<[Sample]>, classes: usize, seed: u64) -> Self {
        let class_weights = class_weights(&samples, classes);
        let state = State { average_precisions: vec![0.0; classes], drawn: None };
        Self { samples, seed, class_weights, state: Mutex::new(state) }
    }

    /// Sets the average precision of each class in the last validation, for the epochs that follow. Classes
    /// that are not among them were not found.
    pub fn set_average_precisions(&self, average_precisions: &[f64]) {
        let mut state = self.state();
        state.average_precisions = average_precisions.to_vec();
        state.average_precisions.resize(self.class_weights.len(), 0.0);
        state.drawn = None;
    }

    /// The images of an epoch, as many as there are.
    pub fn of_epoch(&self, epoch: u64) -> Arc<[usize]> {
        let mut state = self.state();
        match &state.drawn {
            Some((of, images)) if *of == epoch => Arc::clone(images),
            _ => {
                let classes = epoch_weights(&self.class_weights, &state.average_precisions);
                let mut random = Random::keyed(self.seed, epoch, Purpose::ImageWeights, 0);
                let images: Arc<[usize]> = draw(&image_weights(&self.samples, &classes), &mut random).into();
                state.drawn = Some((epoch, Arc::clone(&images)));
                images
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is a single assignment, so a panic leaves a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class of a box.
fn class_of(label: &[f32; 5]) -> usize {
    label[0] as usize
}

/// The weight of each class: the inverse of its number of boxes, which counts as 1 if there are none, scaled so that
/// the sum is 1 (spec §6).
pub fn class_weights(samples: &[Sample], classes: usize) -> Vec<f64> {
    let mut counts = vec![0_u64; classes];
    for label in samples.iter().flat_map(|sample| &sample.boxes) {
        if let Some(count) = counts.get_mut(class_of(label)) {
            *count += 1;
        }
    }
    let inverse: Vec<f64> = counts.into_iter().map(|count| 1.0 / count.max(1) as f64).collect();
    let sum: f64 = inverse.iter().sum();
    inverse.into_iter().map(|weight| weight / sum).collect()
}

/// The weight of each class in an epoch that follows a validation with these average precisions:
/// `nc · weight · (1 − AP)² / nc` (spec §6).
pub fn epoch_weights(class_weights: &[f64], average_precisions: &[f64]) -> Vec<f64> {
    let of_class = |(weight, precision): (&f64, &f64)| weight * (1.0 - precision).powi(2);
    class_weights.iter().zip(average_precisions).map(of_class).collect()
}

/// The weight of each image: the sum of those of its objects (spec §6).
pub fn image_weights(samples: &[Sample], class_weights: &[f64]) -> Vec<f64> {
    let of_label = |label: &[f32; 5]| class_weights.get(class_of(label)).copied().unwrap_or_default();
    samples.iter().map(|sample| sample.boxes.iter().map(of_label).sum()).collect()
}

/// As many indices as there are weights, drawn with replacement in proportion to them. If all weights are zero,
/// because every class is found without an error, all indices are equally likely.
pub fn draw(weights: &[f64], random: &mut Random) -> Vec<usize> {
    let mut sum = 0.0;
    let ends: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    let count = weights.len();
    if sum <= 0.0 {
        return (0..count).map(|_| random.below(count)).collect();
    }
    let one = |point: f64| ends.partition_point(|end| *end <= point).min(count - 1);
    (0..count).map(|_| one(random.unit() * sum)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_draw_has_as_many_images_and_none_without_weight(
            mut weights in prop::collection::vec(0.0_f64..1.0, 2..60), zero: prop::sample::Index, seed: u64,
        ) {
            let zero = zero.index(weights.len());
            weights[zero] = 0.0;
            let images = draw(&weights, &mut Random::keyed(seed, 0, Purpose::ImageWeights, 0));
            prop_assert_eq!(images.len(), weights.len());
            let any = weights.iter().any(|weight| *weight > 0.0);
            prop_assert!(images.iter().all(|&image| image < weights.len() && !(any && image == zero)));
        }
    }

    #[test]
    fn images_are_drawn_in_proportion_to_their_weights() {
        let weights = [0.0, 1.0, 2.0, 5.0];
        let mut counts = [0; 4];
        for epoch in 0..5000 {
            let mut random = Random::keyed(3, epoch, Purpose::ImageWeights, 0);
            draw(&weights, &mut random).into_iter().for_each(|image| counts[image] += 1);
        }
        for (count, weight) in counts.iter().zip(weights) {
            let expected = 20_000.0 * weight / 8.0;
            // Four standard deviations of a binomial are below 300.
            assert!((f64::from(*count) - expected).abs() < 300.0, "{counts:?}");
        }
    }

    #[test]
    fn weights_of_zero_draw_all_images_alike() {
        let mut seen = [false; 5];
        for epoch in 0..50 {
            let mut random = Random::keyed(3, epoch, Purpose::ImageWeights, 0);
            draw(&[0.0; 5], &mut random).into_iter().for_each(|image| seen[image] = true);
        }
        assert_eq!(seen, [true; 5]);
    }
}
