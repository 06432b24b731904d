//! Resizes like OpenCV's INTER_LINEAR for 8-bit pixels. First a line is filtered along x, then two lines are mixed.
//! A filtered line is kept for the output rows that follow. Only a window of the output is made where no more is
//! shown, and then only the source pixels behind it are needed.

use std::ops::Range;

use crate::image::simd::with_avx2;
use crate::image::{Image, ImageView, Part, Window};

/// The weight 1, with 11 fraction bits.
const ONE: f32 = 2048.0;
/// The bits that a filtered line loses, so that it fits 16 bits. OpenCV drops them too.
const DROPPED: u32 = 4;

/// The left or upper source pixel of an output pixel, which can be -1, and the weights of it and the next one.
fn tap(index: usize, from: usize, to: usize) -> (i64, [f32; 2]) {
    // OpenCV's order of divisions, for the same rounding.
    let scale = 1.0 / (to as f64 / from as f64);
    let position = ((index as f64 + 0.5) * scale - 0.5) as f32;
    let fraction = position - position.floor();
    (position.floor() as i64, [1.0 - fraction, fraction])
}

/// A weight in fixed point.
fn weight(share: f32) -> i16 {
    (share * ONE).round_ties_even() as i16
}

/// The source pixels of some output columns. Every list has three entries per column except the first.
#[derive(Debug)]
struct Columns {
    /// The offset in bytes of the left pixel in a line of the source part.
    starts: Vec<usize>,
    /// The weights of the left pixels, for each channel.
    left: Vec<i16>,
    /// The weights of the right pixels, for each channel.
    right: Vec<i16>,
}

impl Columns {
    /// The columns of an output `to` pixels wide from a source `from` pixels wide that begins with column `first`.
    fn new(from: usize, to: usize, wanted: Range<usize>, first: usize) -> Self {
        let count = wanted.len();
        let mut columns = Self {
            starts: Vec::with_capacity(count),
            left: Vec::with_capacity(3 * count),
            right: Vec::with_capacity(3 * count),
        };
        for index in wanted {
            let (start, weights) = left_pixel(index, from, to);
            columns.starts.push((start - first) * 3);
            let [left, right] = weights.map(weight);
            columns.left.extend([left; 3]);
            columns.right.extend([right; 3]);
        }
        columns
    }
}

/// The left source pixel of an output column, and the weights of it and of its right neighbor. The left pixel is never
/// the last one, unless there is only one.
fn left_pixel(index: usize, from: usize, to: usize) -> (usize, [f32; 2]) {
    let (start, weights) = tap(index, from, to);
    let last = from - 1;
    match usize::try_from(start) {
        Err(_) => (0, [1.0, 0.0]),
        Ok(start) if start >= last => {
            (last.saturating_sub(1), if last == 0 { [1.0, 0.0] } else { [0.0, 1.0] })
        }
        Ok(start) => (start, weights),
    }
}

/// The two source rows of an output row, and their weights. Unlike along x, OpenCV keeps the weights at the edges, where
/// both rows are the same.
fn rows(index: usize, from: usize, to: usize) -> ([usize; 2], [i16; 2]) {
    let (start, weights) = tap(index, from, to);
    ([start, start + 1].map(|row| row.clamp(0, from as i64 - 1) as usize), weights.map(weight))
}

/// The part of an image of width and height `from` that [`linear_window`] needs for `window` of an image of `to`.
/// The window must not be empty.
pub fn source_of(from: [usize; 2], to: [usize; 2], window: &Window) -> Window {
    let Window { columns, rows: lines } = window;
    let columns = left_pixel(columns.start, from[0], to[0]).0
        ..(left_pixel(columns.end - 1, from[0], to[0]).0 + 2).min(from[0]);
    let lines = rows(lines.start, from[1], to[1]).0[0]..rows(lines.end - 1, from[1], to[1]).0[1] + 1;
    Window { columns, rows: lines }
}

/// Resizes bilinearly, like OpenCV's INTER_LINEAR for 8-bit pixels.
pub fn linear<'a>(image: impl Into<ImageView<'a>>, width: usize, height: usize) -> Image {
    let mut out = Image::default();
    linear_into(image, width, height, &mut out);
    out
}

