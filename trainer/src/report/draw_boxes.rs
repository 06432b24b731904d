//! Draws boxes with their names on images, for the pictures of batches and for predictions. The colors are those of
//! Okabe and Ito, which people with any color vision can tell apart, and a text is black or white, whichever stands
//! out from the color of its box.

use std::ops::Range;

use noto_sans_mono_bitmap::RasterHeight;
use yolo_data::image::Image;

use super::letters::letters as rasters_of;
use super::plot_style::color;

/// How boxes are drawn, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoxStyle {
    /// Width of the lines.
    pub line: usize,
    /// Width of an edge along both sides of a line, in the color of the text. With it, a line can be seen on a
    /// background of its own color.
    pub edge: usize,
    /// Height of a line of text: a multiple of 16 or 24.
    pub text: usize,
}

impl BoxStyle {
    /// For small pictures whose images must stay visible.
    pub const FINE: Self = Self { line: 2, edge: 0, text: 16 };

    /// For a picture of this height and width, with lines of this width or as wide as YOLOv5 draws them on it by
    /// default: 0.3 % of the mean side, and at least 2 pixels.
    pub fn of_picture([height, width]: [usize; 2], line: Option<usize>) -> Self {
        let mean = (height + width) as f64 / 2.0;
        let line = line.unwrap_or_else(|| (mean * 0.003).round().max(2.0) as usize).max(1);
        // The text is as high as it can be read when the whole picture is seen on a screen.
        let wanted = (mean * 0.03).round() as usize;
        let heights = (1..=64_usize).flat_map(|times| [16 * times, 24 * times]);
        let text = heights.min_by_key(|height| height.abs_diff(wanted)).unwrap_or(16);
        Self { line, edge: line.div_ceil(3), text }
    }
}

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

/// Draws boxes, each with its text above it, or inside if there is no space above. All texts are drawn before all boxes, so
/// that no text hides a box. Nothing outside of `area` changes.
pub fn draw_boxes(image: &mut Image, area: Area, boxes: &[LabeledBox], style: BoxStyle) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let clamped = |value: f32, side: usize| (value.round() as i64).clamp(0, side as i64 - 1);
    let on_area = |labeled: &LabeledBox| {
        let ink = color(labeled.class);
        let ink = [ink.0, ink.1, ink.2];
        let [left, top, right, bottom] = labeled.corners;
        let (left, right) = (clamped(left, area.width), clamped(right, area.width));
        let (top, bottom) = (clamped(top, area.height), clamped(bottom, area.height));
        ([left, top, right, bottom], [ink, letters_on(ink)])
    };
    let (line, edge) = (style.line as i64, style.edge as i64);
    for labeled in boxes {
        let ([left, top, ..], colors) = on_area(labeled);
        let above = top - edge - style.text as i64;
        let place = if above < 0 { [left + line + edge, top + line + edge] } else { [left, above] };
        write_text(image, area, place, &labeled.text, style.text, colors);
    }
    for labeled in boxes {
        let (corners, [ink, letters]) = on_area(labeled);
        if edge > 0 {
            let [left, top, right, bottom] = corners;
            let outside = [left - edge, top - edge, right + edge, bottom + edge];
            frame(image, area, outside, line + 2 * edge, letters);
        }
        frame(image, area, corners, line, ink);
    }
}

/// The pixels that a text covers.
pub fn text_pixels(text: &str, style: BoxStyle) -> usize {
    let (raster_height, times) = raster(style.text);
    let width: usize = rasters_of(text, raster_height).iter().map(|letter| letter.width * times).sum();
    width * style.text
}

/// Draws the lines of a rectangle, whose last column and row are `right` and `bottom`, towards its inside.
fn frame(image: &mut Image, area: Area, [left, top, right, bottom]: [i64; 4], line: i64, rgb: [u8; 3]) {
    let (width, height) = (line.min(right - left + 1), line.min(bottom - top + 1));
    for rows in [top..top + height, bottom + 1 - height..bottom + 1] {
        fill(image, area, left..right + 1, rows, rgb);
    }
    for columns in [left..left + width, right + 1 - width..right + 1] {
        fill(image, area, columns, top..bottom + 1, rgb);
    }
}

