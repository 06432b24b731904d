//! Labels in pixels while an image is augmented, and the rules that decide which of them survive
//! (spec §7): corners through a transform, clipping, and candidates by size, area and aspect.

use super::geometry::{Transform, apply};
use crate::scan::Sample;

/// A labelled object in pixels of the image that is being made.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Index of the class.
    pub class: f32,
    /// Left, top, right, bottom.
    pub corners: [f32; 4],
    /// The outline, x and y of each point; empty when only a box is known.
    pub polygon: Vec<[f32; 2]>,
}

impl Label {
    /// The labels of `sample` when its image is `width` by `height` pixels and stands `left` and
    /// `top` pixels inside a larger one.
    pub fn of_sample(
        sample: &Sample,
        [width, height]: [f64; 2],
        [left, top]: [f64; 2],
    ) -> impl Iterator<Item = Self> {
        // Polygons only count when every box has one (spec §7).
        let outlined = sample.segments.len() == sample.boxes.len();
        sample.boxes.iter().enumerate().map(move |(i, &[class, cx, cy, w, h])| {
            let [cx, cy, w, h] = [cx, cy, w, h].map(f64::from);
            let x = |at: f64| (width * at + left) as f32;
            let y = |at: f64| (height * at + top) as f32;
            Self {
                class,
                corners: [x(cx - w / 2.0), y(cy - h / 2.0), x(cx + w / 2.0), y(cy + h / 2.0)],
                polygon: match sample.segments.get(i) {
                    Some(points) if outlined => {
                        points.iter().map(|&[px, py]| [x(px.into()), y(py.into())]).collect()
                    }
                    _ => Vec::new(),
                },
            }
        })
    }

    /// Cuts box and outline to an image of `width` by `height` pixels.
    pub fn clip(&mut self, width: f32, height: f32) {
        self.corners = clip(self.corners, width, height);
        for point in &mut self.polygon {
            *point = [point[0].clamp(0.0, width), point[1].clamp(0.0, height)];
        }
    }
}

/// Cuts left, top, right, bottom to an image of `width` by `height` pixels.
pub fn clip([left, top, right, bottom]: [f32; 4], width: f32, height: f32) -> [f32; 4] {
    [left.clamp(0.0, width), top.clamp(0.0, height), right.clamp(0.0, width), bottom.clamp(0.0, height)]
}

/// Width times height.
pub fn area([left, top, right, bottom]: [f32; 4]) -> f32 {
    (right - left) * (bottom - top)
}

/// Whether a box is still worth learning after a transform: larger than 2 pixels each way, more
/// than `least_area` of its former area left, and not thinner than 1 to 100 (spec §7).
pub fn is_candidate(before: [f32; 4], after: [f32; 4], least_area: f32) -> bool {
    const EPSILON: f32 = 1e-16;
    let [width, height] = [after[2] - after[0], after[3] - after[1]];
    let aspect = (width / (height + EPSILON)).max(height / (width + EPSILON));
    width > 2.0 && height > 2.0 && area(after) / (area(before) + EPSILON) > least_area && aspect < 100.0
}

/// Carries `labels` through `transform` into an image of `width` by `height` pixels and drops
/// those that are not candidates any more. Outlines are used when every label has one; the labels
/// that come back have boxes only.
pub fn transform_labels(labels: &mut Vec<Label>, transform: &Transform, width: usize, height: usize) {
    let (width, height) = (width as f32, height as f32);
    let outlined = labels.iter().all(|label| !label.polygon.is_empty());
    let least_area = if outlined { 0.01 } else { 0.1 };
    let scale = transform.scale as f32;
    labels.retain_mut(|label| {
        let before = label.corners.map(|edge| edge * scale);
        let after = if outlined {
            let points = label.polygon.iter().map(|&point| apply(&transform.matrix, point)).collect();
            bounds(&cut(points, width, height))
        } else {
            let [l, t, r, b] = label.corners;
            let corners = [[l, t], [r, b], [l, b], [r, t]].map(|point| apply(&transform.matrix, point));
            clip(bounds(&corners), width, height)
        };
        label.corners = after;
        label.polygon.clear();
        is_candidate(before, after, least_area)
    });
}

