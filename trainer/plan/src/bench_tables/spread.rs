//! The median of repeated measurements, and how far they differ.

use serde::Serialize;

/// Repeated measurements of one value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the measurements are below.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

impl Spread {
    /// The spread of these measurements; `None` if there are none.
    pub fn of(measurements: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measurements.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Some(Self { median, min, max })
    }

    /// The distance between the lowest and the highest, as a part of the median.
    pub fn relative(&self) -> f64 {
        if self.median > 0.0 { (self.max - self.min) / self.median } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_in_any_order() {
        let of = |values: &[f64]| Spread::of(values.iter().copied()).unwrap();
        assert_eq!(of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 10.0]).median, 3.0);
        assert_eq!(of(&[5.0]), Spread { median: 5.0, min: 5.0, max: 5.0 });
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_spread_is_relative_to_the_median() {
        assert_eq!(Spread { median: 10.0, min: 9.0, max: 12.0 }.relative(), 0.3);
        assert_eq!(Spread { median: 0.0, min: 0.0, max: 0.0 }.relative(), 0.0);
    }
}
