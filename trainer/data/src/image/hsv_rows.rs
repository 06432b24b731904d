//! The color augmentation of many pixels at once. It is [`HsvTables::apply`], written so that the compiler
//! vectorizes it: divisions in `f32` and fixed-point factors replace tables, which is exact for the numbers of 8-bit
//! colors, as tests show for all of them. Each loop computes in one type, so that it uses whole vectors.

use super::hsv::HsvTables;
use super::hsv_factors::Factors;
use super::simd::with_avx2;

/// The pixels that are changed together.
const CHUNK: usize = 64;
/// One channel of a chunk.
type Channel = [u8; CHUNK];

/// A number this large has no fraction bits, so adding it rounds to nearest, and the sum's low bits are the result.
const ROUND: f32 = 12_582_912.0;
/// The same for multiples of 2¹²: the low bits are the result divided by 2¹².
const ROUND_12: f32 = ROUND * 4096.0;

with_avx2! {
    /// [`super::hsv::from_rgb`] of a chunk of three planes.
    fn from_rgb / from_rgb_plain(planes: [&Channel; 3], hsv: &mut [[u16; CHUNK]; 3]) {
        let [mut value, mut range, mut sixths] = [[0; CHUNK]; 3];
        for i in 0..CHUNK {
            let [red, green, blue] = planes.map(|plane| i16::from(plane[i]));
            value[i] = red.max(green).max(blue);
            range[i] = value[i] - red.min(green).min(blue);
            let of_others =
                if value[i] == green { blue - red + 2 * range[i] } else { red - green + 4 * range[i] };
            sixths[i] = if value[i] == red { green - blue } else { of_others };
        }
        let [hue_out, saturation_out, value_out] = hsv;
        for i in 0..CHUNK {
            let [value, range, sixths] = [value[i], range[i], sixths[i]].map(f32::from);
            // OpenCV's tables of divisions, whose entries are rounded to 2⁻¹².
            let of_value = (255.0 * 4096.0) / value.max(1.0) + ROUND - ROUND;
            let of_range = (30.0 * 4096.0) / range.max(1.0) + ROUND - ROUND;
            // The products are integers below 2²⁴, so they are exact. Half a unit more rounds ties up, as OpenCV does.
            saturation_out[i] = (range * of_value + 0.5 + ROUND_12).to_bits() as u16;
            hue_out[i] = (sixths * of_range + 0.5 + ROUND_12).to_bits() as u16;
        }
        for i in 0..CHUNK {
            value_out[i] = value[i] as u16;
            hue_out[i] = if (hue_out[i] as i16) < 0 { hue_out[i].wrapping_add(180) } else { hue_out[i] };
        }
    }
}

with_avx2! {
    /// Multiplies hue, saturation and value of a chunk.
    fn multiply / multiply_plain(factors: &Factors, hsv: &mut [[u16; CHUNK]; 3]) {
        let [hue, saturation, value] = hsv;
        for hue in hue {
            let multiple = factors.hue.times(*hue);
            *hue = if multiple < 180 { multiple } else { multiple - 180 };
        }
        for saturation in saturation {
            *saturation = factors.saturation.times(*saturation).min(255);
        }
        for value in value {
            *value = factors.value.times(*value).min(255);
        }
    }
}

with_avx2! {
    /// [`super::hsv::to_rgb`] of a chunk into three planes.
    fn to_rgb / to_rgb_plain(hsv: &[[u16; CHUNK]; 3], planes: [&mut Channel; 3]) {
        const UNIT: f32 = 1.0 / (30.0 * 255.0);
        // A channel fades by a quotient that is rounded up. Its distance from the integer below is 0 or at least one
        // unit. Half a unit less than what rounds up, so that the rounding errors of the product do not matter.
        const SHIFT: f32 = 30.0 * 255.0 / 2.0 - 0.5;
        let [hue, saturation, value] = hsv;
        let mut product = [0; CHUNK];
        for i in 0..CHUNK {
            product[i] = saturation[i] * value[i];
        }
        let [red, green, blue] = planes;
        // A channel is full within 30 hues of its own on both sides (red's is that opposite to cyan), and fades to
        // nothing in the next 30.
        for (plane, own, is_opposite) in [(red, 90, true), (green, 60, false), (blue, 120, false)] {
            let mut fade = [0; CHUNK];
            for i in 0..CHUNK {
                let beyond = hue[i].abs_diff(own).saturating_sub(30).min(30);
                fade[i] = if is_opposite { 30 - beyond } else { beyond };
            }
            for i in 0..CHUNK {
                let units = f32::from(product[i]) * f32::from(fade[i]);
                fade[i] = ((units + SHIFT) * UNIT + ROUND).to_bits() as u16;
            }
            for i in 0..CHUNK {
                plane[i] = (value[i] - fade[i]) as u8;
            }
        }
    }
}

