//! Draws plots into an image, for the PNG and JPEG files beside the SVG files. Lines are smooth, and western letters
//! come with the program, so that a plot looks the same on every machine. A unit of a plot is two pixels.

use std::convert::Infallible;

use noto_sans_mono_bitmap::RasterHeight;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};
use yolo_data::image::Image;

use super::letters::{Letter, letters};

/// Pixels per unit.
const SCALE: i32 = 2;
/// Letters in units of at most this height are drawn with 24 pixels, larger ones with 32.
const SMALL: f64 = 14.0;

/// An image as a surface of plots.
pub(super) struct Raster<'a> {
    image: &'a mut Image,
}

impl<'a> Raster<'a> {
    /// A white image for a plot of this width and height in units.
    pub(super) fn canvas((width, height): (u32, u32)) -> Image {
        Image::filled(width as usize * SCALE as usize, height as usize * SCALE as usize, [255; 3])
    }

    /// Draws on such an image.
    pub(super) fn on(image: &'a mut Image) -> Self {
        Self { image }
    }

    /// Mixes a color into a pixel; `share` is the part of the pixel that it covers.
    fn blend(&mut self, x: i32, y: i32, color: BackendColor, share: f64) {
        let inside = x >= 0 && y >= 0 && (x as usize) < self.image.width && (y as usize) < self.image.height;
        let share = share.clamp(0.0, 1.0) * color.alpha;
        if !inside || share <= 0.0 {
            return;
        }
        let at = (y as usize * self.image.width + x as usize) * 3;
        for (part, new) in self.image.data[at..at + 3].iter_mut().zip(<[u8; 3]>::from(color.rgb)) {
            *part = (f64::from(*part) * (1.0 - share) + f64::from(new) * share).round() as u8;
        }
    }

    /// Colors the pixels of a rectangle whose second corner is outside.
    fn fill(&mut self, [left, top, right, bottom]: [i32; 4], color: BackendColor) {
        for y in top.max(0)..bottom.min(self.image.height as i32) {
            for x in left.max(0)..right.min(self.image.width as i32) {
                self.blend(x, y, color, 1.0);
            }
        }
    }

    /// Colors the pixels within `reach` of what `distance` measures, in a rectangle around these points.
    fn near(
        &mut self,
        points: [(f64, f64); 2],
        reach: f64,
        color: BackendColor,
        distance: impl Fn(f64, f64) -> f64,
    ) {
        let [a, b] = points;
        let range = |a: f64, b: f64, side: usize| {
            let from = (a.min(b) - reach - 1.0).floor().clamp(0.0, side as f64);
            let to = (a.max(b) + reach + 2.0).ceil().clamp(0.0, side as f64);
            from as i32..to as i32
        };
        for y in range(a.1, b.1, self.image.height) {
            for x in range(a.0, b.0, self.image.width) {
                let away = distance(f64::from(x) + 0.5, f64::from(y) + 0.5);
                self.blend(x, y, color, reach + 0.5 - away);
            }
        }
    }
}

/// The middle of a unit, in pixels.
fn middle((x, y): BackendCoord) -> (f64, f64) {
    (f64::from(x * SCALE) + 1.0, f64::from(y * SCALE) + 1.0)
}

