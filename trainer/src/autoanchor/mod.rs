//! AutoAnchor (spec §7): before training, checks whether the anchors of a model fit the labels, and
//! replaces them if clustering and evolution find better ones. The search works on the sizes of the
//! boxes; only [`check`] knows the model.

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
/// Boxes with both sides below this, in pixels, are left out of the search (spec §7).
const MIN_SIDE: f32 = 2.0;
/// The search uses at most this many boxes, drawn at random. More do not change the result, but take
/// minutes on large data sets. The recall is always that of all boxes.
const MAX_SEARCHED: usize = 50_000;

/// What AutoAnchor found and decided.
#[derive(Debug, Clone, PartialEq)]
pub struct AnchorReport {
    /// Labeled boxes.
    pub labels: usize,
    /// How well the model's anchors fit them.
    pub before: Fit,
    /// The decision.
    pub decision: Decision,
}

/// What AutoAnchor decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// There is no labeled box to fit anchors to.
    NoLabels,
    /// The model's anchors fit well enough.
    Good,
    /// Every box is too small to search for anchors.
    TooSmall,
    /// The search found nothing better: the model keeps its anchors.
    Kept {
        /// How well the found anchors fit.
        found: Fit,
    },
    /// The search found better anchors.
    Replaced {
        /// How well they fit.
        found: Fit,
        /// Widths and heights in pixels, in order of area.
        anchors: Vec<Size>,
    },
}

impl AnchorReport {
    /// One line for the user.
    pub fn summary(&self) -> String {
        let before = format!(
            "AutoAnchor: {:.2} anchors per label, {:.4} best possible recall",
            self.before.anchors_per_box, self.before.recall
        );
        match &self.decision {
            Decision::NoLabels => "AutoAnchor: no labels, so the model keeps its anchors".to_owned(),
            Decision::Good => format!("{before}; the anchors fit the labels"),
            Decision::TooSmall => {
                format!(
                    "{before}; all boxes are smaller than {MIN_SIDE} pixels, so the model keeps its anchors"
                )
            }
            Decision::Kept { found } => {
                format!("{before}; the search reached {:.4}, so the model keeps its anchors", found.recall)
            }
            Decision::Replaced { found, anchors } => {
                let list: Vec<String> = anchors.iter().map(|[w, h]| format!("{w:.0},{h:.0}")).collect();
                format!("{before}; new anchors reach {:.4}: {}", found.recall, list.join(" "))
            }
        }
    }
}

/// Checks the anchors of `model` against the labels of `samples` in images of `image_size` pixels,
/// and replaces them if the search finds anchors with a higher best possible recall. `anchor_t` is
/// the factor from which on an anchor is too large or too small for a box. Equal seeds give equal
/// anchors.
///
/// # Errors
/// When libtorch fails to read or write the anchors.
pub fn check(
    model: &Model,
    samples: &[Sample],
    image_size: usize,
    anchor_t: f64,
    seed: u64,
) -> Result<AnchorReport, TrainError> {
    let mut random = Random::keyed(seed, 0, Purpose::Anchors, 0);
    let boxes = sizes(samples, image_size, &mut random);
    let current = in_pixels(model.anchors()?, model.strides())?;
    let report = search(&boxes, &current, anchor_t as f32, &mut random);
    if let Decision::Replaced { anchors, .. } = &report.decision {
        write(model, anchors)?;
    }
    Ok(report)
}

/// The widths and heights of all boxes in pixels, with each image scaled to `image_size` on its
/// longer side and then by a random factor.
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

/// Compares the `current` anchors with the best that the search finds for `boxes`, all in pixels.
fn search(boxes: &[Size], current: &[Size], anchor_t: f32, random: &mut Random) -> AnchorReport {
    let before = Fit::of(current, boxes, anchor_t);
    let report = |decision| AnchorReport { labels: boxes.len(), before, decision };
    if boxes.is_empty() {
        return report(Decision::NoLabels);
    }
    if before.recall > GOOD_RECALL {
        return report(Decision::Good);
    }
    let searched: Vec<Size> = boxes.iter().copied().filter(|[w, h]| w.max(*h) >= MIN_SIDE).collect();
    if searched.is_empty() {
        return report(Decision::TooSmall);
    }
    let searched = draw(searched, random);
    let start = cluster::centers(&searched, current.len(), random)
        .unwrap_or_else(|| drawn(&searched, current.len(), random));
    // An anchor needs both sides: sizes are divided by them.
    let start = start.into_iter().map(|size| size.map(|side| side.max(MIN_SIDE))).collect();
    let mut anchors = evolve::evolve(start, &searched, anchor_t, random);
    anchors.sort_by(|a, b| (a[0] * a[1]).total_cmp(&(b[0] * b[1])));
    let found = Fit::of(&anchors, boxes, anchor_t);
    if found.recall > before.recall {
        report(Decision::Replaced { found, anchors })
    } else {
        report(Decision::Kept { found })
    }
}

