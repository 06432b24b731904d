//! Warps a canvas of tiles without painting it: every output pixel is sampled from the tiles around its
//! position. What no tile covers, on the canvas and outside, is [`PADDING`]. The bytes are those of painting the
//! canvas and [`super::warp::warp`], but the canvas of a mosaic has four times the output's pixels, and
//! most are never shown.

use std::ops::Range;

use super::ImageView;
use super::bilinear::{
    CHUNK, Neighbors, POSITION_BITS, fixed, mix_chunk, mix_pixels, pixel_of, weight_lower,
};
use super::filtered::Filtered;
use super::letterbox::PADDING;
use super::warp::{Matrix, invert};

/// A row of an output: the same pixels of the planes R, G and B.
pub type Row<'a> = [&'a mut [u8]; 3];

/// The place of an image on a canvas, in canvas pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Where the first pixel of the image is, x and y. It can be outside the canvas.
    pub origin: [i32; 2],
    /// The part of the canvas that shows the image: left, top, right and bottom, the last two exclusive.
    pub area: [i32; 4],
}

/// An image at a place that it covers.
#[derive(Debug, Clone, Copy)]
pub struct Tile<'a> {
    /// The image.
    pub image: ImageView<'a>,
    /// Its place.
    pub place: Place,
}

impl<'a> Tile<'a> {
    /// A whole image as canvas.
    pub fn whole(image: ImageView<'a>) -> Self {
        let area = [0, 0, image.width as i32, image.height as i32];
        Self { image, place: Place { origin: [0, 0], area } }
    }

    /// The pixel at a canvas position, if the tile covers it.
    #[inline]
    fn pixel(&self, x: i32, y: i32) -> Option<[u8; 3]> {
        let Place { origin, area: [left, top, right, bottom] } = self.place;
        let covers = (left..right).contains(&x) && (top..bottom).contains(&y);
        covers.then(|| self.image.pixel((x - origin[0]) as usize, (y - origin[1]) as usize))
    }
}

/// A canvas of tiles that do not overlap, and the matrix that maps it to the output.
#[derive(Debug, Clone)]
pub struct View<'a> {
    tiles: Vec<Tile<'a>>,
    /// Maps output to canvas pixels; `None` if the matrix is singular.
    inverse: Option<Matrix>,
    affine: bool,
}

impl<'a> View<'a> {
    /// The view of `tiles` through `matrix`, which maps canvas to output pixels.
    pub fn new(tiles: Vec<Tile<'a>>, matrix: &Matrix) -> Self {
        Self { tiles, inverse: invert(matrix), affine: matrix[2] == [0.0, 0.0, 1.0] }
    }

    /// Prepares the buffers of [`Self::row`] for rows of this view.
    pub fn start(&self, filtered: &mut Vec<Filtered>) {
        filtered.resize_with(self.tiles.len(), Filtered::default);
        filtered.iter_mut().for_each(Filtered::clear);
    }

    /// Fills row `y` of the three planes of the output.
    ///
    /// `filtered` are buffers, one for each tile, which [`Self::start`] has prepared.
    pub fn row(&self, y: usize, filtered: &mut [Filtered], row: Row<'_>) {
        match &self.inverse {
            None => row.into_iter().for_each(|plane| plane.fill(PADDING)),
            Some(inverse) if self.affine => self.affine_row(inverse, y, filtered, row),
            Some(inverse) => self.perspective_row(inverse, y, row),
        }
    }

    /// Fills an output row of a perspective warp, with one division per pixel.
    fn perspective_row(&self, inverse: &Matrix, y: usize, mut row: Row<'_>) {
        let base = inverse.map(|line| line[1] * y as f64 + line[2]);
        for x in 0..row[0].len() {
            let [x_at, y_at, w] = std::array::from_fn(|axis| inverse[axis][0] * x as f64 + base[axis]);
            let pixel = if w == 0.0 { [PADDING; 3] } else { self.sample(fixed(x_at / w), fixed(y_at / w)) };
            set(&mut row, x, pixel);
        }
    }

    /// Fills an output row of an affine warp. Positions advance by a constant step, so each tile has one span of
    /// the row.
    fn affine_row(&self, inverse: &Matrix, y: usize, filtered: &mut [Filtered], mut row: Row<'_>) {
        let width = row[0].len();
        let line: [Line; 2] = std::array::from_fn(|axis| Line {
            start: fixed(inverse[axis][1] * y as f64 + inverse[axis][2]),
            step: fixed(inverse[axis][0]),
        });
        let spans: Vec<Span<'_>> = self.tiles.iter().map(|tile| Span::new(tile, &line, width)).collect();
        // Without rotation and shear, a tile has the same span in each row that shows it.
        let is_straight = inverse[0][1] == 0.0 && inverse[1][0] == 0.0;
        let mut x = 0;
        while x < width {
            if let Some(index) = spans.iter().position(|span| span.inner.contains(&x)) {
                let span = &spans[index];
                let from = line.map(|line| Line { start: line.at(x), ..line });
                let part = row.each_mut().map(|plane| &mut plane[x..span.inner.end]);
                if is_straight && span.inner.len() >= CHUNK {
                    straight_run(span.tile, &from, &mut filtered[index], part);
                } else {
                    run(span.tile, &from, part);
                }
                x = span.inner.end;
            } else if spans.iter().any(|span| span.outer.contains(&x)) {
                set(&mut row, x, self.sample(line[0].at(x), line[1].at(x)));
                x += 1;
            } else {
                let starts = spans.iter().map(|span| span.outer.start).filter(|&start| start > x);
                let end = starts.min().unwrap_or(width);
                row.iter_mut().for_each(|plane| plane[x..end].fill(PADDING));
                x = end;
            }
        }
    }