/// [`linear`] into `out`, whose memory is used again.
pub fn linear_into<'a>(image: impl Into<ImageView<'a>>, width: usize, height: usize, out: &mut Image) {
    let image = image.into();
    let from = [image.width, image.height];
    linear_window(Part::whole(image), from, [width, height], &Window::whole([width, height]), out);
}

/// Makes only `window` of [`linear_into`]'s image of width and height `to`. Of the image of width and height `from`, only
/// a part is given, which must contain [`source_of`].
pub fn linear_window(part: Part<'_>, from: [usize; 2], to: [usize; 2], window: &Window, out: &mut Image) {
    let Part { image, first } = part;
    if from == to && [image.width, image.height] == to && window == &Window::whole(to) {
        image.copy_into(out);
        return;
    }
    let columns = Columns::new(from[0], to[0], window.columns.clone(), first[0]);
    let stride = window.columns.len() * 3;
    (out.width, out.height) = (window.columns.len(), window.rows.len());
    // Every byte is overwritten, so the old bytes need not be cleared.
    out.data.resize(stride * window.rows.len(), 0);
    // The two source rows of an output row, already filtered along x. The next output rows reuse them where possible.
    let mut filtered = [vec![0_i16; stride], vec![0_i16; stride]];
    let mut held = [usize::MAX; 2];
    let mut neighbors = Neighbors::new(stride);
    for (out, row) in out.data.chunks_exact_mut(stride.max(1)).zip(window.rows.clone()) {
        let (wanted, weights) = rows(row, from[1], to[1]);
        if held[1] == wanted[0] {
            filtered.swap(0, 1);
            held.swap(0, 1);
        }
        for (slot, wanted) in wanted.into_iter().enumerate() {
            if held[slot] != wanted {
                neighbors.gather(image.row(wanted - first[1]), &columns.starts);
                let Neighbors { left, right } = &neighbors;
                filter(&left[..stride], &right[..stride], &columns.left, &columns.right, &mut filtered[slot]);
                held[slot] = wanted;
            }
        }
        mix(&filtered[0], &filtered[1], weights, out);
    }
}

/// The left and right pixels of a line's output pixels, one after another.
#[derive(Debug)]
struct Neighbors {
    left: Vec<u8>,
    right: Vec<u8>,
}

impl Neighbors {
    /// Memory for a line of `stride` bytes. Pixels are written as four bytes, so the last one needs a byte more.
    fn new(stride: usize) -> Self {
        Self { left: vec![0; stride + 1], right: vec![0; stride + 1] }
    }

    /// Copies the pixel at each of `starts` in `line` and the one to its right.
    fn gather(&mut self, line: &[u8], starts: &[usize]) {
        for (index, &start) in starts.iter().enumerate() {
            // Two loads that overlap; six bytes by name would be six loads.
            let two = line.get(start..).and_then(|line| line.first_chunk::<6>());
            let (left, right) = match two {
                Some(two) => {
                    let [first, last] = [two.first_chunk(), two.last_chunk()]
                        .map(|four| u32::from_le_bytes(*four.unwrap_or(&[0; 4])));
                    (first, last >> 8)
                }
                // The image is one pixel wide; the right one has no weight.
                None => (line.iter().take(3).rev().fold(0, |four, &byte| four << 8 | u32::from(byte)), 0),
            };
            for (out, four) in [(&mut self.left, left), (&mut self.right, right)] {
                if let Some(out) = out.get_mut(3 * index..3 * index + 4) {
                    out.copy_from_slice(&four.to_le_bytes());
                }
            }
        }
    }
}

with_avx2! {
    /// Mixes the two pixels of each output pixel along x. The result has 7 fraction bits.
    fn filter / filter_plain(left: &[u8], right: &[u8], of_left: &[i16], of_right: &[i16], out: &mut [i16]) {
        let pixels = left.iter().zip(right);
        let weights = of_left.iter().zip(of_right);
        for ((out, (&left, &right)), (&of_left, &of_right)) in out.iter_mut().zip(pixels).zip(weights) {
            let sum = i32::from(left) * i32::from(of_left) + i32::from(right) * i32::from(of_right);
            *out = (sum >> DROPPED) as i16;
        }
    }
}

