//! Precision, recall and average precision per class over a split (spec §9), from the matched
//! detections of all images. The curves are kept for the plots.

use super::matching::{Hits, IOU_THRESHOLDS};

/// Keeps divisions by empty counts finite (spec §9).
const EPSILON: f64 = 1e-16;
/// Confidences at which the curves are sampled.
const GRID: usize = 1000;
/// Width of the box filter over the mean F1 curve, as a fraction of the grid (spec §9).
const SMOOTHING: f64 = 0.1;

/// One detection after matching.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Whether it is correct at each IoU threshold.
    pub hits: Hits,
    /// Its confidence.
    pub confidence: f32,
    /// Its class.
    pub class: usize,
}

/// The metrics of one class that has labels.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassScore {
    /// Index of the class.
    pub class: usize,
    /// Labels of the class.
    pub labels: usize,
    /// Precision at the confidence where the mean F1 over the classes is best.
    pub precision: f64,
    /// Recall there.
    pub recall: f64,
    /// F1 there.
    pub f1: f64,
    /// Average precision at each IoU threshold.
    pub ap: [f64; IOU_THRESHOLDS.len()],
    /// Precision, recall and F1 over the confidence grid, and precision over recall at IoU 0.5.
    pub curves: Curves,
}

impl ClassScore {
    /// Average precision at IoU 0.5.
    pub fn ap50(&self) -> f64 {
        self.ap[0]
    }

    /// Mean of the average precisions at IoU 0.5 to 0.95 (mAP50-95).
    pub fn ap50_95(&self) -> f64 {
        self.ap.iter().sum::<f64>() / self.ap.len() as f64
    }
}

/// Curves of one class, sampled at 1000 points from 0 to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curves {
    /// Precision over confidence.
    pub precision: Vec<f64>,
    /// Recall over confidence.
    pub recall: Vec<f64>,
    /// F1 over confidence.
    pub f1: Vec<f64>,
    /// Precision over recall at IoU 0.5.
    pub precision_by_recall: Vec<f64>,
}

/// Scores every class that has labels. `label_counts[c]` is the number of labels of class c.
pub fn score(judged: &[Judged], label_counts: &[usize]) -> Vec<ClassScore> {
    let mut scores: Vec<ClassScore> = label_counts
        .iter()
        .enumerate()
        .filter(|&(_, &labels)| labels > 0)
        .map(|(class, &labels)| {
            let mut own: Vec<&Judged> = judged.iter().filter(|found| found.class == class).collect();
            own.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
            class_score(class, labels, &own)
        })
        .collect();
    let best = best_confidence(&scores);
    for score in &mut scores {
        score.precision = score.curves.precision[best];
        score.recall = score.curves.recall[best];
        score.f1 = score.curves.f1[best];
    }
    scores
}

fn class_score(class: usize, labels: usize, found: &[&Judged]) -> ClassScore {
    let mut score = ClassScore {
        class,
        labels,
        precision: 0.0,
        recall: 0.0,
        f1: 0.0,
        ap: [0.0; IOU_THRESHOLDS.len()],
        curves: Curves {
            precision: vec![0.0; GRID],
            recall: vec![0.0; GRID],
            f1: vec![0.0; GRID],
            precision_by_recall: vec![0.0; GRID],
        },
    };
    if found.is_empty() {
        return score;
    }
    let confidence: Vec<f64> = found.iter().map(|one| -f64::from(one.confidence)).collect();
    for level in 0..IOU_THRESHOLDS.len() {
        let (recall, precision) = curve(found, level, labels);
        if level == 0 {
            for (index, x) in linspace(GRID).enumerate() {
                // Confidence falls along the list; negated, it rises as interpolation needs it.
                score.curves.recall[index] = interpolate(-x, &confidence, &recall, 0.0);
                score.curves.precision[index] = interpolate(-x, &confidence, &precision, 1.0);
            }
            let (steps, envelope) = envelope(&recall, &precision);
            score.curves.precision_by_recall =
                linspace(GRID).map(|x| interpolate(x, &steps, &envelope, envelope[0])).collect();
        }
        score.ap[level] = average_precision(&recall, &precision);
    }
    for index in 0..GRID {
        let (p, r) = (score.curves.precision[index], score.curves.recall[index]);
        score.curves.f1[index] = 2.0 * p * r / (p + r + EPSILON);
    }
    score
}

/// Recall and precision after each detection, most confident first.
fn curve(found: &[&Judged], level: usize, labels: usize) -> (Vec<f64>, Vec<f64>) {
    let mut right = 0.0;
    found
        .iter()
        .enumerate()
        .map(|(index, one)| {
            right += f64::from(u8::from(one.hits[level]));
            (right / (labels as f64 + EPSILON), right / (index + 1) as f64)
        })
        .unzip()
}

