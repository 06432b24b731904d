//! The confusion matrix (spec §9): which class was predicted for the objects of each class. The
//! last row counts missed objects, the last column detections where there is no object.

use crate::detection::{Detection, Truth, iou};

/// Detections need a confidence above this to count (spec §9).
const MIN_CONFIDENCE: f32 = 0.25;
/// A detection and a label need an IoU above this to match (spec §9).
const MIN_IOU: f32 = 0.45;

/// Counts of (predicted, true) pairs; index `nc` is the background.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfusionMatrix {
    nc: usize,
    counts: Vec<u64>,
}

impl ConfusionMatrix {
    /// An empty matrix for `nc` classes.
    pub fn new(nc: usize) -> Self {
        Self { nc, counts: vec![0; (nc + 1) * (nc + 1)] }
    }

    /// Number of classes, without the background.
    pub fn classes(&self) -> usize {
        self.nc
    }

    /// How often class `predicted` was detected where the label has class `truth`.
    pub fn count(&self, predicted: usize, truth: usize) -> u64 {
        self.counts[predicted * (self.nc + 1) + truth]
    }

    /// All counts, in the order that [`Self::merge`] takes.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Adds the [counts](Self::counts) of another matrix for the same classes.
    pub fn merge(&mut self, counts: &[u64]) {
        self.counts.iter_mut().zip(counts).for_each(|(own, other)| *own += other);
    }

    fn add(&mut self, predicted: usize, truth: usize) {
        self.counts[predicted * (self.nc + 1) + truth] += 1;
    }

    /// Adds one image. As in YOLOv5, unmatched detections count only on images where at least one
    /// detection matches a label.
    pub fn add_image(&mut self, detections: &[Detection], truths: &[Truth]) {
        let confident: Vec<&Detection> = detections.iter().filter(|found| is_confident(found)).collect();
        let pairs = pairs(&confident, truths);
        for (index, truth) in truths.iter().enumerate() {
            let predicted =
                pairs.iter().find(|pair| pair.truth == index).map(|pair| confident[pair.found].class);
            self.add(predicted.unwrap_or(self.nc), truth.class);
        }
        if !pairs.is_empty() {
            for (index, found) in confident.iter().enumerate() {
                if pairs.iter().all(|pair| pair.found != index) {
                    self.add(found.class, self.nc);
                }
            }
        }
    }
}

/// Whether a detection counts.
pub fn is_confident(found: &Detection) -> bool {
    found.confidence > MIN_CONFIDENCE
}

/// A detection and the label that it overlaps, of whatever classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Index of the label.
    pub truth: usize,
    /// Index of the detection.
    pub found: usize,
    /// Their IoU.
    pub overlap: f32,
}

/// Pairs in order of falling overlap: each detection keeps its best label, then each label its best
/// detection.
pub fn pairs(detections: &[&Detection], truths: &[Truth]) -> Vec<Pair> {
    let mut best: Vec<Pair> = detections
        .iter()
        .enumerate()
        .filter_map(|(found, detection)| {
            truths
                .iter()
                .enumerate()
                .map(|(truth, object)| Pair { truth, found, overlap: iou(object.corners, detection.corners) })
                .filter(|pair| pair.overlap > MIN_IOU)
                .max_by(|a, b| a.overlap.total_cmp(&b.overlap))
        })
        .collect();
    best.sort_by(|a, b| b.overlap.total_cmp(&a.overlap));
    let mut taken = vec![false; truths.len()];
    best.retain(|pair| !std::mem::replace(&mut taken[pair.truth], true));
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_wrong_class_a_missed_object_and_a_false_positive() {
        let mut matrix = ConfusionMatrix::new(2);
        let here = [0.0, 0.0, 10.0, 10.0];
        let there = [50.0, 50.0, 60.0, 60.0];
        let elsewhere = [80.0, 0.0, 90.0, 10.0];
        matrix.add_image(
            &[
                Detection { corners: here, confidence: 0.9, class: 1 },
                Detection { corners: elsewhere, confidence: 0.8, class: 0 },
            ],
            &[Truth { corners: here, class: 0 }, Truth { corners: there, class: 1 }],
        );
        assert_eq!(matrix.count(1, 0), 1, "class 0 was predicted as 1");
        assert_eq!(matrix.count(2, 1), 1, "class 1 was missed");
        assert_eq!(matrix.count(0, 2), 1, "a false positive of class 0");
    }
}
