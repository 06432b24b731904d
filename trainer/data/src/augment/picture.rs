//! Writes an augmented image into the planes of a batch in one pass over its rows: transform, mixup, colors and
//! flips (spec §7, order of augmentation). A row stays in the cache from the first step to the last, and no image
//! is kept between steps.

use super::mixup::blend;
use crate::image::filtered::Filtered;
use crate::image::finish::Finish;
use crate::image::tiles::View;

/// An augmented image whose pixels are not computed yet.
#[derive(Debug)]
pub struct Picture<'a> {
    /// What it shows.
    pub view: View<'a>,
    /// What is mixed into it, and the share that `view` keeps.
    pub mixed: Option<(View<'a>, f64)>,
    /// The changes after the mix.
    pub finish: Finish,
}

/// The buffers for writing a picture; the next one uses them again.
#[derive(Debug, Default)]
pub struct PictureBuffers {
    /// A row of what is mixed in.
    mixed: Vec<u8>,
    /// Lines of the tiles of both views.
    filtered: [Vec<Filtered>; 2],
}

impl Picture<'_> {
    /// Writes the picture into `planes`: three planes R, G, B of `height` by `width` pixels, row by row.
    pub fn write(&self, [height, width]: [usize; 2], buffers: &mut PictureBuffers, planes: &mut [u8]) {
        debug_assert_eq!(planes.len(), 3 * height * width);
        let PictureBuffers { mixed, filtered: [filtered, other_filtered] } = buffers;
        mixed.resize(3 * width, 0);
        self.view.start(filtered);
        if let Some((other, _)) = &self.mixed {
            other.start(other_filtered);
        }
        for y in 0..height {
            let at = if self.finish.up_down { height - 1 - y } else { y };
            let mut row = row_of(planes, at, width);
            self.view.row(y, filtered, row.each_mut().map(|plane| &mut **plane));
            if let Some((other, share)) = &self.mixed {
                other.row(y, other_filtered, row_of(mixed, 0, width));
                for (plane, other) in row.iter_mut().zip(mixed.chunks_exact(width)) {
                    blend(*share, plane, other);
                }
            }
            self.finish.apply(row);
        }
    }
}

/// Row `y`, `width` pixels wide, of three planes that follow each other.
fn row_of(planes: &mut [u8], y: usize, width: usize) -> [&mut [u8]; 3] {
    let size = planes.len() / 3;
    let (red, rest) = planes.split_at_mut(size);
    let (green, blue) = rest.split_at_mut(size);
    [red, green, blue].map(|plane| &mut plane[y * width..(y + 1) * width])
}