/// Area under the precision envelope, sampled at 101 points of recall (COCO's rule).
pub fn average_precision(recall: &[f64], precision: &[f64]) -> f64 {
    const POINTS: usize = 101;
    let (steps, envelope) = envelope(recall, precision);
    let sampled: Vec<f64> =
        linspace(POINTS).map(|x| interpolate(x, &steps, &envelope, envelope[0])).collect();
    let width = 1.0 / (POINTS - 1) as f64;
    sampled.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0 * width).sum()
}

/// Recall with 0 and 1 added at its ends, and for each value the highest precision at that recall or
/// a higher one.
fn envelope(recall: &[f64], precision: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let steps: Vec<f64> = std::iter::once(0.0).chain(recall.iter().copied()).chain([1.0]).collect();
    let mut envelope: Vec<f64> = std::iter::once(1.0).chain(precision.iter().copied()).chain([0.0]).collect();
    for index in (0..envelope.len() - 1).rev() {
        envelope[index] = envelope[index].max(envelope[index + 1]);
    }
    (steps, envelope)
}

/// Index on the confidence grid where the smoothed mean F1 is largest.
fn best_confidence(scores: &[ClassScore]) -> usize {
    let mut mean = vec![0.0; GRID];
    for score in scores {
        for (sum, value) in mean.iter_mut().zip(&score.curves.f1) {
            *sum += value / scores.len() as f64;
        }
    }
    let smoothed = smooth(&mean, SMOOTHING);
    // The first of equal values; `max_by` would take the last.
    smoothed
        .iter()
        .enumerate()
        .fold(0, |best, (index, value)| if *value > smoothed[best] { index } else { best })
}

/// Box filter of odd width over `fraction` of the points; the ends are padded with the end values.
fn smooth(values: &[f64], fraction: f64) -> Vec<f64> {
    let width = (values.len() as f64 * fraction * 2.0).round_ties_even() as usize / 2 + 1;
    let width = width | 1;
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return Vec::new() };
    let half = width / 2;
    let padded: Vec<f64> = std::iter::repeat_n(first, half)
        .chain(values.iter().copied())
        .chain(std::iter::repeat_n(last, half))
        .collect();
    padded.windows(width).map(|window| window.iter().sum::<f64>() / width as f64).collect()
}

/// `points` evenly spaced numbers from 0 to 1.
fn linspace(points: usize) -> impl Iterator<Item = f64> {
    (0..points).map(move |index| index as f64 / (points - 1) as f64)
}

/// Linear interpolation as numpy's `interp`: `xs` rises and is not empty; the result is `left` before
/// the first point and the last value after the last point; of equal `xs` the last counts.
fn interpolate(x: f64, xs: &[f64], ys: &[f64], left: f64) -> f64 {
    let above = xs.partition_point(|&known| known <= x);
    if above == 0 {
        return left;
    }
    let below = above - 1;
    if above == xs.len() || xs[below] == x {
        return ys[below];
    }
    ys[below] + (ys[above] - ys[below]) / (xs[above] - xs[below]) * (x - xs[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_precision_of_a_known_curve() {
        let ap = average_precision(&[0.1, 0.1, 0.2, 0.2, 0.3, 0.6], &[1.0, 0.5, 0.66, 0.5, 0.6, 0.7]);
        assert!((ap - 0.5885).abs() < 1e-12, "{ap}");
    }

    #[test]
    fn perfect_detections_score_one() {
        let judged: Vec<Judged> = (0..10)
            .map(|i| Judged { hits: [true; 10], confidence: 0.5 + 0.01 * i as f32, class: 0 })
            .collect();
        let scores = score(&judged, &[10, 0]);
        assert_eq!(scores.len(), 1, "a class without labels has no score");
        assert!(
            (scores[0].ap50_95() - 0.995).abs() < 1e-3,
            "COCO's 101 points give 0.995 for a perfect class"
        );
        assert!(scores[0].recall > 0.999 && scores[0].precision > 0.999);
    }

    #[test]
    fn labels_without_detections_score_zero() {
        let scores = score(&[], &[3]);
        assert_eq!((scores[0].ap50(), scores[0].recall), (0.0, 0.0));
    }

    #[test]
    fn smoothing_equals_yolov5s() {
        let recorded: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/f_metrics.json")).unwrap();
        let list = |key: &str| -> Vec<f64> {
            let values = recorded["smooth_f0.1"][key].as_array().unwrap();
            values.iter().map(|value| value.as_f64().unwrap()).collect()
        };
        let (smoothed, expected) = (smooth(&list("y"), 0.1), list("out"));
        assert_eq!(smoothed.len(), expected.len());
        for (smoothed, expected) in smoothed.iter().zip(expected) {
            assert!((smoothed - expected).abs() < 1e-9, "{smoothed}, YOLOv5 {expected}");
        }
    }

    #[test]
    fn smoothing_keeps_a_constant_and_the_length() {
        let smoothed = smooth(&[2.0; 37], 0.1);
        assert_eq!(smoothed.len(), 37);
        assert!(smoothed.iter().all(|value| (value - 2.0).abs() < 1e-12));
    }
}
