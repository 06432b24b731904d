//! AutoAnchor (spec §7): checks before a training whether the anchors of a model suit the labels,
//! and replaces them when others, found by clustering and evolution, suit better. The search
//! itself is plain Rust over the sizes of the boxes; only [`check`] knows the model.

mod cluster;
mod evolve;
mod fit;

use tch::{Kind, Tensor, no_grad};
use yolo_data::random::{Purpose, Random};
use yolo_data::scan::Sample;

pub use fit::{Fit, Size};

use crate::error::TrainError;
use crate::model::Model;

/// Anchors with a best possible recall above this are good enough (spec §7).
const GOOD_RECALL: f64 = 0.98;
/// Relative range of the random scale of each image (spec §7).
const JITTER: (f64, f64) = (0.9, 1.1);
/// A box with both sides below this, in pixels, is not searched for (spec §7).
const MIN_SIDE: f32 = 2.0;
/// The search looks at no more boxes than this, drawn at random: more do not move the result, but
/// would let large data sets wait for minutes. The recall is always that of all boxes.
const MAX_SEARCHED: usize = 50_000;

/// What AutoAnchor found, and did.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Labelled boxes.
    pub labels: usize,
    /// How the model's anchors fitted them.
    pub before: Fit,
    /// What followed.
    pub outcome: Outcome,
}

/// What AutoAnchor decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// There is no labelled box to fit anchors to.
    NoLabels,
    /// The model's anchors fit well enough.
    Good,
    /// Every box is too small to search for anchors.
    TooSmall,
    /// The search found nothing better: the model keeps its anchors.
    Kept {
        /// How the found anchors fit.
        found: Fit,
    },
    /// The search found better anchors.
    Replaced {
        /// How they fit.
        found: Fit,
        /// Widths and heights in pixels, by rising area.
        anchors: Vec<Size>,
    },
}

impl Report {
    /// One line for the user.
    pub fn summary(&self) -> String {
        let before = format!(
            "AutoAnchor: {:.2} anchors a label, {:.4} best possible recall",
            self.before.anchors_per_box, self.before.recall
        );
        match &self.outcome {
            Outcome::NoLabels => "AutoAnchor: no labels, so the model keeps its anchors".to_owned(),
            Outcome::Good => format!("{before}; the anchors fit the labels"),
            Outcome::TooSmall => {
                format!("{before}; all boxes are below {MIN_SIDE} pixels, so the model keeps its anchors")
            }
            Outcome::Kept { found } => {
                format!("{before}; a search gave {:.4}, so the model keeps its anchors", found.recall)
            }
            Outcome::Replaced { found, anchors } => {
                let list: Vec<String> = anchors.iter().map(|[w, h]| format!("{w:.0},{h:.0}")).collect();
                format!("{before}; new anchors reach {:.4}: {}", found.recall, list.join(" "))
            }
        }
    }
}

/// Checks the anchors of `model` against the labels of `samples` in images of `image_size` pixels,
/// and replaces them when a search finds anchors with a higher best possible recall. `anchor_t` is
/// the factor at which an anchor is too large or too small for a box. Equal seeds give equal
/// anchors.
///
/// # Errors
/// When libtorch refuses to read or write the anchors.
pub fn check(
    model: &Model,
    samples: &[Sample],
    image_size: usize,
    anchor_t: f64,
    seed: u64,
) -> Result<Report, TrainError> {
    let mut random = Random::keyed(seed, 0, Purpose::Anchors, 0);
    let boxes = sizes(samples, image_size, &mut random);
    let current = in_pixels(model.anchors()?, model.strides())?;
    let report = search(&boxes, &current, anchor_t as f32, &mut random);
    if let Outcome::Replaced { anchors, .. } = &report.outcome {
        write(model, anchors)?;
    }
    Ok(report)
}

/// The widths and heights of all boxes, in pixels of images scaled to `image_size` on their longer
/// side, and by a random factor an image.
fn sizes(samples: &[Sample], image_size: usize, random: &mut Random) -> Vec<Size> {
    let mut boxes = Vec::with_capacity(samples.iter().map(|sample| sample.boxes.len()).sum());
    for sample in samples {
        let jitter = random.uniform(JITTER.0, JITTER.1);
        let longer = sample.width.max(sample.height).max(1);
        let scale = (jitter * image_size as f64 / f64::from(longer)) as f32;
        let (width, height) = (sample.width as f32 * scale, sample.height as f32 * scale);
        boxes.extend(sample.boxes.iter().map(|&[_, _, _, w, h]| [w * width, h * height]));
    }
    boxes
}

