//! The gains of a color augmentation as fixed-point factors. A processor multiplies many bytes at once but looks them
//! up one by one, and a factor gives the bytes of a table exactly: it is not the gain, but the least factor that
//! reproduces the table.

use std::ops::RangeInclusive;

/// The fraction bits of a factor. Two tables of truncated multiples of 0 to 255 differ only if the gains are separated
/// by a fraction with a denominator of at most 255. Such fractions are at least 1/255² apart, so some multiple of 2⁻¹⁶
/// lies between any two.
const BITS: u32 = 16;

/// A factor with 16 fraction bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Factor {
    whole: u16,
    fraction: u16,
}

impl Factor {
    /// The least factor whose truncated multiples of 1 to `last` are those of `gain`, up to `limit`; larger ones only
    /// have to reach the limit. `None` if rounding in `f64` made multiples that no single factor has, which takes a gain
    /// next to a fraction.
    fn new(gain: f64, last: u16, limit: u16) -> Option<Self> {
        let multiple = |x: u16| ((f64::from(x) * gain) as u16).min(limit);
        let least = |x: u16| (u32::from(multiple(x)) << BITS).div_ceil(u32::from(x));
        let factor = (1..=last).map(least).max().unwrap_or(0);
        let factor = Self { whole: (factor >> BITS) as u16, fraction: factor as u16 };
        (0..=last).all(|x| factor.times(x).min(limit) == multiple(x)).then_some(factor)
    }

    /// The truncated multiple of `x`.
    #[inline(always)]
    pub(super) fn times(self, x: u16) -> u16 {
        x * self.whole + ((u32::from(x) * u32::from(self.fraction)) >> BITS) as u16
    }
}

/// The factors of one color augmentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Factors {
    /// Of the hue. Multiples are below 360.
    pub(super) hue: Factor,
    /// Of the saturation. Multiples above 255 count as 255.
    pub(super) saturation: Factor,
    /// Of the value. Multiples above 255 count as 255.
    pub(super) value: Factor,
}

impl Factors {
    /// The gains that fit: hyperparameters give no others.
    const GAINS: RangeInclusive<f64> = 0.0..=2.0;

    /// The factors of three gains; `None` if one is outside 0 to 2, or has no factor.
    pub(super) fn new(gains: [f64; 3]) -> Option<Self> {
        if !gains.iter().all(|gain| Self::GAINS.contains(gain)) {
            return None;
        }
        Some(Self {
            hue: Factor::new(gains[0], 179, 358)?,
            saturation: Factor::new(gains[1], 255, 255)?,
            value: Factor::new(gains[2], 255, 255)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::hsv::HsvTables;
    use crate::random::{Purpose, Random};

    #[track_caller]
    fn assert_same_as_tables(gains: [f64; 3], factors: Factors) {
        let tables = HsvTables::new(gains);
        for x in 0..=255_u8 {
            let times = |factor: Factor| factor.times(u16::from(x));
            let at = usize::from(x);
            if x < 180 {
                assert_eq!(times(factors.hue) % 180, u16::from(tables.hue[at]), "{gains:?}, {x}");
            }
            for (factor, table) in [(factors.saturation, tables.saturation), (factors.value, tables.value)] {
                assert_eq!(times(factor).min(255), u16::from(table[at]), "{gains:?}, {x}");
            }
        }
    }

    #[test]
    fn factors_give_the_bytes_of_the_tables_for_random_gains() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        for _ in 0..20_000 {
            let gains = std::array::from_fn(|_| random.uniform(0.0, 2.0));
            assert_same_as_tables(gains, Factors::new(gains).unwrap());
        }
    }

    #[test]
    fn where_tables_change_factors_give_their_bytes_or_there_are_none() {
        // A debug build is slow.
        let step = if cfg!(debug_assertions) { 12 } else { 1 };
        for x in (3..=255_u32).step_by(step) {
            for multiple in 0..=2 * x {
                let gain = f64::from(multiple) / f64::from(x);
                for gain in [gain.next_down().max(0.0), gain, gain.next_up().min(2.0)] {
                    if let Some(factors) = Factors::new([gain; 3]) {
                        assert_same_as_tables([gain; 3], factors);
                    }
                }
            }
        }
        // Three times this gain rounds up to 5, but nine times it is below 15.
        assert_eq!(Factors::new([(5.0_f64 / 3.0).next_down(); 3]), None);
    }

    #[test]
    fn gains_that_hyperparameters_cannot_give_have_no_factors() {
        for gain in [-0.1, 2.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Factors::new([1.0, gain, 1.0]), None);
        }
    }
}