/// At most [`MAX_SEARCHED`] of the boxes.
fn draw(boxes: Vec<Size>, random: &mut Random) -> Vec<Size> {
    if boxes.len() <= MAX_SEARCHED {
        return boxes;
    }
    (0..MAX_SEARCHED).map(|_| boxes[random.below(boxes.len())]).collect()
}

/// Boxes drawn at random, for when too few differ to be clustered. The specification also allows
/// random sizes (spec §7), but those may be out of reach of every box, where evolution cannot
/// improve them.
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

/// Writes anchors in pixels, in order of area, into the model. The smallest go to the level with the
/// smallest stride.
fn write(model: &Model, anchors: &[Size]) -> Result<(), TrainError> {
    let cells = in_cells(anchors, model.strides());
    let buffer = model.anchors()?.shallow_clone();
    let values = Tensor::f_from_slice(&cells)?.f_view(buffer.size().as_slice())?;
    no_grad(|| buffer.shallow_clone().f_copy_(&values))?;
    Ok(())
}

/// Anchors in order of area, as the values of a (levels, anchors, 2) buffer in cells.
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

    fn run(boxes: &[Size], current: &[Size]) -> AnchorReport {
        search(boxes, current, 4.0, &mut random())
    }

    /// Long flat boxes, which no published anchor fits.
    fn flat_boxes() -> Vec<Size> {
        let mut random = random();
        (0..400).map(|_| [random.uniform(200.0, 600.0) as f32, random.uniform(4.0, 16.0) as f32]).collect()
    }

    #[test]
    fn anchors_that_fit_are_kept() {
        let report = run(&PUBLISHED, &PUBLISHED);
        assert_eq!(report.decision, Decision::Good);
        assert_eq!(report.before.recall, 1.0);
    }

    #[test]
    fn anchors_that_do_not_fit_are_replaced_by_better_ones() {
        let report = run(&flat_boxes(), &PUBLISHED);
        let Decision::Replaced { found, anchors } = &report.decision else { panic!("{report:?}") };
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
    fn anchors_are_kept_if_nothing_better_is_found() {
        // Half of the boxes have no height, so no anchor fits them.
        let boxes: Vec<Size> = (0..40).map(|i| if i % 2 == 0 { [30.0, 61.0] } else { [30.0, 0.0] }).collect();
        let report = run(&boxes, &PUBLISHED);
        let Decision::Kept { found } = report.decision else { panic!("{report:?}") };
        assert_eq!((report.before.recall, found.recall), (0.5, 0.5));
    }

    #[test]
    fn identical_boxes_are_fitted_too() {
        let report = run(&[[500.0, 8.0]; 30], &PUBLISHED);
        let Decision::Replaced { found, .. } = report.decision else { panic!("{report:?}") };
        assert_eq!((report.before.recall, found.recall), (0.0, 1.0));
    }

    #[test]
    fn fewer_boxes_than_anchors_are_no_problem() {
        let report = run(&[[500.0, 8.0], [8.0, 500.0]], &PUBLISHED);
        match report.decision {
            Decision::Replaced { found, .. } => assert!(found.recall > report.before.recall),
            Decision::Kept { found } => assert!(found.recall <= report.before.recall),
            other => panic!("there must be a search: {other:?}"),
        }
    }

    #[test]
    fn without_labels_or_with_tiny_ones_there_is_no_search() {
        assert_eq!(run(&[], &PUBLISHED).decision, Decision::NoLabels);
        assert_eq!(run(&[[1.0, 1.5]; 5], &PUBLISHED).decision, Decision::TooSmall);
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
        assert_ne!(boxes[0], boxes[2], "each image has its own scale");
    }

    #[test]
    fn small_anchors_go_to_the_level_with_the_small_stride() {
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