    /// The bilinear sample at a fixed-point position, whose neighbors can be in different tiles or in none.
    fn sample(&self, x: i64, y: i64) -> [u8; 3] {
        let (column, line) = (pixel_of(x), pixel_of(y));
        let at = |x, y| self.tiles.iter().find_map(|tile| tile.pixel(x, y)).unwrap_or([PADDING; 3]);
        let four = [at(column, line), at(column + 1, line), at(column, line + 1), at(column + 1, line + 1)];
        mix_pixels(four, x, y)
    }
}

/// The positions of a row's pixels along one axis, in fixed point.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: i64,
    step: i64,
}

impl Line {
    /// The position of pixel `x`. It saturates where a canvas cannot be.
    fn at(&self, x: usize) -> i64 {
        self.start.saturating_add(self.step.saturating_mul(x as i64))
    }

    /// The pixels below `count` whose positions are in `low..high`, which are canvas pixels.
    fn within(&self, low: i32, high: i32, count: usize) -> Range<usize> {
        let [low, high] = [low, high].map(|pixel| i64::from(pixel) << POSITION_BITS);
        let (start, step, low, high) = match self.step {
            0 if (low..high).contains(&self.start) => return 0..count,
            0 => return 0..0,
            1.. => (self.start, self.step, low, high),
            // The same line in a mirror.
            _ => (-self.start, -self.step, 1 - high, 1 - low),
        };
        // The first pixel at or after a position, which is a division that rounds up.
        let first = |position: i64| (-(start - position).div_euclid(step)).clamp(0, count as i64) as usize;
        first(low)..first(high)
    }
}

/// What a row shows of a tile.
#[derive(Debug)]
struct Span<'a> {
    tile: &'a Tile<'a>,
    /// The pixels whose four neighbors are in the tile.
    inner: Range<usize>,
    /// The pixels with at least one neighbor in the tile.
    outer: Range<usize>,
}

impl<'a> Span<'a> {
    fn new(tile: &'a Tile<'a>, line: &[Line; 2], count: usize) -> Self {
        let [left, top, right, bottom] = tile.place.area;
        let within = |[left, top, right, bottom]: [i32; 4]| {
            let down = line[1].within(top, bottom, count);
            if down.is_empty() {
                return 0..0;
            }
            let across = line[0].within(left, right, count);
            let both = across.start.max(down.start)..across.end.min(down.end);
            if both.is_empty() { 0..0 } else { both }
        };
        let outer = within([left - 1, top - 1, right, bottom]);
        let inner = if outer.is_empty() { 0..0 } else { within([left, top, right - 1, bottom - 1]) };
        Self { tile, inner, outer }
    }
}

/// Sets pixel `x` of a row.
#[inline]
fn set(row: &mut Row<'_>, x: usize, pixel: [u8; 3]) {
    for (plane, channel) in row.iter_mut().zip(pixel) {
        plane[x] = channel;
    }
}

/// Samples pixels on two lines of `tile`, in which all neighbors are.
fn straight_run(tile: &Tile<'_>, line: &[Line; 2], filtered: &mut Filtered, row: Row<'_>) {
    let Tile { image, place: Place { origin, .. } } = tile;
    let x = [line[0].start - (i64::from(origin[0]) << POSITION_BITS), line[0].step];
    let upper = pixel_of(line[1].start) - origin[1];
    for number in [upper, upper + 1] {
        filtered.prepare(number, image.row(number as usize), x, row[0].len());
    }
    filtered.mix(upper, weight_lower(line[1].start), row);
}

/// Samples pixels whose neighbors are all in `tile`.
fn run(tile: &Tile<'_>, line: &[Line; 2], mut row: Row<'_>) {
    let count = row[0].len();
    if count < CHUNK {
        for index in 0..count {
            let [x, y] = line.map(|line| line.at(index));
            let (above, below) = neighbors(tile, x, y);
            let four = [above, below].map(|line| [[line[0], line[1], line[2]], [line[3], line[4], line[5]]]);
            set(&mut row, index, mix_pixels([four[0][0], four[0][1], four[1][0], four[1][1]], x, y));
        }
        return;
    }
    let (mut above, mut below) = (Neighbors::default(), Neighbors::default());
    for first in (0..count).step_by(CHUNK) {
        // The last chunk may begin in the one before, and gives the same bytes again.
        let first = first.min(count - CHUNK);
        let [x, y] = line.map(|line| line.at(first));
        let [mut x_at, mut y_at] = [x, y];
        for index in 0..CHUNK {
            let (upper, lower) = neighbors(tile, x_at, y_at);
            above.set(index, upper);
            below.set(index, lower);
            x_at = x_at.wrapping_add(line[0].step);
            y_at = y_at.wrapping_add(line[1].step);
        }
        let chunks = row.each_mut().map(|plane| plane[first..].first_chunk_mut());
        if let [Some(red), Some(green), Some(blue)] = chunks {
            let [x, y] = [[x, line[0].step], [y, line[1].step]].map(|axis| axis.map(|value| value as u32));
            mix_chunk(&above, &below, x, y, [red, green, blue]);
        }
    }
}

/// The upper two and the lower two neighbors of a position, all of which are in `tile`.
#[inline(always)]
fn neighbors<'a>(tile: &Tile<'a>, x: i64, y: i64) -> (&'a [u8; 6], &'a [u8; 6]) {
    let Tile { image, place: Place { origin, .. } } = tile;
    let stride = image.width * 3;
    let at = (pixel_of(y) - origin[1]) as usize * stride + (pixel_of(x) - origin[0]) as usize * 3;
    let two = |at: usize| image.data.get(at..).and_then(|data| data.first_chunk()).unwrap_or(&[PADDING; 6]);
    (two(at), two(at + stride))
}
