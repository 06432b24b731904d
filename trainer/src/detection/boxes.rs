//! Boxes and their overlap. A box is its corners left, top, right and bottom in pixels, either of
//! the network input or of the image file; the caller knows which.

/// Corners of a box: left, top, right, bottom, in pixels.
pub type Corners = [f32; 4];

/// One detected object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detection {
    /// The box.
    pub corners: Corners,
    /// Objectness times class probability, 0 to 1.
    pub confidence: f32,
    /// Index of the class.
    pub class: usize,
}

/// One labeled object, in the same coordinates as the detections that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// The box.
    pub corners: Corners,
    /// Index of the class.
    pub class: usize,
}

/// From center and size to corners.
pub fn corners([x, y, w, h]: [f32; 4]) -> Corners {
    [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]
}

/// Area of a box. As in YOLOv5, negative sides are not clamped.
fn area([left, top, right, bottom]: Corners) -> f32 {
    (right - left) * (bottom - top)
}

/// Area of the intersection of two boxes.
fn intersection(a: Corners, b: Corners) -> f32 {
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    width * height
}

/// Intersection over union, with the epsilon 1e-7 of matching (spec §9).
pub fn iou(a: Corners, b: Corners) -> f32 {
    let shared = intersection(a, b);
    shared / (area(a) + area(b) - shared + 1e-7)
}

/// Maps a box from letterboxed pixels to pixels of the image file, clipped to the image. `gain` is the scale of
/// both axes, `pad` is (width, height), `native` is (height, width).
pub fn to_native(corners: Corners, gain: f32, pad: [f32; 2], native: [u32; 2]) -> Corners {
    let [height, width] = native.map(|side| side as f32);
    let x = |value: f32| ((value - pad[0]) / gain).clamp(0.0, width);
    let y = |value: f32| ((value - pad[1]) / gain).clamp(0.0, height);
    [x(corners[0]), y(corners[1]), x(corners[2]), y(corners[3])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_overlapping_squares_have_an_iou_of_a_third() {
        let value = iou([0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0]);
        assert!((value - 1.0 / 3.0).abs() < 1e-6, "{value}");
    }

    #[test]
    fn disjoint_boxes_have_an_iou_of_zero() {
        assert_eq!(iou([0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]), 0.0);
    }

    #[test]
    fn a_letterboxed_box_maps_back_into_the_image() {
        // A 200x100 image (h 100, w 200) halved and padded by 25 rows on top.
        let native = to_native([10.0, 35.0, 120.0, 60.0], 0.5, [0.0, 25.0], [100, 200]);
        assert_eq!(native, [20.0, 20.0, 200.0, 70.0]);
    }
}