/// Augments the colors of a row of three planes.
pub(super) fn apply(tables: &HsvTables, row: [&mut [u8]; 3]) {
    let [(a, a_rest), (b, b_rest), (c, c_rest)] = row.map(|plane| plane.as_chunks_mut());
    let mut hsv = [[0; CHUNK]; 3];
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        let Some(factors) = &tables.factors else {
            one_by_one(tables, [a, b, c].map(|plane| &mut plane[..]));
            continue;
        };
        from_rgb([a, b, c], &mut hsv);
        multiply(factors, &mut hsv);
        to_rgb(&hsv, [a, b, c]);
    }
    one_by_one(tables, [a_rest, b_rest, c_rest]);
}

/// Augments the colors of what is not a whole chunk.
fn one_by_one(tables: &HsvTables, [a, b, c]: [&mut [u8]; 3]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        [*a, *b, *c] = tables.apply([*a, *b, *c]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::hsv;
    use crate::random::{Purpose, Random};

    /// Calls `check` with chunks of all colors; in a debug build, which is slow, of every 13th.
    fn for_all_colors(check: impl Fn([Channel; 3])) {
        let step = if cfg!(debug_assertions) { 13 } else { 1 };
        let mut colors = (0..1_u32 << 24).step_by(step).map(|color| color.to_le_bytes()).peekable();
        while colors.peek().is_some() {
            let mut chunk = [[0; CHUNK]; 3];
            for (i, [a, b, c, _]) in colors.by_ref().take(CHUNK).enumerate() {
                [chunk[0][i], chunk[1][i], chunk[2][i]] = [a, b, c];
            }
            check(chunk);
        }
    }

    #[test]
    fn all_colors_convert_as_by_the_tables() {
        for_all_colors(|planes| {
            let (mut hsv, mut plain) = ([[0; CHUNK]; 3], [[0; CHUNK]; 3]);
            from_rgb(planes.each_ref(), &mut hsv);
            from_rgb_plain(planes.each_ref(), &mut plain);
            assert_eq!(hsv, plain);
            for i in 0..CHUNK {
                let color = planes.map(|plane| plane[i]);
                assert_eq!(hsv.map(|channel| channel[i]), hsv::from_rgb(color).map(u16::from), "{color:?}");
            }
        });
    }

    #[test]
    fn all_colors_convert_back_as_by_the_tables() {
        for_all_colors(|mut hsv| {
            hsv[0].iter_mut().for_each(|hue| *hue %= 180);
            let wide = hsv.map(|channel| channel.map(u16::from));
            let (mut planes, mut plain) = ([[0; CHUNK]; 3], [[0; CHUNK]; 3]);
            to_rgb(&wide, planes.each_mut());
            to_rgb_plain(&wide, plain.each_mut());
            assert_eq!(planes, plain);
            for i in 0..CHUNK {
                let color = hsv.map(|channel| channel[i]);
                assert_eq!(planes.map(|plane| plane[i]), hsv::to_rgb(color), "{color:?}");
            }
        });
    }

    #[test]
    fn rows_change_like_single_pixels() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        for width in [1, CHUNK - 1, CHUNK, 5 * CHUNK + 7] {
            // Gains above 2 have no factors.
            for limit in [2.0, 3.0] {
                let tables = HsvTables::new(std::array::from_fn(|_| random.uniform(limit - 2.0, limit)));
                let row: [Vec<u8>; 3] =
                    std::array::from_fn(|_| (0..width).map(|_| random.below(256) as u8).collect());
                let mut ours = row.clone();
                apply(&tables, ours.each_mut().map(|plane| &mut plane[..]));
                for i in 0..width {
                    let expected = tables.apply([row[0][i], row[1][i], row[2][i]]);
                    assert_eq!([ours[0][i], ours[1][i], ours[2][i]], expected);
                }
            }
        }
    }

    #[test]
    fn factors_change_a_chunk_as_the_tables_do() {
        let gains = [1.7, 1.3, 0.6];
        let tables = HsvTables::new(gains);
        let factors = tables.factors.unwrap();
        for_all_colors(|mut hsv| {
            hsv[0].iter_mut().for_each(|hue| *hue %= 180);
            let wide = hsv.map(|channel| channel.map(u16::from));
            let (mut ours, mut plain) = (wide, wide);
            multiply(&factors, &mut ours);
            multiply_plain(&factors, &mut plain);
            assert_eq!(ours, plain);
            for i in 0..CHUNK {
                let [h, s, v] = hsv.map(|channel| usize::from(channel[i]));
                let expected = [tables.hue[h], tables.saturation[s], tables.value[v]].map(u16::from);
                assert_eq!(ours.map(|channel| channel[i]), expected);
            }
        });
    }
}
