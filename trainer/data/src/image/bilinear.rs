//! Bilinear sampling in fixed point, as in OpenCV 4.11 and later, which no longer rounds sample positions to
//! 1/32 pixel. Positions are 64-bit fixed point and weights are integers; a sample is within one gray level of
//! the exact one. All warps share this arithmetic, so they give the same bytes.

use super::simd::with_avx2;

/// The fraction bits of a sample position.
pub const POSITION_BITS: u32 = 32;
/// The bits of the weight along x. With 12 bits along y, a sum stays below 2³².
pub const X_BITS: u32 = 11;
/// The bits of the weight along y.
pub const Y_BITS: u32 = 12;
/// Positions are clamped to this many pixels so that fixed point does not overflow. In any image, positions
/// this far out are border.
const FAR: f64 = (1_u64 << 29) as f64;

/// Converts a position in pixels to fixed point.
pub fn fixed(position: f64) -> i64 {
    // NaN is outside too.
    let position = if position.is_nan() { -FAR } else { position.clamp(-FAR, FAR) };
    (position * (1_u64 << POSITION_BITS) as f64).round() as i64
}

/// The pixel to the left of or at a position.
#[inline]
pub fn pixel_of(position: i64) -> i32 {
    (position >> POSITION_BITS) as i32
}

/// The weight of the right neighbor at x, of 2¹¹.
#[inline]
pub fn weight_right(x: i64) -> u32 {
    (x >> (POSITION_BITS - X_BITS)) as u32 & ((1 << X_BITS) - 1)
}

/// The weight of the lower neighbor at y, of 2¹².
#[inline]
pub fn weight_lower(y: i64) -> u32 {
    (y >> (POSITION_BITS - Y_BITS)) as u32 & ((1 << Y_BITS) - 1)
}

/// One channel of a sample from its upper left, upper right, lower left and lower right neighbors.
#[inline(always)]
pub fn mix([a, b, c, d]: [u32; 4], right: u32, lower: u32) -> u8 {
    let (left, upper) = ((1 << X_BITS) - right, (1 << Y_BITS) - lower);
    let sum = (a * left + b * right) * upper + (c * left + d * right) * lower;
    // Half a unit is added for rounding; 255 · 2²³ + 2²² still fits.
    ((sum + (1 << (X_BITS + Y_BITS - 1))) >> (X_BITS + Y_BITS)) as u8
}

/// The sample at a position with these four neighbors, in the order of [`mix`].
#[inline]
pub fn mix_pixels(four: [[u8; 3]; 4], x: i64, y: i64) -> [u8; 3] {
    let (right, lower) = (weight_right(x), weight_lower(y));
    std::array::from_fn(|c| mix(four.map(|pixel| u32::from(pixel[c])), right, lower))
}

/// The samples that are mixed together.
pub const CHUNK: usize = 32;

/// The neighbors of a chunk of samples on one line: the channels of each left neighbor and the first of the right
/// one, then the last channel of the left and those of the right one.
#[derive(Debug, Clone, Default)]
pub struct Neighbors([[u32; CHUNK]; 2]);

impl Neighbors {
    /// Sets the two neighbors of sample `index`.
    #[inline(always)]
    pub fn set(&mut self, index: usize, two: &[u8; 6]) {
        // Two loads that overlap; six bytes by name would be six loads.
        let [first, last] =
            [two.first_chunk(), two.last_chunk()].map(|four| u32::from_le_bytes(*four.unwrap_or(&[0; 4])));
        self.0[0][index] = first;
        self.0[1][index] = last;
    }

    /// Sets the neighbors of a chunk in one line of pixels, the first at position `x`. A position outside the line
    /// has black neighbors.
    #[inline(always)]
    pub fn gather(&mut self, pixels: &[u8], mut x: i64, step: i64) {
        for index in 0..CHUNK {
            let two = pixels.get(pixel_of(x) as usize * 3..).and_then(|pixels| pixels.first_chunk());
            self.set(index, two.unwrap_or(&[0; 6]));
            x = x.wrapping_add(step);
        }
    }

    /// The neighbors' channels mixed along x, with 11 fraction bits.
    #[inline(always)]
    fn along_x(&self, index: usize, right: i32) -> [i32; 3] {
        let (first, last) = (self.0[0][index], self.0[1][index]);
        let mix = |left: u32, other: u32| {
            let [left, other] = [left, other].map(|byte| byte as i32 & 255);
            (left << X_BITS) + (other - left) * right
        };
        [mix(first, first >> 24), mix(first >> 8, last >> 16), mix(first >> 16, last >> 24)]
    }
}

/// The positions of a chunk along one axis: the fraction of the first in units of 2⁻³², and the step.
pub type Fractions = [u32; 2];

/// The weight of sample `index`, of 2 to the power of `bits`.
#[inline(always)]
fn weight([start, step]: Fractions, index: usize, bits: u32) -> i32 {
    (start.wrapping_add(step.wrapping_mul(index as u32)) >> (POSITION_BITS - bits)) as i32
}