/// Fills a rectangle, as far as it is in the area.
fn fill(image: &mut Image, area: Area, columns: Range<i64>, rows: Range<i64>, rgb: [u8; 3]) {
    let within = |range: Range<i64>, side: usize| {
        let clamped = |value: i64| value.clamp(0, side as i64) as usize;
        clamped(range.start)..clamped(range.end)
    };
    let (columns, rows) = (within(columns, area.width), within(rows, area.height));
    for y in rows {
        let start = (area.top + y) * image.width + area.left;
        let pixels =
            &mut image.data[(start + columns.start) * 3..(start + columns.end.max(columns.start)) * 3];
        pixels.chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&rgb));
    }
}

/// Black or white, whichever has the higher contrast to a color (relative luminance of WCAG 2.2).
fn letters_on(rgb: [u8; 3]) -> [u8; 3] {
    let linear = |part: u8| {
        let share = f64::from(part) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let [red, green, blue] = rgb.map(linear);
    let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 { [255; 3] } else { [0; 3] }
}

/// Writes letters of this height on the color of the box; further left if there is no space.
fn write_text(
    image: &mut Image,
    area: Area,
    [left, top]: [i64; 2],
    text: &str,
    height: usize,
    [ground, letters]: [[u8; 3]; 2],
) {
    let (raster_height, times) = raster(height);
    let rasters = rasters_of(text, raster_height);
    let times = times as i64;
    let width: i64 = rasters.iter().map(|raster| raster.width as i64 * times).sum();
    let mut left = left.min(area.width as i64 - width).max(0);
    for raster in rasters {
        for (y, row) in (0..).zip(raster.rows()) {
            for (x, &share) in (0..).zip(row) {
                let mut mixed = ground;
                for (part, letter) in mixed.iter_mut().zip(letters) {
                    let (below, above, share) = (u16::from(*part), u16::from(letter), u16::from(share));
                    *part = ((below * (255 - share) + above * share) / 255) as u8;
                }
                let (x, y) = (left + x * times, top + y * times);
                fill(image, area, x..x + times, y..y + times, mixed);
            }
        }
        left += raster.width as i64 * times;
    }
}

/// The letters that are drawn for a text of this height, and how often each of their pixels is repeated.
fn raster(height: usize) -> (RasterHeight, usize) {
    let (raster, of) =
        if height.is_multiple_of(24) { (RasterHeight::Size24, 24) } else { (RasterHeight::Size16, 16) };
    (raster, (height / of).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_may_cover_the_whole_image() {
        let mut image = Image::filled(32, 32, [0; 3]);
        let labeled = LabeledBox { corners: [0.0, 0.0, 32.0, 32.0], class: 1, text: String::new() };
        let area = Area::whole(&image);
        draw_boxes(&mut image, area, &[labeled], BoxStyle::FINE);
        assert!([(0, 0), (31, 31)].iter().all(|&(x, y)| image.pixel(x, y) != [0; 3]));
        assert_eq!(image.pixel(16, 16), [0; 3]);
    }

    #[test]
    fn nothing_is_drawn_in_an_empty_area() {
        let mut image = Image::filled(32, 32, [0; 3]);
        let labeled = LabeledBox { corners: [4.0, 4.0, 8.0, 8.0], class: 1, text: "cat".to_owned() };
        for (width, height) in [(0, 32), (32, 0)] {
            let area = Area { left: 0, top: 0, width, height };
            draw_boxes(&mut image, area, std::slice::from_ref(&labeled), BoxStyle::FINE);
        }
        assert!(image.data.iter().all(|part| *part == 0));
    }

    #[test]
    fn a_box_stays_in_its_area_and_its_text_is_lighter_than_the_ground() {
        let mut image = Image::filled(128, 64, [0; 3]);
        let area = Area { left: 64, top: 0, width: 64, height: 64 };
        let labeled = LabeledBox { corners: [-9.0, 24.0, 90.0, 40.0], class: 0, text: "cat".to_owned() };
        draw_boxes(&mut image, area, &[labeled], BoxStyle::FINE);
        let ink = color(0);
        let ink = [ink.0, ink.1, ink.2];
        assert_eq!([image.pixel(64, 30), image.pixel(127, 30), image.pixel(90, 40)], [ink; 3]);
        assert!((0..64).all(|x| (0..64).all(|y| image.pixel(x, y) == [0; 3])));
        let above = (64..88).flat_map(|x| (8..24).map(move |y| (x, y)));
        let lighter = |rgb: [u8; 3]| rgb != ink && rgb.iter().all(|&part| part > 160);
        assert!(above.map(|(x, y)| image.pixel(x, y)).any(lighter));
    }

    #[test]
    fn no_text_hides_a_box() {
        let boxed = |left: f32, text: &str| LabeledBox {
            corners: [left, 20.0, left + 20.0, 40.0],
            class: 0,
            text: text.to_owned(),
        };
        // The text of the second, which lies over the lines of the first one, is drawn last.
        let boxes = [boxed(20.0, ""), LabeledBox { corners: [10.0, 38.0, 60.0, 60.0], ..boxed(0.0, "text") }];
        let draw = |boxes: &[LabeledBox]| {
            let mut image = Image::filled(96, 72, [0; 3]);
            let area = Area::whole(&image);
            draw_boxes(&mut image, area, boxes, BoxStyle::FINE);
            image
        };
        let (alone, both) = (draw(&boxes[..1]), draw(&boxes));
        for (x, y) in [(20, 30), (40, 30), (30, 40), (20, 21)] {
            assert_eq!(alone.pixel(x, y), both.pixel(x, y), "{x}, {y}");
            assert_ne!(alone.pixel(x, y), [0; 3]);
        }
    }

    /// On a picture of one color, which the box may have, the text and the lines must stand out.
    #[test]
    fn boxes_of_every_class_are_seen_on_every_background() {
        let contrast = |a: [u8; 3], b: [u8; 3]| a.iter().zip(b).map(|(a, b)| a.abs_diff(b)).max().unwrap();
        for class in 0..8 {
            let ink = color(class);
            let ink = [ink.0, ink.1, ink.2];
            assert!(contrast(letters_on(ink), ink) > 100, "class {class}");
            for ground in [ink, [0; 3], [255; 3], [127; 3]] {
                let mut image = Image::filled(200, 200, ground);
                let (area, style) = (Area::whole(&image), BoxStyle::of_picture([200, 200], None));
                let labeled = LabeledBox { corners: [60.0, 60.0, 160.0, 160.0], class, text: "x".to_owned() };
                draw_boxes(&mut image, area, &[labeled], style);
                let line: Vec<[u8; 3]> = (50..75).map(|x| image.pixel(x, 120)).collect();
                let seen = line.iter().map(|&pixel| contrast(pixel, ground)).max().unwrap();
                assert!(seen > 100, "class {class} on {ground:?}");
            }
        }
    }

    #[test]
    fn lines_and_text_grow_with_the_picture() {
        let of = |height, width| BoxStyle::of_picture([height, width], None);
        assert_eq!(of(480, 640), BoxStyle { line: 2, edge: 1, text: 16 });
        assert_eq!(of(1080, 1920), BoxStyle { line: 5, edge: 2, text: 48 });
        assert_eq!(of(3000, 4000), BoxStyle { line: 11, edge: 4, text: 112 });
        assert_eq!(BoxStyle::of_picture([480, 640], Some(7)).line, 7);
    }

    #[test]
    fn a_text_at_the_right_side_moves_into_the_picture() {
        let mut image = Image::filled(100, 60, [0; 3]);
        let labeled = LabeledBox { corners: [90.0, 30.0, 99.0, 50.0], class: 0, text: "platelet".to_owned() };
        let area = Area::whole(&image);
        draw_boxes(&mut image, area, &[labeled], BoxStyle::FINE);
        let ink = color(0);
        assert_eq!(image.pixel(45, 14), [ink.0, ink.1, ink.2], "the text covers the last 56 columns");
    }
}
