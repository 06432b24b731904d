//! The candidates of one image for suppression: the pairs of a box and a class above the confidence threshold. At
//! confidence 0.001 there can be millions, of which only the most confident ones count. Each is one number that
//! sorts as YOLOv5 orders them, so collecting them needs a bounded buffer and no other memory.

use super::boxes::Corners;
use super::nms_settings::NmsSettings;

/// Only this many candidates per image, the most confident ones, enter suppression (spec §9).
const MOST: usize = 30_000;

/// A box that may be kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// The row of the outputs; the rows end before the known boxes, which follow one by one.
    pub(super) row: usize,
    pub(super) class: usize,
    pub(super) confidence: f32,
    rows: usize,
}

impl Candidate {
    /// Its index among the known boxes; past their end for a box of the outputs.
    pub(super) fn known(&self) -> usize {
        self.row.checked_sub(self.rows).unwrap_or(usize::MAX)
    }
}

/// Collects the candidates of one image after the other.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// The bits of the confidence above those of the complement of the position: positive floats sort as their bits
    /// do, and of equal confidences the first position is the larger key.
    keys: Vec<u64>,
    /// No candidate at or below this confidence can be among the [`MOST`] any more.
    least: f32,
    classes: usize,
    rows: usize,
}

impl Candidates {
    /// Finds the candidates in rows of `5 + nc` numbers, and adds the known boxes.
    pub(super) fn collect(
        &mut self,
        predictions: &[f32],
        nc: usize,
        known: &[(usize, Corners)],
        settings: &NmsSettings,
    ) {
        self.keys.clear();
        self.least = settings.conf_thres;
        self.classes = nc.max(1);
        self.rows = predictions.len() / (5 + nc);
        let wanted = |class: usize| settings.classes.as_ref().is_none_or(|classes| classes.contains(&class));
        for (row, numbers) in predictions.chunks_exact(5 + nc).enumerate() {
            let (objectness, probabilities) = (numbers[4], &numbers[5..]);
            let multi_label = settings.multi_label && nc > 1;
            // The comparisons also drop what is NaN.
            if objectness > settings.conf_thres && largest(probabilities) * objectness > self.least {
                let mut push = |class: usize, confidence: f32| {
                    if confidence > self.least && wanted(class) {
                        self.push(row, class, confidence);
                    }
                };
                let confidences =
                    probabilities.iter().map(|probability| probability * objectness).enumerate();
                if multi_label {
                    confidences.for_each(|(class, confidence)| push(class, confidence));
                } else if let Some((class, confidence)) = confidences.reduce(more_confident) {
                    push(class, confidence);
                }
            }
        }
        for (index, _) in known.iter().enumerate().filter(|(_, (class, _))| wanted(*class)) {
            self.push(self.rows + index, 0, 1.0);
        }
    }

    fn push(&mut self, row: usize, class: usize, confidence: f32) {
        let position = (row * self.classes + class) as u32;
        self.keys.push(u64::from(confidence.to_bits()) << 32 | u64::from(!position));
        if self.keys.len() == 2 * MOST {
            self.keys.select_nth_unstable_by(MOST - 1, |a, b| b.cmp(a));
            self.keys.truncate(MOST);
            // A later candidate of the same confidence comes after this one.
            self.least = self.least.max(confidence_of(self.keys[MOST - 1]));
        }
    }

    /// The candidates that enter suppression, in its order: equal confidences in the order of the outputs.
    pub(super) fn most_confident_first(&mut self) -> impl Iterator<Item = Candidate> + '_ {
        if self.keys.len() > MOST {
            self.keys.select_nth_unstable_by(MOST - 1, |a, b| b.cmp(a));
            self.keys.truncate(MOST);
        }
        self.keys.sort_unstable_by(|a, b| b.cmp(a));
        let (classes, rows) = (self.classes, self.rows);
        self.keys.iter().map(move |&key| {
            let position = !(key as u32) as usize;
            Candidate {
                row: position / classes,
                class: position % classes,
                confidence: confidence_of(key),
                rows,
            }
        })
    }
}

fn confidence_of(key: u64) -> f32 {
    f32::from_bits((key >> 32) as u32)
}

/// The class with the higher confidence, the first of equal ones.
fn more_confident(best: (usize, f32), next: (usize, f32)) -> (usize, f32) {
    if next.1 > best.1 { next } else { best }
}

/// The largest of the probabilities, or 0; several at once.
fn largest(probabilities: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [0.0_f32; 8];
    let blocks = probabilities.chunks_exact(lanes.len());
    let rest = blocks.remainder().iter().fold(0.0, |a, &b| larger(a, b));
    for block in blocks {
        for (lane, &probability) in lanes.iter_mut().zip(block) {
            *lane = larger(*lane, probability);
        }
    }
    lanes.into_iter().fold(rest, larger)
}
