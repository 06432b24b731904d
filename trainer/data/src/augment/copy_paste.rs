//! Copy-paste: some objects with an outline are copied to their mirrored position in the same image,
//! unless they would cover others (spec §7).

use super::label::{Label, area};
use crate::image::Image;
use crate::random::Random;

/// The largest share of another object that a copy may cover.
const MOST_COVERED: f32 = 0.3;

/// An outline, x and y of each point.
pub type Polygon = Vec<[f32; 2]>;

/// Copies `round(share · n)` of the `n` labeled objects to the other side of `image`. Does nothing
/// unless every object has an outline.
pub fn copy_paste(share: f64, image: &mut Image, labels: &mut Vec<Label>, random: &mut Random) {
    paste(image, &choose(share, image.width, labels, random));
}

/// Chooses the objects to copy in an image of `width` pixels, adds their labels, and returns the outlines of the
/// copies. Pixels do not matter for the choice.
pub fn choose(share: f64, width: usize, labels: &mut Vec<Label>, random: &mut Random) -> Vec<Polygon> {
    if share == 0.0 || labels.is_empty() || labels.iter().any(|label| label.polygon.is_empty()) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..labels.len()).collect();
    random.shuffle(&mut order);
    order.truncate((share * labels.len() as f64).round_ties_even() as usize);
    let width = width as f32;
    let mut copies = Vec::new();
    for index in order {
        let Label { class, corners: [l, t, r, b], polygon } = labels[index].clone();
        let corners = [width - r, t, width - l, b];
        if labels.iter().all(|label| covered(corners, label.corners) < MOST_COVERED) {
            let polygon: Polygon = polygon.into_iter().map(|[x, y]| [width - x, y]).collect();
            copies.push(polygon.clone());
            labels.push(Label { class, corners, polygon });
        }
    }
    copies
}

/// Replaces the pixels inside `copies` by those of the mirrored `image`.
pub fn paste(image: &mut Image, copies: &[Polygon]) {
    if copies.is_empty() {
        return;
    }
    let original = image.clone();
    for polygon in copies {
        fill_mirrored(&original, image, polygon);
    }
}

/// The share of `under` that `over` covers.
fn covered(over: [f32; 4], under: [f32; 4]) -> f32 {
    let width = (over[2].min(under[2]) - over[0].max(under[0])).max(0.0);
    let height = (over[3].min(under[3]) - over[1].max(under[1])).max(0.0);
    width * height / (area(under) + 1e-16)
}

/// Replaces the pixels whose centers are inside `polygon` by those of the mirrored `original`.
fn fill_mirrored(original: &Image, image: &mut Image, polygon: &[[f32; 2]]) {
    let mut crossings = Vec::new();
    let (width, height) = (image.width, image.height);
    for y in 0..height {
        let line = y as f32 + 0.5;
        crossings.clear();
        for (i, &[x1, y1]) in polygon.iter().enumerate() {
            let [x0, y0] = polygon[if i == 0 { polygon.len() - 1 } else { i - 1 }];
            if (y0 <= line) != (y1 <= line) {
                crossings.push(x0 + (line - y0) / (y1 - y0) * (x1 - x0));
            }
        }
        crossings.sort_unstable_by(f32::total_cmp);
        for span in crossings.chunks_exact(2) {
            let edge = |x: f32| (x - 0.5).ceil().clamp(0.0, width as f32) as usize;
            for x in edge(span[0])..edge(span[1]) {
                let at = (y * width + x) * 3;
                image.data[at..at + 3].copy_from_slice(&original.pixel(width - 1 - x, y));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn square(left: f32, top: f32, side: f32) -> Label {
        let (right, bottom) = (left + side, top + side);
        Label {
            class: 1.0,
            corners: [left, top, right, bottom],
            polygon: vec![[left, top], [right, top], [right, bottom], [left, bottom]],
        }
    }

    #[test]
    fn an_object_is_mirrored_with_its_pixels_and_its_label() {
        let mut image = Image::filled(40, 20, [0; 3]);
        for y in 4..10 {
            for x in 2..8 {
                image.data[(y * 40 + x) * 3..][..3].fill(200);
            }
        }
        let mut labels = vec![square(2.0, 4.0, 6.0)];
        copy_paste(1.0, &mut image, &mut labels, &mut Random::keyed(0, 0, Purpose::Augment, 0));
        assert_eq!(labels.len(), 2);
        assert_eq!(labels[1].corners, [32.0, 4.0, 38.0, 10.0]);
        for y in 0..20 {
            for x in 0..40 {
                let object = (4..10).contains(&y) && ((2..8).contains(&x) || (32..38).contains(&x));
                assert_eq!(image.pixel(x, y), [if object { 200 } else { 0 }; 3], "({x}, {y})");
            }
        }
    }

    #[test]
    fn nothing_is_pasted_over_another_object_or_without_outlines() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        let mut image = Image::filled(40, 20, [0; 3]);
        let mut labels = vec![square(2.0, 4.0, 6.0), square(32.0, 4.0, 6.0)];
        copy_paste(1.0, &mut image, &mut labels, &mut random);
        assert_eq!(labels.len(), 2);
        labels.truncate(1);
        labels[0].polygon.clear();
        copy_paste(1.0, &mut image, &mut labels, &mut random);
        assert_eq!(labels.len(), 1);
    }

    /// `bbox_ioa` of YOLOv5 for 40 boxes over 40 others.
    #[test]
    fn the_covered_share_equals_yolov5s() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/f_iou_ap.safetensors");
        let bytes = std::fs::read(file).unwrap();
        let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
        let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let header: serde_json::Value = serde_json::from_slice(header).unwrap();
        let floats = |name: &str| -> Vec<f32> {
            let [start, end] = [0, 1].map(|i| header[name]["data_offsets"][i].as_u64().unwrap() as usize);
            data[start..end].as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect()
        };
        let corners = |name: &str| -> Vec<[f32; 4]> {
            let rows = floats(name);
            let corners = |&[x, y, w, h]: &[f32; 4]| [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0];
            rows.as_chunks::<4>().0.iter().map(corners).collect()
        };
        let (over, under) = (corners("a_xywh"), corners("b_xywh"));
        let expected = floats("bbox_ioa");
        assert_eq!(expected.len(), over.len() * under.len());
        for (i, a) in over.iter().enumerate() {
            for (j, b) in under.iter().enumerate() {
                let (ours, theirs) = (covered(*a, *b), expected[i * under.len() + j]);
                assert!((ours - theirs).abs() < 1e-5, "boxes {i} and {j}: {ours}, YOLOv5 {theirs}");
            }
        }
    }
}
