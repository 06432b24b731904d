//! The speed of the training loader alone: its batches are thrown away. A pass of its own copies them to the device, as
//! training does, and tells which stage of the loader takes the time.

use std::time::{Duration, Instant};

use tch::Device;
use yolo_plan::bench_report::{LoaderStages, Rate};

use super::stream::Stream;
use crate::error::TrainError;
use crate::model::images_tensor;
use crate::synchronize::synchronize;

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

/// Loads batches for this long with `workers` threads, copies each to the device, and tells where the time goes.
pub(super) fn stages(
    stream: &mut Stream,
    workers: usize,
    device: Device,
    time: Duration,
) -> Result<LoaderStages, TrainError> {
    for _ in 0..WARM_UP {
        copy(stream, device)?;
    }
    let (began, before) = (Instant::now(), stream.work());
    let mut copied = Duration::ZERO;
    while began.elapsed() < time {
        copied += copy(stream, device)?;
    }
    let (seconds, after) = (began.elapsed().as_secs_f64(), stream.work());
    let parts = [after.decode - before.decode, after.augment - before.augment, copied];
    Ok(LoaderStages::new(parts.map(|part| part.as_secs_f64()), workers, seconds))
}

/// Copies the next batch to the device. Returns the time that the copy took.
fn copy(stream: &mut Stream, device: Device) -> Result<Duration, TrainError> {
    let batch = stream.batch()?;
    let began = Instant::now();
    drop(images_tensor(&batch, device)?);
    synchronize(device);
    let time = began.elapsed();
    stream.recycle(batch.pixels);
    Ok(time)
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
