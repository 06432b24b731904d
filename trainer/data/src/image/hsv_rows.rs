//! The color augmentation of many pixels at once. It is [`HsvTables::apply`], written so that the compiler
//! vectorizes it: divisions in `f32` replace tables, which is exact for the numbers of 8-bit colors, as tests
//! show for all of them.

use super::hsv::HsvTables;
use super::simd::with_avx2;

/// The pixels that are changed together.
const CHUNK: usize = 64;
/// One channel of a chunk.
type Channel = [u8; CHUNK];

/// Rounds a float of up to 22 bits to nearest. A number this large has no fraction bits, so adding it rounds.
#[inline(always)]
fn rounded(x: f32) -> i32 {
    const LARGE: f32 = 12_582_912.0;
    (x + LARGE).to_bits() as i32 - LARGE.to_bits() as i32
}

/// [`super::hsv::from_rgb`] of one pixel.
#[inline(always)]
fn from_rgb([red, green, blue]: [u8; 3]) -> [u8; 3] {
    const HALF: i32 = 1 << 11;
    let [red, green, blue] = [red, green, blue].map(i32::from);
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let saturation = (range * rounded((255 << 12) as f32 / value.max(1) as f32) + HALF) >> 12;
    let of_others = if value == green { blue - red + 2 * range } else { red - green + 4 * range };
    let sixths = if value == red { green - blue } else { of_others };
    let hue = (sixths * rounded((30 << 12) as f32 / range.max(1) as f32) + HALF) >> 12;
    let hue = if hue < 0 { hue + 180 } else { hue };
    [hue as u8, saturation as u8, value as u8]
}

/// [`super::hsv::to_rgb`] of one pixel.
#[inline(always)]
fn to_rgb([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    const UNITS: i32 = 30 * 255;
    let [hue, saturation, value] = [hue, saturation, value].map(i32::from);
    // A division by 30 that is exact for all hues.
    let sector = (hue * 2185) >> 16;
    let within = hue - 30 * sector;
    // A quotient's distance from the next integer is 0 or at least 1/UNITS. Half of that is added, so that the
    // rounding errors of the product do not matter, and half of one subtracted, so that rounding truncates.
    let shift = 0.5 - UNITS as f32 / 2.0;
    let fade =
        |part: i32| rounded(((value * (UNITS - saturation * part)) as f32 + shift) * (1.0 / UNITS as f32));
    let (low, falling, rising) = (fade(30), fade(within), fade(30 - within));
    let choose = |of: [i32; 6]| {
        let upper = if sector == 3 {
            of[3]
        } else if sector == 4 {
            of[4]
        } else {
            of[5]
        };
        let lower = if sector == 0 {
            of[0]
        } else if sector == 1 {
            of[1]
        } else {
            of[2]
        };
        (if sector < 3 { lower } else { upper }) as u8
    };
    [
        choose([value, falling, low, low, rising, value]),
        choose([rising, value, value, falling, low, low]),
        choose([low, low, rising, value, value, falling]),
    ]
}

with_avx2! {
    /// Augments the colors of a chunk of three planes.
    fn apply_chunk / apply_chunk_plain(tables: &HsvTables, channels: [&mut Channel; 3]) {
        let [a, b, c] = channels;
        for i in 0..CHUNK {
            [a[i], b[i], c[i]] = from_rgb([a[i], b[i], c[i]]);
        }
        for (channel, table) in [(&mut *a, &tables.hue), (&mut *b, &tables.saturation), (&mut *c, &tables.value)] {
            for byte in channel {
                *byte = table[usize::from(*byte)];
            }
        }
        for i in 0..CHUNK {
            [a[i], b[i], c[i]] = to_rgb([a[i], b[i], c[i]]);
        }
    }
}

/// Augments the colors of a row of three planes.
pub(super) fn apply(tables: &HsvTables, row: [&mut [u8]; 3]) {
    let [(a, a_rest), (b, b_rest), (c, c_rest)] = row.map(|plane| plane.as_chunks_mut());
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        apply_chunk(tables, [a, b, c]);
    }
    for ((a, b), c) in a_rest.iter_mut().zip(b_rest).zip(c_rest) {
        [*a, *b, *c] = tables.apply([*a, *b, *c]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::hsv;
    use crate::random::{Purpose, Random};

    /// Every color; in a debug build, which is slow, every 13th.
    fn colors() -> impl Iterator<Item = [u8; 3]> {
        let step = if cfg!(debug_assertions) { 13 } else { 1 };
        (0..1_u32 << 24).step_by(step).map(|color| [color as u8, (color >> 8) as u8, (color >> 16) as u8])
    }

    #[test]
    fn all_colors_convert_as_by_the_tables() {
        for color in colors() {
            assert_eq!(from_rgb(color), hsv::from_rgb(color), "{color:?}");
            if color[0] < 180 {
                assert_eq!(to_rgb(color), hsv::to_rgb(color), "{color:?}");
            }
        }
    }

    #[test]
    fn rows_change_like_single_pixels_with_and_without_avx2() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        for width in [1, CHUNK - 1, CHUNK, 5 * CHUNK + 7] {
            let tables = HsvTables::new(std::array::from_fn(|_| random.uniform(0.0, 2.0)));
            let row: [Vec<u8>; 3] =
                std::array::from_fn(|_| (0..width).map(|_| random.below(256) as u8).collect());
            let (mut ours, mut plain) = (row.clone(), row.clone());
            apply(&tables, ours.each_mut().map(|plane| &mut plane[..]));
            let [a, b, c] = plain.each_mut().map(|plane| plane.as_chunks_mut().0);
            for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                apply_chunk_plain(&tables, [a, b, c]);
            }
            for i in 0..width {
                let expected = tables.apply([row[0][i], row[1][i], row[2][i]]);
                assert_eq!([ours[0][i], ours[1][i], ours[2][i]], expected);
                if i < width / CHUNK * CHUNK {
                    assert_eq!([plain[0][i], plain[1][i], plain[2][i]], expected);
                }
            }
        }
    }
}