/// Compares the `current` anchors with the best that a search for `boxes` finds, all in pixels.
fn search(boxes: &[Size], current: &[Size], anchor_t: f32, random: &mut Random) -> Report {
    let before = Fit::of(current, boxes, anchor_t);
    let report = |outcome| Report { labels: boxes.len(), before, outcome };
    if boxes.is_empty() {
        return report(Outcome::NoLabels);
    }
    if before.recall > GOOD_RECALL {
        return report(Outcome::Good);
    }
    let searched: Vec<Size> = boxes.iter().copied().filter(|[w, h]| w.max(*h) >= MIN_SIDE).collect();
    if searched.is_empty() {
        return report(Outcome::TooSmall);
    }
    let searched = draw(searched, random);
    let start = cluster::centres(&searched, current.len(), random)
        .unwrap_or_else(|| drawn(&searched, current.len(), random));
    // A box without a side is no anchor: nothing could be divided by it.
    let start = start.into_iter().map(|size| size.map(|side| side.max(MIN_SIDE))).collect();
    let mut anchors = evolve::evolve(start, &searched, anchor_t, random);
    anchors.sort_by(|a, b| (a[0] * a[1]).total_cmp(&(b[0] * b[1])));
    let found = Fit::of(&anchors, boxes, anchor_t);
    if found.recall > before.recall {
        report(Outcome::Replaced { found, anchors })
    } else {
        report(Outcome::Kept { found })
    }
}

/// At most [`MAX_SEARCHED`] of the boxes.
fn draw(boxes: Vec<Size>, random: &mut Random) -> Vec<Size> {
    if boxes.len() <= MAX_SEARCHED {
        return boxes;
    }
    (0..MAX_SEARCHED).map(|_| boxes[random.below(boxes.len())]).collect()
}

/// Boxes drawn at random, where too few of them differ to be clustered. Sizes drawn from the whole
/// image would serve too (spec §7), but may be out of reach of every box, and evolution cannot climb
/// from there.
fn drawn(boxes: &[Size], count: usize, random: &mut Random) -> Vec<Size> {
    (0..count).map(|_| boxes[random.below(boxes.len())]).collect()
}

