//! Mosaic: four images around a random center of a canvas twice the size of the network's input
//! (spec §7). The transform that follows crops the input from the canvas.

use super::label::Label;
use crate::image::Image;
use crate::image::letterbox::PADDING;
use crate::image::tiles::{Place, Tile};
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

/// The position of a tile on one axis: the canvas pixel of its first pixel, and the canvas pixels that show it.
/// The tile ends at the center if `before`, and starts there otherwise.
fn along(center: usize, tile: usize, canvas: usize, before: bool) -> (i32, [i32; 2]) {
    let [center, tile, canvas] = [center, tile, canvas].map(|pixels| pixels as i32);
    let first = if before { center - tile } else { center };
    (first, [first.max(0), (first + tile).min(canvas)])
}

/// The places of tiles with these widths and heights on a canvas of twice `size`, around `center` (y, x), in the
/// order top left, top right, bottom left, bottom right.
pub fn places(sizes: [[usize; 2]; 4], center: [usize; 2], size: usize) -> [Place; 4] {
    let [center_y, center_x] = center;
    std::array::from_fn(|index| {
        let ([width, height], quadrant) = (sizes[index], QUADRANTS[index]);
        let above = matches!(quadrant, Quadrant::TopLeft | Quadrant::TopRight);
        let before = matches!(quadrant, Quadrant::TopLeft | Quadrant::BottomLeft);
        let (x, [left, right]) = along(center_x, width, 2 * size, before);
        let (y, [top, bottom]) = along(center_y, height, 2 * size, above);
        Place { origin: [x, y], area: [left, top, right, bottom] }
    })
}

/// The labels of a tile of `width` by `height` pixels at `place`, clipped to the canvas of a mosaic of `size`.
pub fn labels_of(
    sample: &Sample,
    [width, height]: [usize; 2],
    place: &Place,
    size: usize,
) -> impl Iterator<Item = Label> {
    let side = (2 * size) as f32;
    let shift = place.origin.map(f64::from);
    Label::of_sample(sample, [width as f64, height as f64], shift).map(move |mut label| {
        label.clip(side, side);
        label
    })
}

/// Paints `tiles` on `canvas`, which becomes `side` pixels wide and high. Only copy-paste needs the canvas; and
/// tests, for which it is the plain form of [`crate::image::tiles`].
pub fn paint(tiles: &[Tile<'_>], side: usize, canvas: &mut Image) {
    canvas.width = side;
    canvas.height = side;
    canvas.data.clear();
    canvas.data.resize(side * side * 3, PADDING);
    for Tile { image, place: Place { origin, area: [left, top, right, bottom] } } in tiles {
        let columns = |from: i32| (left - from) as usize * 3..(right - from) as usize * 3;
        for y in *top..*bottom {
            let from = &image.row((y - origin[1]) as usize)[columns(origin[0])];
            let row = y as usize * side * 3;
            canvas.data[row..row + side * 3][columns(0)].copy_from_slice(from);
        }
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
    let sizes = tiles.map(|(image, _)| [image.width, image.height]);
    let places = places(sizes, center, size);
    labels.clear();
    for (((_, sample), size_of), place) in tiles.iter().zip(sizes).zip(&places) {
        labels.extend(labels_of(sample, size_of, place, size));
    }
    let tiles: [Tile<'_>; 4] = std::array::from_fn(|i| Tile { image: tiles[i].0.view(), place: places[i] });
    paint(&tiles, 2 * size, canvas);
}
