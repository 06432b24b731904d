//! Color augmentation in OpenCV's 8-bit HSV space, where hue is 0 to 179 (spec §7). The three gains become
//! lookup tables, so that a pixel costs a few integer operations. `hsv_rows.rs` has the same for many pixels at once.

use super::hsv_factors::Factors;

/// The fraction bits of the division tables in OpenCV's conversion.
const SHIFT: u32 = 12;

/// `numerator * 2^12 / (factor * i)` for each byte `i`, rounded; zero at zero.
const fn division_table(numerator: u32, factor: u32) -> [i32; 256] {
    let mut table = [0; 256];
    let mut i = 1;
    while i < 256 {
        let divisor = factor * i as u32;
        // Rounded to nearest; no entry is a tie.
        table[i] = ((2 * (numerator << SHIFT) + divisor) / (2 * divisor)) as i32;
        i += 1;
    }
    table
}

static SATURATION: [i32; 256] = division_table(255, 1);
static HUE: [i32; 256] = division_table(180, 6);

/// Converts RGB to hue (0–179), saturation and value, as OpenCV does for 8 bits.
#[inline]
pub fn from_rgb([r, g, b]: [u8; 3]) -> [u8; 3] {
    let value = r.max(g).max(b);
    let range = value - r.min(g).min(b);
    let (red, green, blue, d) = (i32::from(r), i32::from(g), i32::from(b), i32::from(range));
    let half = 1 << (SHIFT - 1);
    let saturation = (d * SATURATION[usize::from(value)] + half) >> SHIFT;
    let sixths = if value == r {
        green - blue
    } else if value == g {
        blue - red + 2 * d
    } else {
        red - green + 4 * d
    };
    let hue = (sixths * HUE[usize::from(range)] + half) >> SHIFT;
    let hue = if hue < 0 { hue + 180 } else { hue };
    [hue as u8, saturation as u8, value]
}

/// Converts hue (0–179), saturation and value to RGB. Fractions are truncated, as in OpenCV's 8-bit
/// conversion.
#[inline]
pub fn to_rgb([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    // In units of 1/(30·255), one sector of 30 hues times 255 steps of saturation is exact.
    const UNITS: u32 = 30 * 255;
    let (s, v) = (u32::from(saturation), u32::from(value));
    let (sector, within) = (hue / 30, u32::from(hue % 30));
    let fade = |part: u32| (v * (UNITS - s * part) / UNITS) as u8;
    let (low, falling, rising) = (fade(30), fade(within), fade(30 - within));
    match sector {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    }
}

/// The lookup tables of one color augmentation.
#[derive(Debug, Clone)]
pub struct HsvTables {
    /// The new value of each hue.
    pub hue: [u8; 256],
    /// The new value of each saturation.
    pub saturation: [u8; 256],
    /// The new value of each value.
    pub value: [u8; 256],
    /// The same tables as factors, if there are such; hyperparameters give gains for which there are none only by
    /// accident.
    pub(super) factors: Option<Factors>,
}

impl HsvTables {
    /// The tables that multiply hue (modulo 180), saturation and value by `gains`, truncating
    /// (spec §7).
    pub fn new(gains: [f64; 3]) -> Self {
        let clipped = |gain: f64| std::array::from_fn(|x| (x as f64 * gain).clamp(0.0, 255.0) as u8);
        Self {
            hue: std::array::from_fn(|x| (x as f64 * gains[0]).rem_euclid(180.0) as u8),
            saturation: clipped(gains[1]),
            value: clipped(gains[2]),
            factors: Factors::new(gains),
        }
    }

    /// The augmented color of an RGB pixel.
    #[inline]
    pub fn apply(&self, rgb: [u8; 3]) -> [u8; 3] {
        let [h, s, v] = from_rgb(rgb).map(usize::from);
        to_rgb([self.hue[h], self.saturation[s], self.value[v]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_colors_have_the_hues_of_opencv() {
        for (rgb, hsv) in [
            ([255, 0, 0], [0, 255, 255]),
            ([255, 255, 0], [30, 255, 255]),
            ([0, 255, 0], [60, 255, 255]),
            ([0, 0, 255], [120, 255, 255]),
            ([255, 0, 255], [150, 255, 255]),
            ([7, 7, 7], [0, 0, 7]),
        ] {
            assert_eq!(from_rgb(rgb), hsv);
            assert_eq!(to_rgb(hsv), rgb);
        }
    }

    #[test]
    fn a_round_trip_changes_a_color_only_slightly() {
        for r in (0..=255).step_by(5) {
            for g in (0..=255).step_by(5) {
                for b in (0..=255).step_by(5) {
                    let back = to_rgb(from_rgb([r, g, b]));
                    for (was, is) in [r, g, b].into_iter().zip(back) {
                        assert!(was.abs_diff(is) <= 6, "{:?} became {back:?}", [r, g, b]);
                    }
                }
            }
        }
    }
}
