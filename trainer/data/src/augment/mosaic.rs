//! Mosaic: four images around a random center of a canvas twice the size of the network's input
//! (spec §7). The transform that follows crops the input from the canvas.

use super::label::Label;
use crate::image::Image;
use crate::image::letterbox::PADDING;
use crate::random::Random;
use crate::scan::Sample;

/// Draws the center (y, x) of a mosaic for images of `size` pixels: y first, each from 0.5 to 1.5
/// times the size.
pub fn draw_center(size: usize, random: &mut Random) -> [usize; 2] {
    let half = size as f64 / 2.0;
    let mut along = || random.uniform(half, 3.0 * half) as usize;
    let y = along();
    [y, along()]
}

/// The quadrant of a tile, in the order of the tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quadrant {
    TopLeft,
    TopRight,
    BottomLeft,
    BottomRight,
}

const QUADRANTS: [Quadrant; 4] =
    [Quadrant::TopLeft, Quadrant::TopRight, Quadrant::BottomLeft, Quadrant::BottomRight];

/// The position of a tile on one axis: the first canvas pixel, the first tile pixel, and the number of
/// pixels. The tile ends at the center if `before`, and starts there otherwise.
fn along(center: usize, tile: usize, canvas: usize, before: bool) -> (usize, usize, usize) {
    if before {
        let length = tile.min(center);
        (center - length, tile - length, length)
    } else {
        (center, 0, tile.min(canvas - center))
    }
}

/// Puts four `tiles`, each an image and its sample, on `canvas` around `center` (y, x), in the order
/// top left, top right, bottom left, bottom right. The canvas becomes twice `size` in each
/// direction; tiles and labels are clipped to it.
pub fn mosaic(
    tiles: [(&Image, &Sample); 4],
    center: [usize; 2],
    size: usize,
    canvas: &mut Image,
    labels: &mut Vec<Label>,
) {
    let side = 2 * size;
    canvas.width = side;
    canvas.height = side;
    canvas.data.clear();
    canvas.data.resize(side * side * 3, PADDING);
    labels.clear();
    let [center_y, center_x] = center;
    for ((tile, sample), quadrant) in tiles.into_iter().zip(QUADRANTS) {
        let above = matches!(quadrant, Quadrant::TopLeft | Quadrant::TopRight);
        let left = matches!(quadrant, Quadrant::TopLeft | Quadrant::BottomLeft);
        let (canvas_y, tile_y, rows) = along(center_y, tile.height, side, above);
        let (canvas_x, tile_x, columns) = along(center_x, tile.width, side, left);
        for row in 0..rows {
            let from = &tile.row(tile_y + row)[tile_x * 3..(tile_x + columns) * 3];
            let at = ((canvas_y + row) * side + canvas_x) * 3;
            canvas.data[at..at + from.len()].copy_from_slice(from);
        }
        let shift = [canvas_x as f64 - tile_x as f64, canvas_y as f64 - tile_y as f64];
        labels.extend(Label::of_sample(sample, [tile.width as f64, tile.height as f64], shift).map(
            |mut label| {
                label.clip(side as f32, side as f32);
                label
            },
        ));
    }
}
