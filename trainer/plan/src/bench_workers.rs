//! `yolo bench --workers auto`: how many loader threads are measured, and which number is best. More
//! threads than needed take cores from everything else, so the smallest number that suffices wins.

use serde::{Deserialize, Serialize};

/// A loader that is this much faster than the network never lets it wait for long.
const MARGIN: f64 = 1.1;
/// Twice the threads help if they load this much faster.
const GAIN: f64 = 1.05;

/// The number of loader threads to use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The number to give to `yolo train --workers`.
    pub count: usize,
    /// Images per second that so many load.
    pub images_per_second: f64,
    /// Images per second of the network alone; `None` if it was not measured.
    pub needed: Option<f64>,
    /// Why this number.
    pub why: Why,
}

/// Why a number of loader threads is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// They load faster than the network needs.
    FastEnough,
    /// More do not load faster.
    NoGain,
    /// A run cannot have more, because of the cores or of the batch.
    Most,
}

/// The next number of threads to measure: 1, 2, 4 and so on up to `most`, until they suffice or no
/// longer help. `measured` are the numbers so far with their images per second.
pub fn next(measured: &[(usize, f64)], needed: Option<f64>, most: usize) -> Option<usize> {
    match advice(measured, needed, most) {
        None => Some(measured.last().map_or(1, |(count, _)| (count * 2).min(most))),
        Some(_) => None,
    }
}

/// The best number of threads; `None` if more must be measured.
pub fn advice(measured: &[(usize, f64)], needed: Option<f64>, most: usize) -> Option<Advice> {
    let (&(count, rate), before) = measured.split_last()?;
    let advice = |(count, images_per_second), why| Advice { count, images_per_second, needed, why };
    if needed.is_some_and(|needed| rate >= MARGIN * needed) {
        return Some(advice((count, rate), Why::FastEnough));
    }
    if let Some(&fewer) = before.last().filter(|(_, fewer)| rate < GAIN * fewer) {
        return Some(advice(fewer, Why::NoGain));
    }
    (count >= most).then(|| advice((count, rate), Why::Most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that are measured if they load so many images per second, and the answer.
    fn search(rate: fn(usize) -> f64, needed: f64, most: usize) -> (Vec<usize>, usize, Why) {
        let mut measured = Vec::new();
        while let Some(count) = next(&measured, Some(needed), most) {
            measured.push((count, rate(count)));
        }
        let advice = advice(&measured, Some(needed), most).unwrap();
        assert_eq!(advice.images_per_second, rate(advice.count));
        (measured.into_iter().map(|(count, _)| count).collect(), advice.count, advice.why)
    }

    #[test]
    fn the_first_loader_that_is_faster_than_the_network_wins() {
        let linear = |count| 100.0 * count as f64;
        assert_eq!(search(linear, 80.0, 8), (vec![1], 1, Why::FastEnough));
        assert_eq!(search(linear, 250.0, 8), (vec![1, 2, 4], 4, Why::FastEnough));
        // Just as fast as the network is too slow for a loader whose speed varies.
        assert_eq!(search(linear, 100.0, 8), (vec![1, 2], 2, Why::FastEnough));
    }

    #[test]
    fn threads_that_do_not_help_are_not_advised() {
        let saturated = |count: usize| 100.0 * count.min(2) as f64;
        assert_eq!(search(saturated, 1000.0, 16), (vec![1, 2, 4], 2, Why::NoGain));
    }

    #[test]
    fn the_cores_are_the_limit() {
        let linear = |count| 100.0 * count as f64;
        assert_eq!(search(linear, 1000.0, 6), (vec![1, 2, 4, 6], 6, Why::Most));
        assert_eq!(search(linear, 1000.0, 1), (vec![1], 1, Why::Most));
    }

    #[test]
    fn nothing_is_advised_before_a_measurement() {
        assert_eq!(advice(&[], Some(1.0), 4), None);
        assert_eq!(next(&[], None, 4), Some(1));
    }
}
