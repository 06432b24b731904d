//! Labels in pixels while an image is augmented, and the rules for which labels to keep after a
//! transform (spec §7): clipping, and limits on size, area and aspect ratio.

use super::transform::{Transform, apply};
use crate::scan::Sample;

/// A labeled object in pixels of the augmented image.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Class index.
    pub class: f32,
    /// Left, top, right, bottom.
    pub corners: [f32; 4],
    /// The outline, x and y of each point. Empty if there is only a box.
    pub polygon: Vec<[f32; 2]>,
}

impl Label {
    /// The labels of `sample` if its image is `width` by `height` pixels, at `left` and `top` in a
    /// larger image.
    pub fn of_sample(
        sample: &Sample,
        [width, height]: [f64; 2],
        [left, top]: [f64; 2],
    ) -> impl Iterator<Item = Self> {
        // Polygons count only if every box has one (spec §7).
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

    /// Clips the box and the outline to an image of `width` by `height` pixels.
    pub fn clip(&mut self, width: f32, height: f32) {
        self.corners = clip(self.corners, width, height);
        for point in &mut self.polygon {
            *point = [point[0].clamp(0.0, width), point[1].clamp(0.0, height)];
        }
    }
}

/// Clips left, top, right, bottom to an image of `width` by `height` pixels.
pub fn clip([left, top, right, bottom]: [f32; 4], width: f32, height: f32) -> [f32; 4] {
    [left.clamp(0.0, width), top.clamp(0.0, height), right.clamp(0.0, width), bottom.clamp(0.0, height)]
}

/// Width times height.
pub fn area([left, top, right, bottom]: [f32; 4]) -> f32 {
    (right - left) * (bottom - top)
}

/// Whether to keep a box after a transform: both sides over 2 pixels, more than `least_area` of its
/// former area left, and an aspect ratio under 100 (spec §7).
pub fn is_candidate(before: [f32; 4], after: [f32; 4], least_area: f32) -> bool {
    const EPSILON: f32 = 1e-16;
    let [width, height] = [after[2] - after[0], after[3] - after[1]];
    let aspect = (width / (height + EPSILON)).max(height / (width + EPSILON));
    width > 2.0 && height > 2.0 && area(after) / (area(before) + EPSILON) > least_area && aspect < 100.0
}

/// Transforms `labels` into an image of `width` by `height` pixels and drops those that are no longer
/// candidates. Outlines are used if every label has one; the results have boxes only.
pub fn transform_labels(labels: &mut Vec<Label>, transform: &Transform, width: usize, height: usize) {
    let (width, height) = (width as f32, height as f32);
    let outlined = labels.iter().all(|label| !label.polygon.is_empty());
    let least_area = if outlined { 0.01 } else { 0.1 };
    let scale = transform.scale as f32;
    labels.retain_mut(|label| {
        let before = label.corners.map(|edge| edge * scale);
        let after = if outlined {
            let points = label.polygon.iter().map(|&point| apply(&transform.matrix, point)).collect();
            bounds(&clip_polygon(points, width, height))
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

/// The bounding box of some points; empty at the origin if there are none.
fn bounds(points: &[[f32; 2]]) -> [f32; 4] {
    let Some(&[x, y]) = points.first() else { return [0.0; 4] };
    points.iter().fold([x, y, x, y], |[l, t, r, b], &[px, py]| [l.min(px), t.min(py), r.max(px), b.max(py)])
}

/// The part of a polygon inside an image, clipped edge by edge (Sutherland–Hodgman). YOLOv5 resamples
/// the outline to 1000 points and keeps those inside, of which this is the limit.
fn clip_polygon(mut points: Vec<[f32; 2]>, width: f32, height: f32) -> Vec<[f32; 2]> {
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

/// The labels of a finished image as class, center x, center y, width and height, as fractions of the
/// image. They are clipped to the image with a margin of a thousandth of a pixel (spec §7) and then
/// flipped like the pixels.
pub fn normalize(
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
    fn candidates_are_not_too_small_too_clipped_or_too_thin() {
        let before = [0.0, 0.0, 10.0, 10.0];
        assert!(is_candidate(before, before, 0.1));
        assert!(!is_candidate(before, [0.0, 0.0, 2.0, 10.0], 0.1), "two pixels wide is too thin");
        assert!(
            !is_candidate([0.0, 0.0, 40.0, 40.0], [0.0, 0.0, 12.0, 12.0], 0.1),
            "9 % of the area is left"
        );
        assert!(
            is_candidate([0.0, 0.0, 40.0, 40.0], [0.0, 0.0, 13.0, 13.0], 0.1),
            "10.6 % of the area is left"
        );
        assert!(!is_candidate([0.0, 0.0, 300.0, 3.0], [0.0, 0.0, 300.0, 3.0], 0.1), "aspect 100");
    }

    #[test]
    fn a_polygon_is_clipped_where_it_leaves_the_image() {
        // A diamond around (0, 5) of which the right half is inside.
        let diamond = vec![[-4.0, 5.0], [0.0, 1.0], [4.0, 5.0], [0.0, 9.0]];
        assert_eq!(bounds(&clip_polygon(diamond, 10.0, 10.0)), [0.0, 1.0, 4.0, 9.0]);
        assert_eq!(
            clip_polygon(vec![[-3.0, 1.0], [-1.0, 1.0], [-1.0, 3.0]], 10.0, 10.0),
            Vec::<[f32; 2]>::new()
        );
    }
}
