//! The speed of the training loader alone: its batches are thrown away.

use std::time::{Duration, Instant};

use yolo_plan::bench_report::Rate;

use super::stream::Stream;
use crate::error::TrainError;

/// Batches before the measurement. The loader makes up to four ahead, which were ready before.
const WARM_UP: usize = 4;

/// The numbers of threads to measure: 1, 2, 4 and so on, and the largest itself.
pub(super) fn thread_counts(largest: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|&count| count < largest)
        .collect();
    counts.push(largest);
    counts
}

/// Loads batches for this long.
pub(super) fn measure(stream: &mut Stream, time: Duration) -> Result<Rate, TrainError> {
    for _ in 0..WARM_UP {
        let batch = stream.batch()?;
        stream.recycle(batch.pixels);
    }
    let began = Instant::now();
    let mut images = 0;
    while began.elapsed() < time {
        let batch = stream.batch()?;
        images += batch.items.len();
        stream.recycle(batch.pixels);
    }
    Ok(Rate::since(began, images))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_double_up_to_the_largest() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(8), [1, 2, 4, 8]);
    }
}
