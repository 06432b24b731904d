//! Draws boxes with their names on images, for the pictures of batches and for predictions.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use yolo_data::image::Image;

use super::plot_style::color;

/// Height of a line of text in pixels.
const TEXT: usize = 16;

/// A box to draw, in pixels of its area.
#[derive(Debug)]
pub struct LabeledBox {
    /// Left, top, right and bottom.
    pub corners: [f32; 4],
    /// Decides the color.
    pub class: usize,
    /// Written above the box.
    pub text: String,
}

/// The part of an image that may be drawn on, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Distance from the left side of the image.
    pub left: usize,
    /// Distance from the top of the image.
    pub top: usize,
    /// Its width.
    pub width: usize,
    /// Its height.
    pub height: usize,
}

impl Area {
    /// All of an image.
    pub fn whole(image: &Image) -> Self {
        Self { left: 0, top: 0, width: image.width, height: image.height }
    }
}

/// Draws a box with its text above it, or inside if there is no space above. Nothing outside of
/// `area` changes.
pub fn draw_box(image: &mut Image, area: Area, labeled: &LabeledBox) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let ink = color(labeled.class);
    let ink = [ink.0, ink.1, ink.2];
    let clamped = |value: f32, side: usize| (value.round() as i64).clamp(0, side as i64 - 1) as usize;
    let [left, top, right, bottom] = labeled.corners;
    let (left, right) = (clamped(left, area.width), clamped(right, area.width));
    let (top, bottom) = (clamped(top, area.height), clamped(bottom, area.height));
    for line in 0..2 {
        for x in left..=right {
            put(image, area, [x, top + line], ink);
            put(image, area, [x, bottom.saturating_sub(line)], ink);
        }
        for y in top..=bottom {
            put(image, area, [left + line, y], ink);
            put(image, area, [right.saturating_sub(line), y], ink);
        }
    }
    write_text(image, area, [left, top.checked_sub(TEXT).unwrap_or(top)], &labeled.text, ink);
}

fn put(image: &mut Image, area: Area, [x, y]: [usize; 2], rgb: [u8; 3]) {
    if x < area.width && y < area.height {
        let at = ((area.top + y) * image.width + area.left + x) * 3;
        image.data[at..at + 3].copy_from_slice(&rgb);
    }
}

/// Writes white letters on the color of the box.
fn write_text(image: &mut Image, area: Area, [left, top]: [usize; 2], text: &str, ground: [u8; 3]) {
    let mut left = left;
    for letter in text.chars() {
        // Characters that the font lacks become a question mark.
        let raster = |letter| get_raster(letter, FontWeight::Regular, RasterHeight::Size16);
        let Some(raster) = raster(letter).or_else(|| raster('?')) else { return };
        for (y, row) in raster.rows().enumerate() {
            for (x, &share) in row.iter().enumerate() {
                let mixed = ground.map(|part| {
                    let (part, share) = (u16::from(part), u16::from(share));
                    ((part * (255 - share) + 255 * share) / 255) as u8
                });
                put(image, area, [left + x, top + y], mixed);
            }
        }
        left += raster.width();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_may_cover_the_whole_image() {
        let mut image = Image::filled(32, 32, [0; 3]);
        let labeled = LabeledBox { corners: [0.0, 0.0, 32.0, 32.0], class: 1, text: String::new() };
        let area = Area::whole(&image);
        draw_box(&mut image, area, &labeled);
        assert!([(0, 0), (31, 31)].iter().all(|&(x, y)| image.pixel(x, y) != [0; 3]));
        assert_eq!(image.pixel(16, 16), [0; 3]);
    }

    #[test]
    fn nothing_is_drawn_in_an_empty_area() {
        let mut image = Image::filled(32, 32, [0; 3]);
        let labeled = LabeledBox { corners: [4.0, 4.0, 8.0, 8.0], class: 1, text: "cat".to_owned() };
        for (width, height) in [(0, 32), (32, 0)] {
            draw_box(&mut image, Area { left: 0, top: 0, width, height }, &labeled);
        }
        assert!(image.data.iter().all(|part| *part == 0));
    }

    #[test]
    fn a_box_stays_in_its_area_and_its_text_is_lighter_than_the_ground() {
        let mut image = Image::filled(128, 64, [0; 3]);
        let area = Area { left: 64, top: 0, width: 64, height: 64 };
        let labeled = LabeledBox { corners: [-9.0, 24.0, 90.0, 40.0], class: 0, text: "cat".to_owned() };
        draw_box(&mut image, area, &labeled);
        let ink = color(0);
        let ink = [ink.0, ink.1, ink.2];
        assert_eq!([image.pixel(64, 30), image.pixel(127, 30), image.pixel(90, 40)], [ink; 3]);
        assert!((0..64).all(|x| (0..64).all(|y| image.pixel(x, y) == [0; 3])));
        let above = (64..88).flat_map(|x| (8..24).map(move |y| (x, y)));
        let lighter = |rgb: [u8; 3]| rgb != ink && rgb.iter().all(|&part| part > 160);
        assert!(above.map(|(x, y)| image.pixel(x, y)).any(lighter));
    }
}
