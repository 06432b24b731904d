//! Non-maximum suppression (spec §9): from the decoded outputs of one image to its detections. It works on flat
//! buffers of plain numbers that a thread keeps between images, and rounds as YOLOv5 does, so that both keep the
//! same boxes. Unlike YOLOv5 it has no time limit, which would silently drop the detections of some images; it
//! stops at `max_det` detections instead.

use super::boxes::{Corners, Detection, corners};
use super::candidates::Candidates;
use super::nms_settings::NmsSettings;

/// Boxes of different classes are this many pixels apart when they are compared (spec §9).
pub(crate) const CLASS_OFFSET: f32 = 7680.0;
/// So many kept boxes are compared with a candidate at once.
const LANES: usize = 16;

/// The detections of one image.
///
/// `predictions` holds rows of `5 + nc` numbers: center x, center y, width, height, objectness,
/// class probabilities. `known` boxes take part with confidence 1 (`--save-hybrid`).
/// The result is sorted by descending confidence.
pub fn suppress(
    predictions: &[f32],
    nc: usize,
    known: &[(usize, Corners)],
    settings: &NmsSettings,
) -> Vec<Detection> {
    Suppressor::default().suppress(predictions, nc, known, settings)
}

/// Suppresses image after image with the same buffers.
#[derive(Debug, Default)]
pub struct Suppressor {
    candidates: Candidates,
    kept: Kept,
}

impl Suppressor {
    /// As [`suppress`].
    pub fn suppress(
        &mut self,
        predictions: &[f32],
        nc: usize,
        known: &[(usize, Corners)],
        settings: &NmsSettings,
    ) -> Vec<Detection> {
        self.candidates.collect(predictions, nc, known, settings);
        let most = largest_float_up_to(settings.iou_thres);
        self.kept.clear();
        let mut found = Vec::new();
        for candidate in self.candidates.most_confident_first() {
            if found.len() == settings.max_det {
                break;
            }
            let (class, corners) = match known.get(candidate.known()) {
                Some(&known) => known,
                None => {
                    let row = &predictions[candidate.row * (5 + nc)..];
                    (candidate.class, corners([row[0], row[1], row[2], row[3]]))
                }
            };
            let offset = if settings.agnostic { 0.0 } else { class as f32 * CLASS_OFFSET };
            if self.kept.add_unless_overlapped(corners.map(|side| side + offset), most) {
                found.push(Detection { corners, confidence: candidate.confidence, class });
            }
        }
        found
    }
}

/// The largest float that is at most `threshold`: a float is above `threshold` exactly if it is above this one.
pub(crate) fn largest_float_up_to(threshold: f64) -> f32 {
    let nearest = threshold as f32;
    if f64::from(nearest) > threshold { nearest.next_down() } else { nearest }
}

/// The kept boxes of an image with their class offsets, one list for each side, so that one instruction compares
/// several. Lists end with empty boxes up to a multiple of [`LANES`].
#[derive(Debug, Default)]
struct Kept {
    left: Vec<f32>,
    top: Vec<f32>,
    right: Vec<f32>,
    bottom: Vec<f32>,
    area: Vec<f32>,
    count: usize,
}

impl Kept {
    fn clear(&mut self) {
        for list in self.lists() {
            list.clear();
        }
        self.count = 0;
    }

    fn lists(&mut self) -> [&mut Vec<f32>; 5] {
        [&mut self.left, &mut self.top, &mut self.right, &mut self.bottom, &mut self.area]
    }

    /// Adds a box, unless one that was kept overlaps it by more than `most`. Returns whether it did.
    fn add_unless_overlapped(&mut self, [left, top, right, bottom]: Corners, most: f32) -> bool {
        // As in YOLOv5, negative sides are not clamped.
        let area = (right - left) * (bottom - top);
        let blocks = self.left.chunks_exact(LANES).zip(self.top.chunks_exact(LANES)).zip(
            self.right
                .chunks_exact(LANES)
                .zip(self.bottom.chunks_exact(LANES).zip(self.area.chunks_exact(LANES))),
        );
        for ((lefts, tops), (rights, (bottoms, areas))) in blocks {
            let mut shared = [0.0_f32; LANES];
            for i in 0..LANES {
                let width = larger(0.0, smaller(rights[i], right) - larger(lefts[i], left));
                let height = larger(0.0, smaller(bottoms[i], bottom) - larger(tops[i], top));
                shared[i] = width * height;
            }
            // Most candidates touch no box of their class: the division is left out.
            if shared.iter().fold(false, |any, &shared| any | (shared > 0.0)) {
                let mut over = false;
                for i in 0..LANES {
                    over |= shared[i] / (areas[i] + area - shared[i]) > most;
                }
                if over {
                    return false;
                }
            }
        }
        let at = self.count;
        if at == self.left.len() {
            for list in self.lists() {
                list.resize(at + LANES, 0.0);
            }
        }
        for (list, value) in self.lists().into_iter().zip([left, top, right, bottom, area]) {
            list[at] = value;
        }
        self.count += 1;
        true
    }
}

/// One instruction where `f32::max` is several.
#[inline]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[inline]
fn smaller(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> NmsSettings {
        NmsSettings {
            conf_thres: 0.25,
            iou_thres: 0.45,
            multi_label: true,
            agnostic: false,
            classes: None,
            max_det: 300,
        }
    }

    #[test]
    fn the_more_confident_of_two_overlapping_boxes_stays() {
        let rows =
            [[50.0, 50.0, 20.0, 20.0, 0.9, 1.0, 0.0], [51.0, 50.0, 20.0, 20.0, 0.8, 1.0, 0.0]].concat();
        let found = suppress(&rows, 2, &[], &settings());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].confidence, 0.9);
    }

    #[test]
    fn classes_do_not_suppress_each_other_unless_asked() {
        let rows = [50.0, 50.0, 20.0, 20.0, 1.0, 0.9, 0.8];
        assert_eq!(suppress(&rows, 2, &[], &settings()).len(), 2);
        assert_eq!(suppress(&rows, 2, &[], &NmsSettings { agnostic: true, ..settings() }).len(), 1);
        assert_eq!(suppress(&rows, 2, &[], &NmsSettings { multi_label: false, ..settings() }).len(), 1);
    }

    #[test]
    fn an_overlap_of_exactly_the_threshold_suppresses_nothing() {
        // Intersection 50 and union 100.
        let rows = [[5.0, 5.0, 10.0, 10.0, 0.9, 1.0], [5.0, 2.5, 10.0, 5.0, 0.8, 1.0]].concat();
        let at = |iou_thres| suppress(&rows, 1, &[], &NmsSettings { iou_thres, ..settings() }).len();
        assert_eq!((at(0.5), at(0.499_999_999)), (2, 1));
    }

    #[test]
    fn nan_is_dropped() {
        let rows = [f32::NAN; 7];
        assert!(suppress(&rows, 2, &[], &settings()).is_empty());
    }

    #[test]
    fn a_known_box_suppresses_a_prediction() {
        let rows = [50.0, 50.0, 20.0, 20.0, 0.9, 1.0, 0.0];
        let found = suppress(&rows, 2, &[(0, [40.0, 40.0, 60.0, 60.0])], &settings());
        assert_eq!((found.len(), found[0].confidence), (1, 1.0));
    }
}
