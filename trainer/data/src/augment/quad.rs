//! `--quad`: four images of a batch become one of twice the size (spec §6). With probability one half it is the
//! first of them, enlarged; otherwise it has all four, which are next to each other.

use yolo_plan::batch::QUAD;

use crate::random::{Purpose, Random};

/// The quadrants of the four images in their order, as row and column: the second is below the first.
const QUADRANTS: [[usize; 2]; QUAD] = [[0, 0], [1, 0], [0, 1], [1, 1]];

/// The quadrants that the four images at positions of an epoch fill, of which the first is `position`; `None` if the
/// first image fills all.
pub fn draw(seed: u64, epoch: u64, position: usize) -> Option<[[usize; 2]; QUAD]> {
    let mut random = Random::keyed(seed, epoch, Purpose::Quad, position as u64);
    (!random.chance(0.5)).then_some(QUADRANTS)
}

/// Copies an image to a quadrant. `planes` are those of the result, each twice as high and wide as those of `image`,
/// which are `height` by `width` pixels.
pub fn place(image: &[u8], [height, width]: [usize; 2], [row, column]: [usize; 2], planes: &mut [u8]) {
    let planes = planes.chunks_exact_mut(4 * height * width);
    for (from, to) in image.chunks_exact(height * width).zip(planes) {
        let rows = to.chunks_exact_mut(2 * width).skip(row * height);
        for (from, to) in from.chunks_exact(width).zip(rows) {
            to[column * width..][..width].copy_from_slice(from);
        }
    }
}

/// The label of an image in a quadrant, as class, center, width and height in fractions of the result.
pub fn placed([class, x, y, width, height]: [f32; 5], [row, column]: [usize; 2]) -> [f32; 5] {
    [class, (x + column as f32) * 0.5, (y + row as f32) * 0.5, width * 0.5, height * 0.5]
}

/// Doubles both sides of an image by bilinear interpolation as PyTorch does it without aligned corners, rounding down
/// to bytes. `planes` are those of the result.
pub fn enlarge(image: &[u8], [height, width]: [usize; 2], planes: &mut [u8]) {
    let planes = planes.chunks_exact_mut(4 * height * width);
    for (from, to) in image.chunks_exact(height * width).zip(planes) {
        for (y, to) in to.chunks_exact_mut(2 * width).enumerate() {
            let [near, far] = neighbors(y, height).map(|y| &from[y * width..][..width]);
            // Four times a pixel of a row between two rows.
            let between = |x: usize| 3 * u16::from(near[x]) + u16::from(far[x]);
            for (x, to) in to.iter_mut().enumerate() {
                let [near, far] = neighbors(x, width);
                *to = ((3 * between(near) + between(far)) / 16) as u8;
            }
        }
    }
}

/// The pixels on one axis of which a pixel of the result has three quarters and one quarter. At an edge both are the
/// same.
fn neighbors(index: usize, length: usize) -> [usize; 2] {
    let near = index / 2;
    let far = if index.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(length - 1) };
    [near, far]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_images_are_enlarged() {
        let enlarged = |seed| (0..1000).filter(|&position| draw(seed, 0, position).is_none()).count();
        assert!((430..570).contains(&enlarged(0)) && (430..570).contains(&enlarged(1)));
        let draws = |epoch| (0..50).map(|position| draw(0, epoch, position)).collect::<Vec<_>>();
        assert!(draws(3) == draws(3) && draws(3) != draws(4));
    }
}
