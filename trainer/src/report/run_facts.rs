//! What a rank knows for the report of a run: its data set and its validations, in the form of
//! [`yolo_plan::report`].

use yolo_data::scan::Scan;
use yolo_plan::event::ValTable;
use yolo_plan::report::{
    CURVE_POINTS, ClassCurves, MESSAGES, REPORT_FILE, SplitFacts, ValidationFacts, WorstImage,
};

use crate::error::TrainError;
use crate::metrics::{ClassScore, ConfusionMatrix};

/// The facts of a split of a data set with `classes` classes.
pub fn facts_of_split(split: &str, scan: &Scan, classes: usize) -> SplitFacts {
    let (mut boxes, mut images_with) = (vec![0; classes], vec![0; classes]);
    let mut sides = Vec::new();
    for sample in &scan.samples {
        let mut present = vec![false; classes];
        for &[class, _, _, width, height] in &sample.boxes {
            let class = class as usize;
            if class < classes {
                boxes[class] += 1;
                present[class] = true;
            }
            sides.push(
                (f64::from(width * height) * f64::from(sample.width) * f64::from(sample.height)).sqrt(),
            );
        }
        images_with.iter_mut().zip(present).for_each(|(count, present)| *count += usize::from(present));
    }
    let mut sizes: Vec<[u32; 2]> = scan.samples.iter().map(|sample| [sample.width, sample.height]).collect();
    sizes.sort_by_key(|&[width, height]| (u64::from(width) * u64::from(height), width));
    sides.sort_by(f64::total_cmp);
    SplitFacts {
        split: split.to_owned(),
        images: scan.samples.len(),
        missing: scan.missing,
        empty: scan.empty,
        corrupt: scan.corrupt,
        boxes,
        images_with,
        image_sizes: at_parts(&sizes, [0.0, 0.5, 1.0]),
        box_sides: at_parts(&sides, [0.1, 0.5, 0.9]).map(|sides| sides.map(|side| rounded(side, 10.0))),
        messages: scan.messages.iter().take(MESSAGES).cloned().collect(),
        all_messages: scan.messages.len(),
    }
}

/// The values at these parts of a sorted list.
fn at_parts<T: Copy>(sorted: &[T], parts: [f64; 3]) -> Option<[T; 3]> {
    let last = sorted.len().checked_sub(1)?;
    Some(parts.map(|part| sorted[(part * last as f64).round() as usize]))
}

/// The facts of a validation of `title`, with the worst images of all ranks.
pub fn facts_of_validation(
    title: String,
    table: &ValTable,
    scores: &[ClassScore],
    confusion: &ConfusionMatrix,
    worst: Vec<WorstImage>,
) -> ValidationFacts {
    let curves = scores.iter().map(|score| ClassCurves {
        class: score.class,
        precision: sampled(&score.curves.precision),
        recall: sampled(&score.curves.recall),
        f1: sampled(&score.curves.f1),
        precision_by_recall: sampled(&score.curves.precision_by_recall),
    });
    ValidationFacts {
        title,
        table: table.clone(),
        curves: curves.collect(),
        confusion: confusion.counts().to_vec(),
        worst,
    }
}

/// The error when the facts cannot be written.
pub fn unwritable_report(error: std::io::Error) -> TrainError {
    TrainError::new(format!("cannot write {REPORT_FILE} into the run folder: {error}"))
        .with_hint("make room or the folder writable, or run without plots with --noplots")
}

/// A curve with [`CURVE_POINTS`] points and four digits, so that 80 classes stay a small file.
fn sampled(curve: &[f64]) -> Vec<f64> {
    let Some(last) = curve.len().checked_sub(1) else { return Vec::new() };
    let at = |point: usize| curve[(point * last + (CURVE_POINTS - 1) / 2) / (CURVE_POINTS - 1)];
    (0..CURVE_POINTS).map(|point| rounded(at(point), 1e4)).collect()
}

fn rounded(value: f64, units: f64) -> f64 {
    (value * units).round() / units
}

#[cfg(test)]
mod tests {
    use yolo_data::scan::Sample;

    use super::*;

    #[test]
    fn a_split_is_summed_up() {
        let sample = |side: u32, boxes: &[[f32; 5]]| Sample {
            width: side,
            height: side,
            boxes: boxes.to_vec(),
            ..Sample::default()
        };
        let scan = Scan {
            samples: vec![
                sample(200, &[[0.0, 0.5, 0.5, 0.5, 0.5], [0.0, 0.5, 0.5, 0.1, 0.1]]),
                sample(100, &[[1.0, 0.5, 0.5, 0.4, 0.4]]),
                sample(300, &[]),
            ],
            messages: vec!["a.jpg is corrupt".to_owned(); 60],
            ..Scan::default()
        };
        let facts = facts_of_split("train", &scan, 3);
        assert_eq!((facts.boxes, facts.images_with), (vec![2, 1, 0], vec![1, 1, 0]));
        assert_eq!(facts.image_sizes, Some([[100, 100], [200, 200], [300, 300]]));
        assert_eq!(facts.box_sides, Some([20.0, 40.0, 100.0]));
        assert_eq!((facts.messages.len(), facts.all_messages), (MESSAGES, 60));
        assert_eq!(facts_of_split("val", &Scan::default(), 1).image_sizes, None);
    }

    #[test]
    fn a_curve_keeps_its_ends() {
        let curve: Vec<f64> = (0..1000).map(|index| f64::from(index) / 999.0).collect();
        let sampled = sampled(&curve);
        assert_eq!((sampled.len(), sampled[0], sampled[100]), (CURVE_POINTS, 0.0, 1.0));
        assert!((sampled[50] - 0.5).abs() < 1e-3);
    }
}
