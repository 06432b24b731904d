//! How well anchors fit boxes (spec §7). An anchor and a box differ by the largest factor between
//! their sides; its inverse, from 0 to 1, is their likeness, and a box can be learnt by anchors
//! whose likeness lies above one over the threshold of the assignment.

/// Width and height, in pixels.
pub type Size = [f32; 2];

/// How anchors fit all boxes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Best possible recall: the share of the boxes that some anchor can learn; 0 without boxes.
    pub recall: f64,
    /// The mean number of anchors that can learn a box; 0 without boxes.
    pub anchors_per_box: f64,
}

impl Fit {
    /// The fit of `anchors` to `boxes`, when an anchor may differ by less than the factor
    /// `anchor_t` from the boxes that it learns.
    pub fn of(anchors: &[Size], boxes: &[Size], anchor_t: f32) -> Self {
        let least = 1.0 / anchor_t;
        let (mut reached, mut pairs) = (0_usize, 0_usize);
        for &size in boxes {
            let able = anchors.iter().filter(|&&anchor| likeness(size, anchor) > least).count();
            reached += usize::from(able > 0);
            pairs += able;
        }
        let count = boxes.len().max(1) as f64;
        Self { recall: reached as f64 / count, anchors_per_box: pairs as f64 / count }
    }
}

/// The smallest ratio of a side of one to the same side of the other, at most 1.
pub(super) fn likeness(a: Size, b: Size) -> f32 {
    let side = |a: f32, b: f32| (a / b).min(b / a);
    side(a[0], b[0]).min(side(a[1], b[1]))
}

/// What evolution raises: the mean, over the boxes, of the likeness of the best anchor, where a
/// likeness that is too low to learn counts as nothing.
pub(super) fn fitness(anchors: &[Size], boxes: &[Size], anchor_t: f32) -> f64 {
    let least = 1.0 / anchor_t;
    let sum: f64 = boxes
        .iter()
        .map(|&size| anchors.iter().fold(0.0, |best, &anchor| likeness(size, anchor).max(best)))
        .filter(|&best| best > least)
        .map(f64::from)
        .sum();
    sum / boxes.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_the_worse_ratio_of_the_sides_whichever_is_larger() {
        assert_eq!(likeness([10.0, 10.0], [10.0, 10.0]), 1.0);
        assert_eq!(likeness([10.0, 20.0], [20.0, 80.0]), 0.25);
        assert_eq!(likeness([20.0, 80.0], [10.0, 20.0]), 0.25);
        assert_eq!(likeness([10.0, 0.0], [10.0, 10.0]), 0.0);
    }

    #[test]
    fn a_box_counts_when_an_anchor_differs_by_less_than_the_threshold() {
        let anchors = [[10.0, 10.0], [20.0, 20.0]];
        let boxes = [[10.0, 10.0], [40.0, 40.0], [80.0, 80.0], [9.0, 41.0]];
        let fit = Fit::of(&anchors, &boxes, 4.0);
        // The first is in reach of both, the second of the larger one (its 4 is no less than 4 for
        // the other), the third of none, the last of the larger one.
        assert_eq!(fit, Fit { recall: 0.75, anchors_per_box: 1.0 });
    }

    #[test]
    fn without_boxes_the_fit_is_zero() {
        assert_eq!(Fit::of(&[[1.0, 1.0]], &[], 4.0), Fit { recall: 0.0, anchors_per_box: 0.0 });
        assert_eq!(fitness(&[[1.0, 1.0]], &[], 4.0), 0.0);
    }

    #[test]
    fn fitness_takes_the_best_anchor_and_drops_what_is_out_of_reach() {
        let anchors = [[10.0, 10.0], [20.0, 20.0]];
        assert_eq!(fitness(&anchors, &[[10.0, 10.0], [40.0, 40.0], [100.0, 100.0]], 4.0), 0.5);
    }
}
