//! Which detections are correct: they are matched with the labels of their image at the ten IoU
//! thresholds of the COCO metric (spec §9).

use crate::detection::{Detection, Truth, iou};

/// The IoU thresholds .5 to .95 in steps of .05.
pub const IOU_THRESHOLDS: [f32; 10] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Whether a detection is correct at each of [`IOU_THRESHOLDS`].
pub type Hits = [bool; IOU_THRESHOLDS.len()];

/// Matches the detections of one image, given in descending order of confidence.
///
/// A detection claims the label of its class that it overlaps most. If several claim the same
/// label, the most confident one gets it; there is no second sort by overlap (spec §9).
pub fn match_image(detections: &[Detection], truths: &[Truth]) -> Vec<Hits> {
    let claims: Vec<Option<(usize, f32)>> =
        detections.iter().map(|found| best_truth(found, truths)).collect();
    let mut hits = vec![Hits::default(); detections.len()];
    for (level, &threshold) in IOU_THRESHOLDS.iter().enumerate() {
        let mut taken = vec![false; truths.len()];
        for (hit, claim) in hits.iter_mut().zip(&claims) {
            if let Some((truth, overlap)) = *claim
                && overlap >= threshold
                && !std::mem::replace(&mut taken[truth], true)
            {
                hit[level] = true;
            }
        }
    }
    hits
}

fn best_truth(found: &Detection, truths: &[Truth]) -> Option<(usize, f32)> {
    truths
        .iter()
        .enumerate()
        .filter(|(_, truth)| truth.class == found.class)
        .map(|(index, truth)| (index, iou(truth.corners, found.corners)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: [f32; 4] = [0.0, 0.0, 10.0, 10.0];

    fn found(corners: [f32; 4], class: usize) -> Detection {
        Detection { corners, confidence: 0.5, class }
    }

    #[test]
    fn the_most_confident_of_two_claims_gets_the_label() {
        let looser = [0.0, 0.0, 10.0, 8.0];
        let hits = match_image(&[found(looser, 0), found(BOX, 0)], &[Truth { corners: BOX, class: 0 }]);
        assert!(hits[0][0], "IoU 0.8 is enough at 0.5, and it is first");
        assert!(!hits[1][0]);
        assert!(hits[1][9], "at 0.95 only the exact box is a claim");
    }

    #[test]
    fn another_class_does_not_match() {
        assert_eq!(match_image(&[found(BOX, 1)], &[Truth { corners: BOX, class: 0 }]), [Hits::default()]);
    }
}