/// Mixes what [`Neighbors::along_x`] gives for the upper and the lower neighbors.
#[inline(always)]
fn mix_along_y(above: i32, below: i32, lower: i32) -> u8 {
    let sum = (above << Y_BITS) + (below - above) * lower;
    ((sum as u32 + (1 << (X_BITS + Y_BITS - 1))) >> (X_BITS + Y_BITS)) as u8
}

with_avx2! {
    /// Mixes a chunk from the neighbors above and below, to bytes that equal those of [`mix`].
    pub fn mix_chunk / mix_chunk_plain(
        above: &Neighbors, below: &Neighbors, x: Fractions, y: Fractions, out: [&mut [u8; CHUNK]; 3],
    ) {
        let [red, green, blue] = out;
        for index in 0..CHUNK {
            let (right, lower) = (weight(x, index, X_BITS), weight(y, index, Y_BITS));
            let (above, below) = (above.along_x(index, right), below.along_x(index, right));
            let mix = |above: i32, below: i32| mix_along_y(above, below, lower);
            red[index] = mix(above[0], below[0]);
            green[index] = mix(above[1], below[1]);
            blue[index] = mix(above[2], below[2]);
        }
    }
}

with_avx2! {
    /// Mixes a chunk of one line along x, which is half of [`mix_chunk`]'s work; [`mix_lines`] does the rest.
    pub fn filter_chunk / filter_chunk_plain(line: &Neighbors, x: Fractions, out: [&mut [i32; CHUNK]; 3]) {
        let [red, green, blue] = out;
        for index in 0..CHUNK {
            [red[index], green[index], blue[index]] = line.along_x(index, weight(x, index, X_BITS));
        }
    }
}

with_avx2! {
    /// Mixes one channel of two lines that [`filter_chunk`] has made.
    pub fn mix_lines / mix_lines_plain(above: &[i32], below: &[i32], lower: u32, out: &mut [u8]) {
        for ((out, &above), &below) in out.iter_mut().zip(above).zip(below) {
            *out = mix_along_y(above, below, lower as i32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    #[test]
    fn a_chunk_is_mixed_like_single_samples_with_and_without_avx2() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        for round in 0..2000 {
            // Bytes at the ends of their range come close to overflow.
            let limits = if round % 2 == 0 { [0, 256] } else { [255, 1] };
            let mut number = |from: usize, count: usize| (from + random.below(count)) as i64;
            let mut neighbors = || -> [[u8; 6]; CHUNK] {
                std::array::from_fn(|_| std::array::from_fn(|_| number(limits[0], limits[1]) as u8))
            };
            let lines = [neighbors(), neighbors()];
            let [x, y, x_step, y_step] = std::array::from_fn(|_| number(0, 1 << 34) - (1 << 33));
            let [above, below] = lines.map(|line| {
                let mut all = Neighbors::default();
                line.iter().enumerate().for_each(|(index, two)| all.set(index, two));
                all
            });
            let [mut ours, mut ours_in_line, mut plain] = [[[0; CHUNK]; 3]; 3];
            let (x_at, y_at) = ([x as u32, x_step as u32], [y as u32, y_step as u32]);
            mix_chunk(&above, &below, x_at, y_at, ours.each_mut());
            mix_chunk_plain(&above, &below, x_at, y_at, plain.each_mut());
            assert_eq!(ours, plain);
            let (mut halves, mut plain) = ([[[0; CHUNK]; 3]; 2], [[[0; CHUNK]; 3]; 2]);
            let lower = weight_lower(y);
            for (line, from) in [&above, &below].into_iter().enumerate() {
                filter_chunk(from, x_at, halves[line].each_mut());
                filter_chunk_plain(from, x_at, plain[line].each_mut());
            }
            assert_eq!(halves, plain);
            mix_chunk(&above, &below, x_at, [y as u32, 0], ours_in_line.each_mut());
            for channel in 0..3 {
                let (mut mixed, mut plain) = ([0; CHUNK], [0; CHUNK]);
                mix_lines(&halves[0][channel], &halves[1][channel], lower, &mut mixed);
                mix_lines_plain(&halves[0][channel], &halves[1][channel], lower, &mut plain);
                assert_eq!((mixed, plain), (ours_in_line[channel], ours_in_line[channel]));
            }
            for index in 0..CHUNK {
                let pixels = lines.map(|line| *line[index].first_chunk::<3>().unwrap());
                let others = lines.map(|line| *line[index].last_chunk::<3>().unwrap());
                let four = [pixels[0], others[0], pixels[1], others[1]];
                let (x, y) = (x + x_step * index as i64, y + y_step * index as i64);
                assert_eq!(ours.map(|channel| channel[index]), mix_pixels(four, x, y));
            }
        }
    }
}
