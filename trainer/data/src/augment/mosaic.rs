//! Mosaic: four images around a random centre of a canvas twice the size of the network's input
//! (spec §7). The perspective that follows cuts the input out of the canvas.

use super::boxes::Label;
use crate::image::Image;
use crate::image::letterbox::PADDING;
use crate::random::Random;
use crate::scan::Sample;

/// Draws the centre (y, x) of a mosaic for images of `size` pixels: y first, each between half
/// and one and a half sizes.
pub fn draw_centre(size: usize, random: &mut Random) -> [usize; 2] {
    let half = size as f64 / 2.0;
    let mut along = || random.uniform(half, 3.0 * half) as usize;
    let y = along();
    [y, along()]
}

/// One of the four places, in the order of the tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    TopLeft,
    TopRight,
    BottomLeft,
    BottomRight,
}

const PLACES: [Place; 4] = [Place::TopLeft, Place::TopRight, Place::BottomLeft, Place::BottomRight];

/// Where a tile lies on one axis: first canvas pixel, first tile pixel, and their number. `before`
/// says that the tile ends at the centre, otherwise it starts there.
fn along(centre: usize, tile: usize, canvas: usize, before: bool) -> (usize, usize, usize) {
    if before {
        let length = tile.min(centre);
        (centre - length, tile - length, length)
    } else {
        (centre, 0, tile.min(canvas - centre))
    }
}

/// Puts four `tiles`, each an image and its sample, on `canvas` around `centre` (y, x). The tiles
/// go top left, top right, bottom left, bottom right and are cut at the canvas, which becomes
/// twice `size` each way; labels are shifted along and cut too.
pub fn mosaic(
    tiles: [(&Image, &Sample); 4],
    centre: [usize; 2],
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
    let [centre_y, centre_x] = centre;
    for ((tile, sample), place) in tiles.into_iter().zip(PLACES) {
        let above = matches!(place, Place::TopLeft | Place::TopRight);
        let left = matches!(place, Place::TopLeft | Place::BottomLeft);
        let (canvas_y, tile_y, rows) = along(centre_y, tile.height, side, above);
        let (canvas_x, tile_x, columns) = along(centre_x, tile.width, side, left);
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