/// The smallest box around some points; empty at the origin when there are none.
fn bounds(points: &[[f32; 2]]) -> [f32; 4] {
    let Some(&[x, y]) = points.first() else { return [0.0; 4] };
    points.iter().fold([x, y, x, y], |[l, t, r, b], &[px, py]| [l.min(px), t.min(py), r.max(px), b.max(py)])
}

/// The part of a polygon inside an image: its sides are cut at one edge of the image after the
/// other. It is the exact form of resampling the outline and keeping the points inside.
fn cut(mut points: Vec<[f32; 2]>, width: f32, height: f32) -> Vec<[f32; 2]> {
    // The distance of a point from an edge, positive inside, for the four edges.
    let edges: [&dyn Fn([f32; 2]) -> f32; 4] =
        [&|[x, _]| x, &|[x, _]| width - x, &|[_, y]| y, &|[_, y]| height - y];
    for inside in edges {
        let mut kept = Vec::with_capacity(points.len() + 4);
        for (i, &to) in points.iter().enumerate() {
            let from = points[if i == 0 { points.len() - 1 } else { i - 1 }];
            let (a, b) = (inside(from), inside(to));
            if (a >= 0.0) != (b >= 0.0) {
                let share = a / (a - b);
                kept.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
            }
            if b >= 0.0 {
                kept.push(to);
            }
        }
        points = kept;
    }
    points
}

/// The labels of a finished image as class, centre x, centre y, width and height, all but the
/// class as fractions of the image, cut to it first with a margin of a thousandth of a pixel
/// (spec §7), then mirrored as the pixels were.
pub fn normalise(
    labels: &[Label],
    [height, width]: [usize; 2],
    up_down: bool,
    left_right: bool,
) -> impl Iterator<Item = [f32; 5]> {
    const MARGIN: f32 = 1e-3;
    let (width, height) = (width as f32, height as f32);
    labels.iter().map(move |label| {
        let [l, t, r, b] = clip(label.corners, width - MARGIN, height - MARGIN);
        let mut cx = (l + r) / 2.0 / width;
        let mut cy = (t + b) / 2.0 / height;
        if up_down {
            cy = 1.0 - cy;
        }
        if left_right {
            cx = 1.0 - cx;
        }
        [label.class, cx, cy, (r - l) / width, (b - t) / height]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_large_enough_whole_enough_and_not_slivers() {
        let before = [0.0, 0.0, 10.0, 10.0];
        assert!(is_candidate(before, before, 0.1));
        assert!(!is_candidate(before, [0.0, 0.0, 2.0, 10.0], 0.1), "two pixels wide is too thin");
        assert!(!is_candidate([0.0, 0.0, 40.0, 40.0], [0.0, 0.0, 12.0, 12.0], 0.1), "9 % is left");
        assert!(is_candidate([0.0, 0.0, 40.0, 40.0], [0.0, 0.0, 13.0, 13.0], 0.1), "10.6 % is left");
        assert!(!is_candidate([0.0, 0.0, 300.0, 3.0], [0.0, 0.0, 300.0, 3.0], 0.1), "aspect 100");
    }

    #[test]
    fn a_polygon_is_cut_where_it_leaves_the_image() {
        // A diamond around (0, 5) of which the right half is inside.
        let diamond = vec![[-4.0, 5.0], [0.0, 1.0], [4.0, 5.0], [0.0, 9.0]];
        assert_eq!(bounds(&cut(diamond, 10.0, 10.0)), [0.0, 1.0, 4.0, 9.0]);
        assert_eq!(cut(vec![[-3.0, 1.0], [-1.0, 1.0], [-1.0, 3.0]], 10.0, 10.0), Vec::<[f32; 2]>::new());
    }
}