with_avx2! {
    /// Mixes two filtered lines along y.
    fn mix / mix_plain(upper: &[i16], lower: &[i16], weights: [i16; 2], out: &mut [u8]) {
        // OpenCV's order of shifts, for the same rounding.
        let high = |value: i16, weight: i16| ((i32::from(value) * i32::from(weight)) >> 16) as i16;
        for ((out, &upper), &lower) in out.iter_mut().zip(upper).zip(lower) {
            *out = ((high(upper, weights[0]) + high(lower, weights[1]) + 2) >> 2) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    /// A number for each byte of a line.
    fn noise(random: &mut Random, count: usize, below: usize) -> Vec<usize> {
        (0..count).map(|_| random.below(below)).collect()
    }

    #[test]
    fn lines_are_the_same_with_and_without_avx2() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        for count in 0..400 {
            let mut bytes = || -> Vec<u8> {
                // White comes close to overflow.
                let below = if count % 3 == 0 { 1 } else { 256 };
                noise(&mut random, count, below).into_iter().map(|byte| 255 - byte as u8).collect()
            };
            let [left, right] = [bytes(), bytes()];
            let of_right: Vec<i16> =
                noise(&mut random, count, 2049).into_iter().map(|weight| weight as i16).collect();
            let of_left: Vec<i16> = of_right.iter().map(|right| 2048 - right).collect();
            let (mut ours, mut plain) = (vec![0; count], vec![1; count]);
            filter(&left, &right, &of_left, &of_right, &mut ours);
            filter_plain(&left, &right, &of_left, &of_right, &mut plain);
            assert_eq!(ours, plain);
            let lower: Vec<i16> =
                noise(&mut random, count, 32_641).into_iter().map(|sum| sum as i16).collect();
            let weight = random.below(2049) as i16;
            let (mut mixed, mut plain) = (vec![0; count], vec![1; count]);
            mix(&ours, &lower, [2048 - weight, weight], &mut mixed);
            mix_plain(&ours, &lower, [2048 - weight, weight], &mut plain);
            assert_eq!(mixed, plain);
        }
    }

    /// The formula of one channel of one pixel, from OpenCV's documentation and its results.
    fn channel(image: &Image, to: [usize; 2], [x, y]: [usize; 2], channel: usize) -> u8 {
        let (left, across) = left_pixel(x, image.width, to[0]);
        let across = across.map(|share| i32::from(weight(share)));
        let (lines, down) = rows(y, image.height, to[1]);
        let filtered = lines.map(|line| {
            let at = |x: usize| i32::from(image.pixel(x.min(image.width - 1), line)[channel]);
            (at(left) * across[0] + at(left + 1) * across[1]) >> 4
        });
        let sum: i32 =
            filtered.iter().zip(down).map(|(&line, weight)| (line * i32::from(weight)) >> 16).sum();
        ((sum + 2) >> 2) as u8
    }

    #[test]
    fn an_image_and_its_windows_follow_the_formula() {
        let mut random = Random::keyed(1, 0, Purpose::Augment, 0);
        for _ in 0..300 {
            let [width, height, to_width, to_height] = std::array::from_fn(|_| 1 + random.below(70));
            let data =
                noise(&mut random, width * height * 3, 256).into_iter().map(|byte| byte as u8).collect();
            let (image, to) = (Image { width, height, data }, [to_width, to_height]);
            let whole = linear(&image, to[0], to[1]);
            for y in 0..to[1] {
                for x in 0..to[0] {
                    let expected = std::array::from_fn(|index| channel(&image, to, [x, y], index));
                    assert_eq!(whole.pixel(x, y), expected, "{width}×{height} to {to:?} at {x}, {y}");
                }
            }
            let mut range = |side: usize| {
                let ends = [random.below(side), random.below(side)];
                ends[0].min(ends[1])..ends[0].max(ends[1]) + 1
            };
            let window = Window { columns: range(to[0]), rows: range(to[1]) };
            // Exactly the pixels that are needed.
            let needed = source_of([width, height], to, &window);
            let part = image.cut(&needed);
            let part = Part { image: part.view(), first: [needed.columns.start, needed.rows.start] };
            let mut ours = Image::default();
            linear_window(part, [width, height], to, &window, &mut ours);
            assert_eq!(ours, whole.cut(&window), "{width}×{height} to {to:?}, {window:?} from {needed:?}");
        }
    }
}
