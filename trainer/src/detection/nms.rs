//! Non-maximum suppression (spec §9): from the decoded outputs of one image to its detections. It
//! works on plain numbers: few boxes pass the confidence threshold, and all later steps run on the
//! CPU. Unlike YOLOv5 it has no time limit, which would silently drop the detections of some
//! images; it stops at `max_det` detections instead.

use super::boxes::{Corners, Detection, area, corners, intersection};

/// Only this many candidates per image, the most confident ones, enter suppression (spec §9).
const MAX_CANDIDATES: usize = 30_000;

/// Which boxes are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NmsSettings {
    /// Minimum confidence, exclusive.
    pub conf_thres: f32,
    /// IoU above which the less confident box is dropped.
    pub iou_thres: f32,
    /// A box may have several classes.
    pub multi_label: bool,
    /// Boxes of different classes suppress each other.
    pub agnostic: bool,
    /// Keep only these classes; `None` keeps all.
    pub classes: Option<Vec<usize>>,
    /// Maximum detections per image.
    pub max_det: usize,
}

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
    let multi_label = settings.multi_label && nc > 1;
    let mut candidates = Vec::new();
    for row in predictions.chunks_exact(5 + nc) {
        // The comparison also drops rows whose objectness is NaN.
        if row[4] > settings.conf_thres {
            push_classes(row, multi_label, settings, &mut candidates);
        }
    }
    candidates.extend(
        known.iter().filter(|(class, _)| wanted(settings, *class)).map(|&(class, corners)| Detection {
            corners,
            confidence: 1.0,
            class,
        }),
    );
    candidates.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    candidates.truncate(MAX_CANDIDATES);
    greedy(&candidates, settings)
}

fn wanted(settings: &NmsSettings, class: usize) -> bool {
    settings.classes.as_ref().is_none_or(|classes| classes.contains(&class))
}

fn push_classes(row: &[f32], multi_label: bool, settings: &NmsSettings, out: &mut Vec<Detection>) {
    let corners = corners([row[0], row[1], row[2], row[3]]);
    let scores = row[5..].iter().map(|probability| probability * row[4]).enumerate();
    let mut push = |class: usize, confidence: f32| {
        if confidence > settings.conf_thres && wanted(settings, class) {
            out.push(Detection { corners, confidence, class });
        }
    };
    if multi_label {
        scores.for_each(|(class, confidence)| push(class, confidence));
    } else if let Some((class, confidence)) =
        scores.reduce(|best, next| if next.1 > best.1 { next } else { best })
    {
        push(class, confidence);
    }
}

/// Keeps a candidate if no kept one of its class overlaps it by more than the threshold.
fn greedy(candidates: &[Detection], settings: &NmsSettings) -> Vec<Detection> {
    let mut kept: Vec<Detection> = Vec::new();
    for candidate in candidates {
        if kept.len() == settings.max_det {
            break;
        }
        let suppressed = kept.iter().any(|winner| {
            (settings.agnostic || winner.class == candidate.class)
                && overlap(winner.corners, candidate.corners) > settings.iou_thres
        });
        if !suppressed {
            kept.push(*candidate);
        }
    }
    kept
}

/// Intersection over union without an epsilon, as YOLOv5's suppression computes it.
fn overlap(a: Corners, b: Corners) -> f32 {
    let shared = intersection(a, b);
    shared / (area(a) + area(b) - shared)
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