/// The anchors, (levels, anchors, 2) in cells, as widths and heights in pixels.
fn in_pixels(anchors: &Tensor, strides: &[f64]) -> Result<Vec<Size>, TrainError> {
    let sides = Vec::<f32>::try_from(anchors.f_to_kind(Kind::Float)?.f_reshape([-1])?)?;
    let per_level = sides.len() / strides.len().max(1);
    let scaled: Vec<f32> = sides
        .chunks(per_level.max(1))
        .zip(strides)
        .flat_map(|(level, &stride)| level.iter().map(move |side| side * stride as f32))
        .collect();
    Ok(scaled.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
}

/// Writes anchors in pixels, by rising area, into the model: the smallest go to the level with the
/// smallest stride.
fn write(model: &Model, anchors: &[Size]) -> Result<(), TrainError> {
    let cells = in_cells(anchors, model.strides());
    let buffer = model.anchors()?.shallow_clone();
    let values = Tensor::f_from_slice(&cells)?.f_view(buffer.size().as_slice())?;
    no_grad(|| buffer.shallow_clone().f_copy_(&values))?;
    Ok(())
}

/// Anchors by rising area, as the values of a (levels, anchors, 2) buffer in cells.
fn in_cells(anchors: &[Size], strides: &[f64]) -> Vec<f32> {
    let per_level = anchors.len() / strides.len().max(1);
    let mut cells = Vec::with_capacity(2 * anchors.len());
    for &stride in strides {
        let finer = strides.iter().filter(|&&other| other < stride).count();
        let level = &anchors[finer * per_level..(finer + 1) * per_level];
        cells.extend(level.iter().flatten().map(|side| side / stride as f32));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The anchors of the published models, in pixels (spec §1).
    const PUBLISHED: [Size; 9] = [
        [10.0, 13.0],
        [16.0, 30.0],
        [33.0, 23.0],
        [30.0, 61.0],
        [62.0, 45.0],
        [59.0, 119.0],
        [116.0, 90.0],
        [156.0, 198.0],
        [373.0, 326.0],
    ];

    fn random() -> Random {
        Random::keyed(3, 0, Purpose::Anchors, 0)
    }

    fn run(boxes: &[Size], current: &[Size]) -> Report {
        search(boxes, current, 4.0, &mut random())
    }

    /// Long flat boxes, which none of the published anchors resembles.
    fn flat_boxes() -> Vec<Size> {
        let mut random = random();
        (0..400).map(|_| [random.uniform(200.0, 600.0) as f32, random.uniform(4.0, 16.0) as f32]).collect()
    }

    #[test]
    fn anchors_that_fit_are_left_alone() {
        let report = run(&PUBLISHED, &PUBLISHED);
        assert_eq!(report.outcome, Outcome::Good);
        assert_eq!(report.before.recall, 1.0);
    }

    #[test]
    fn anchors_that_do_not_fit_are_replaced_by_better_ones_sorted_by_area() {
        let report = run(&flat_boxes(), &PUBLISHED);
        let Outcome::Replaced { found, anchors } = &report.outcome else { panic!("{report:?}") };
        assert!(report.before.recall < 0.1, "{report:?}");
        assert!(found.recall > 0.99, "{report:?}");
        assert_eq!(anchors.len(), PUBLISHED.len());
        assert!(anchors.is_sorted_by_key(|[w, h]| w * h));
        assert!(report.summary().contains("new anchors reach"), "{}", report.summary());
    }

    #[test]
    fn equal_seeds_give_equal_anchors() {
        assert_eq!(run(&flat_boxes(), &PUBLISHED), run(&flat_boxes(), &PUBLISHED));
    }

    #[test]
    fn anchors_stay_when_nothing_better_is_found() {
        // Half of the boxes have no side: no anchor can have them.
        let boxes: Vec<Size> = (0..40).map(|i| if i % 2 == 0 { [30.0, 61.0] } else { [30.0, 0.0] }).collect();
        let report = run(&boxes, &PUBLISHED);
        let Outcome::Kept { found } = report.outcome else { panic!("{report:?}") };
        assert_eq!((report.before.recall, found.recall), (0.5, 0.5));
    }

    #[test]
    fn one_box_repeated_is_fitted_too() {
        let report = run(&[[500.0, 8.0]; 30], &PUBLISHED);
        let Outcome::Replaced { found, .. } = report.outcome else { panic!("{report:?}") };
        assert_eq!((report.before.recall, found.recall), (0.0, 1.0));
    }

    #[test]
    fn fewer_boxes_than_anchors_are_fitted_or_left() {
        let report = run(&[[500.0, 8.0], [8.0, 500.0]], &PUBLISHED);
        match report.outcome {
            Outcome::Replaced { found, .. } => assert!(found.recall > report.before.recall),
            Outcome::Kept { found } => assert!(found.recall <= report.before.recall),
            other => panic!("a search was due: {other:?}"),
        }
    }

    #[test]
    fn without_labels_and_with_dots_alone_nothing_is_searched() {
        assert_eq!(run(&[], &PUBLISHED).outcome, Outcome::NoLabels);
        assert_eq!(run(&[[1.0, 1.5]; 5], &PUBLISHED).outcome, Outcome::TooSmall);
    }

    #[test]
    fn sizes_are_pixels_of_the_scaled_image_within_the_jitter() {
        let sample = Sample {
            width: 1280,
            height: 640,
            boxes: vec![[0.0, 0.5, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 0.25, 0.25]],
            ..Sample::default()
        };
        let boxes = sizes(&[sample.clone(), sample], 640, &mut random());
        assert_eq!(boxes.len(), 4);
        assert!((boxes[0][0] / boxes[1][0] - 2.0).abs() < 1e-6, "an image has one scale");
        assert!(boxes.iter().all(|[w, _]| (144.0..=352.0).contains(w)), "{boxes:?}");
        assert!((boxes[0][0] - boxes[0][1]).abs() < 1e-3, "half of 1280 is all of 640: {boxes:?}");
        assert_ne!(boxes[0], boxes[2], "images have scales of their own");
    }

    #[test]
    fn small_anchors_go_to_the_level_of_small_stride() {
        let anchors = [[8.0, 8.0], [16.0, 16.0], [32.0, 64.0], [64.0, 64.0]];
        assert_eq!(in_cells(&anchors, &[8.0, 16.0]), [1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0]);
        assert_eq!(in_cells(&anchors, &[16.0, 8.0]), [2.0, 4.0, 4.0, 4.0, 1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn a_buffer_in_cells_is_read_as_pixels() {
        let buffer = Tensor::from_slice(&[1.0_f32, 1.5, 2.0, 3.0]).view([2, 1, 2]);
        assert_eq!(in_pixels(&buffer, &[8.0, 16.0]).unwrap(), [[8.0, 12.0], [32.0, 48.0]]);
    }
}
