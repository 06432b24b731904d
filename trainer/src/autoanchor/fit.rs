//! How well anchors fit boxes (spec §7). The similarity of an anchor and a box, from 0 to 1, is the
//! smaller ratio of their widths and heights. An anchor can learn a box if their similarity is above
//! one over the threshold of the assignment.

/// Width and height, in pixels.
pub type Size = [f32; 2];

/// How well anchors fit all boxes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Best possible recall (BPR): the fraction of the boxes that an anchor can learn; 0 without boxes.
    pub recall: f64,
    /// The mean number of anchors that can learn a box; 0 without boxes.
    pub anchors_per_box: f64,
}

impl Fit {
    /// The fit of `anchors` to `boxes`. An anchor learns boxes that differ from it by less than the
    /// factor `anchor_t`.
    pub fn of(anchors: &[Size], boxes: &[Size], anchor_t: f32) -> Self {
        let least = 1.0 / anchor_t;
        let (mut reached, mut pairs) = (0_usize, 0_usize);
        for &size in boxes {
            let able = anchors.iter().filter(|&&anchor| similarity(size, anchor) > least).count();
            reached += usize::from(able > 0);
            pairs += able;
        }
        let count = boxes.len().max(1) as f64;
        Self { recall: reached as f64 / count, anchors_per_box: pairs as f64 / count }
    }
}

/// The smaller ratio of widths and heights, at most 1.
pub(super) fn similarity(a: Size, b: Size) -> f32 {
    let side = |a: f32, b: f32| (a / b).min(b / a);
    side(a[0], b[0]).min(side(a[1], b[1]))
}

/// What evolution maximizes: the mean over the boxes of the similarity of the best anchor. One that
/// is too low to learn counts as 0.
pub(super) fn fitness(anchors: &[Size], boxes: &[Size], anchor_t: f32) -> f64 {
    let least = 1.0 / anchor_t;
    let sum: f64 = boxes
        .iter()
        .map(|&size| anchors.iter().fold(0.0, |best, &anchor| similarity(size, anchor).max(best)))
        .filter(|&best| best > least)
        .map(f64::from)
        .sum();
    sum / boxes.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_is_the_smaller_ratio_of_the_sides() {
        assert_eq!(similarity([10.0, 10.0], [10.0, 10.0]), 1.0);
        assert_eq!(similarity([10.0, 20.0], [20.0, 80.0]), 0.25);
        assert_eq!(similarity([20.0, 80.0], [10.0, 20.0]), 0.25);
        assert_eq!(similarity([10.0, 0.0], [10.0, 10.0]), 0.0);
    }

    #[test]
    fn a_box_counts_when_an_anchor_differs_by_less_than_the_threshold() {
        let anchors = [[10.0, 10.0], [20.0, 20.0]];
        let boxes = [[10.0, 10.0], [40.0, 40.0], [80.0, 80.0], [9.0, 41.0]];
        let fit = Fit::of(&anchors, &boxes, 4.0);
        // Both anchors learn the first, the larger one the second (a factor of 4 is too much for the
        // other), none the third, and the larger one the last.
        assert_eq!(fit, Fit { recall: 0.75, anchors_per_box: 1.0 });
    }

    #[test]
    fn without_boxes_the_fit_is_zero() {
        assert_eq!(Fit::of(&[[1.0, 1.0]], &[], 4.0), Fit { recall: 0.0, anchors_per_box: 0.0 });
        assert_eq!(fitness(&[[1.0, 1.0]], &[], 4.0), 0.0);
    }

    #[test]
    fn fitness_uses_the_best_anchor_and_ignores_boxes_out_of_reach() {
        let anchors = [[10.0, 10.0], [20.0, 20.0]];
        assert_eq!(fitness(&anchors, &[[10.0, 10.0], [40.0, 40.0], [100.0, 100.0]], 4.0), 0.5);
    }
}
