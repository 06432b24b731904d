//! The last step before an image enters a batch: colors, flips and the conversion from interleaved
//! to planar pixels, in one pass (spec §7, order of augmentation).

use super::hsv::HsvTables;
use super::{Image, hsv_rows};

/// The changes to an image while it is copied into a batch.
#[derive(Debug, Clone, Default)]
pub struct Finish {
    /// The color augmentation, if any.
    pub hsv: Option<HsvTables>,
    /// Whether to flip vertically.
    pub up_down: bool,
    /// Whether to flip horizontally.
    pub left_right: bool,
}

impl Finish {
    /// Changes the colors of a row of three planes and flips it horizontally. Whoever writes the rows flips them
    /// vertically.
    pub fn apply(&self, mut row: [&mut [u8]; 3]) {
        if let Some(hsv) = &self.hsv {
            hsv_rows::apply(hsv, row.each_mut().map(|plane| &mut **plane));
        }
        if self.left_right {
            row.into_iter().for_each(<[u8]>::reverse);
        }
    }

    /// Writes `image` into `planes`: three planes R, G, B of the image's size, row by row.
    pub fn write(&self, image: &Image, planes: &mut [u8]) {
        let (width, height) = (image.width, image.height);
        debug_assert_eq!(planes.len(), 3 * width * height);
        let (red, rest) = planes.split_at_mut(width * height);
        let (green, blue) = rest.split_at_mut(width * height);
        let rows = red
            .chunks_exact_mut(width)
            .zip(green.chunks_exact_mut(width))
            .zip(blue.chunks_exact_mut(width))
            .enumerate();
        for (y, ((red, green), blue)) in rows {
            let source = image.row(if self.up_down { height - 1 - y } else { y });
            let (pixels, _) = source.as_chunks::<3>();
            let out = red.iter_mut().zip(green).zip(blue);
            match (&self.hsv, self.left_right) {
                (None, false) => copy(out, pixels.iter().copied()),
                (None, true) => copy(out, pixels.iter().rev().copied()),
                (Some(hsv), false) => copy(out, pixels.iter().map(|&p| hsv.apply(p))),
                (Some(hsv), true) => copy(out, pixels.iter().rev().map(|&p| hsv.apply(p))),
            }
        }
    }
}

/// Copies pixels into the rows of three planes.
fn copy<'a>(
    out: impl Iterator<Item = ((&'a mut u8, &'a mut u8), &'a mut u8)>,
    pixels: impl Iterator<Item = [u8; 3]>,
) {
    for (((red, green), blue), pixel) in out.zip(pixels) {
        [*red, *green, *blue] = pixel;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_become_planes_and_are_flipped() {
        let image = Image { width: 2, height: 2, data: (0..12).collect() };
        let mut planes = [0; 12];
        let mut write = |up_down, left_right| {
            Finish { hsv: None, up_down, left_right }.write(&image, &mut planes);
            planes
        };
        assert_eq!(write(false, false), [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
        assert_eq!(write(true, false), [6, 9, 0, 3, 7, 10, 1, 4, 8, 11, 2, 5]);
        assert_eq!(write(false, true), [3, 0, 9, 6, 4, 1, 10, 7, 5, 2, 11, 8]);
        assert_eq!(write(true, true), [9, 6, 3, 0, 10, 7, 4, 1, 11, 8, 5, 2]);
    }
}