/// The distance from a point to a line between two others.
fn to_segment((x, y): (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx * dx + dy * dy;
    let along = if length > 0.0 { ((x - a.0) * dx + (y - a.1) * dy) / length } else { 0.0 };
    let along = along.clamp(0.0, 1.0);
    (x - a.0 - along * dx).hypot(y - a.1 - along * dy)
}

/// The letters of a text of this size in units.
fn letters_of(text: &str, size: f64) -> Vec<Letter> {
    letters(text, if size <= SMALL { RasterHeight::Size24 } else { RasterHeight::Size32 })
}

/// Width and height of letters in pixels.
fn extent(letters: &[Letter]) -> (i32, i32) {
    let width = letters.iter().map(|letter| letter.width as i32).sum();
    (width, letters.first().map_or(0, |letter| letter.height as i32))
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Raster<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.image.width as u32 / SCALE as u32, self.image.height as u32 / SCALE as u32)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let (left, top) = (x * SCALE, y * SCALE);
        self.fill([left, top, left + SCALE, top + SCALE], color);
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        let reach = f64::from(style.stroke_width() as i32 * SCALE) / 2.0;
        let (a, b) = (middle(from), middle(to));
        if reach > 0.0 {
            self.near([a, b], reach, style.color(), |x, y| to_segment((x, y), a, b));
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let mut last = None;
        for point in path {
            if let Some(last) = last.replace(point) {
                self.draw_line(last, point, style)?;
            }
        }
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        if fill {
            let (left, right) = (left.min(right), left.max(right));
            let (top, bottom) = (top.min(bottom), top.max(bottom));
            self.fill([left, top, right, bottom].map(|side| side * SCALE), style.color());
            return Ok(());
        }
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.draw_path(corners, style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let (center, radius) = (middle(center), f64::from(radius as i32 * SCALE));
        let from_center = |x: f64, y: f64| (x - center.0).hypot(y - center.1);
        if fill {
            self.near([center; 2], radius, style.color(), from_center);
            return Ok(());
        }
        let corners = [(center.0 - radius, center.1 - radius), (center.0 + radius, center.1 + radius)];
        let reach = f64::from(style.stroke_width() as i32 * SCALE) / 2.0;
        self.near(corners, reach, style.color(), |x, y| (from_center(x, y) - radius).abs());
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, (x, y): BackendCoord) -> Drawn {
        let letters = letters_of(text, style.size());
        let (width, height) = extent(&letters);
        let anchor = style.anchor();
        let mut left = match anchor.h_pos {
            HPos::Left => 0,
            HPos::Right => -width,
            HPos::Center => -width / 2,
        };
        let top = match anchor.v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        for letter in letters {
            for (dy, row) in (0..).zip(letter.rows()) {
                for (dx, &share) in (0..).zip(row.iter()) {
                    let (dx, dy) = style.transform().transform(left + dx, top + dy);
                    self.blend(x * SCALE + dx, y * SCALE + dy, style.color(), f64::from(share) / 255.0);
                }
            }
            left += letter.width as i32;
        }
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let (width, height) = extent(&letters_of(text, style.size()));
        Ok((width as u32 / SCALE as u32, height as u32 / SCALE as u32))
    }
}

#[cfg(test)]
mod tests {
    use plotters::prelude::*;

    use super::*;

    /// An image of 40 by 30 units on which `draw` has drawn.
    fn drawn(draw: impl FnOnce(&DrawingArea<Raster<'_>, plotters::coord::Shift>)) -> Image {
        let mut image = Raster::canvas((40, 30));
        draw(&Raster::on(&mut image).into_drawing_area());
        image
    }

    fn is_dark(image: &Image, x: usize, y: usize) -> bool {
        image.pixel(x, y)[0] < 128
    }

    #[test]
    fn a_unit_is_two_pixels_and_a_line_is_as_wide_as_it_says() {
        let line = |width: u32| {
            drawn(|sheet| {
                let path = PathElement::new([(5, 10), (30, 10)], Color::stroke_width(&BLACK, width));
                sheet.draw(&path).unwrap();
            })
        };
        for width in 1..4 {
            let image = line(width);
            assert_eq!((image.width, image.height), (80, 60));
            let dark = (0..60).filter(|&y| is_dark(&image, 30, y)).count();
            assert_eq!(dark, 2 * width as usize, "the pixels across a line of width {width}");
        }
    }

    #[test]
    fn shapes_outside_of_the_image_are_cut() {
        let image = drawn(|sheet| {
            sheet.draw(&Rectangle::new([(-5, -5), (10, 10)], BLACK.filled())).unwrap();
            sheet.draw(&Circle::new((40, 30), 8, BLACK.filled())).unwrap();
            sheet.draw(&PathElement::new([(-20, 40), (80, 15)], Color::stroke_width(&BLACK, 1))).unwrap();
        });
        assert!(is_dark(&image, 0, 0) && is_dark(&image, 19, 19) && !is_dark(&image, 20, 20));
        assert!(is_dark(&image, 79, 59));
    }

    #[test]
    fn a_text_is_where_its_anchor_is_and_turns() {
        let columns = |image: &Image| {
            let dark = |x: &usize| (0..60).any(|y| is_dark(image, *x, y));
            (0..80).find(dark).unwrap()..(0..80).rfind(dark).unwrap()
        };
        let text = |turned: FontTransform, right: bool| {
            drawn(|sheet| {
                let anchor = if right { HPos::Right } else { HPos::Left };
                let style = ("sans-serif", 12).into_text_style(sheet).transform(turned);
                let style = style.pos(plotters_backend::text_anchor::Pos::new(anchor, VPos::Top));
                sheet.draw_text("mAP", &style, (20, 4)).unwrap();
            })
        };
        let left = columns(&text(FontTransform::None, false));
        assert!(left.start >= 40 && left.end > 60, "{left:?}");
        let right = columns(&text(FontTransform::None, true));
        assert!(right.end <= 40 && right.start < 20, "{right:?}");
        let down = columns(&text(FontTransform::Rotate90, false));
        assert!(down.end <= 40 && down.len() < 24, "{down:?}");
    }
}
