//! Batches that are copied to a GPU ahead: while it works on one batch, a thread takes the next from the loader, copies it
//! to page-locked memory, and has it on its way to the GPU. So the thread that launches the GPU's work does neither,
//! on which a small model would wait. On the CPU, where nothing is copied and the loader's threads work ahead
//! anyway, each batch is taken when it is needed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tch::{Device, Tensor};
use tch_train::{CopyStream, Copying};
use yolo_data::loader::Batch;

use super::input::{arrived, begin_copy};
use crate::error::TrainError;

/// Batches that are ready before they are needed, besides the one that the thread holds. One is enough, and each takes
/// memory of the device.
const READY: usize = 1;

/// What the loader gives, with its copy.
type Taken = Result<(Batch, Copying), TrainError>;

/// Batches on their device, in their order.
pub(crate) enum Ahead<'a> {
    /// Taken when they are needed.
    InTurn(Box<dyn Iterator<Item = Taken> + 'a>),
    /// Taken by a thread.
    FromThread(Receiver<Taken>),
}

impl Ahead<'_> {
    /// The next batch, with its images on the device; `None` after the last. `taken` is called when the batch is there,
    /// before the device may use it.
    ///
    /// # Errors
    /// When the loader fails, or memory runs out. An error waits for its turn.
    pub(crate) fn next(&mut self, taken: &mut dyn FnMut()) -> Result<Option<(Batch, Tensor)>, TrainError> {
        let next = match self {
            Self::InTurn(batches) => batches.next(),
            Self::FromThread(batches) => batches.recv().ok(),
        };
        let Some(next) = next else { return Ok(None) };
        taken();
        let (batch, copying) = next?;
        Ok(Some((batch, arrived(copying)?)))
    }
}

/// Calls `work` with these batches on `device`. The loader may have been asked for some that `work` does not take.
///
/// # Errors
/// Those of `work`; or when the device cannot be used, or the system refuses a thread.
pub(crate) fn copied_ahead<E: Into<TrainError>, T>(
    device: Device,
    batches: impl Iterator<Item = Result<Batch, E>> + Send,
    work: impl FnOnce(&mut Ahead<'_>) -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    if device.is_cuda() { by_thread(device, batches, work) } else { copied_in_turn(device, batches, work) }
}

/// As [`copied_ahead`], but each batch is taken and copied when it is needed, on every device.
///
/// # Errors
/// As [`copied_ahead`].
pub(crate) fn copied_in_turn<E: Into<TrainError>, T>(
    device: Device,
    batches: impl Iterator<Item = Result<Batch, E>>,
    work: impl FnOnce(&mut Ahead<'_>) -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    let stream = CopyStream::new(device)?;
    work(&mut Ahead::InTurn(Box::new(batches.map(|batch| begin(batch, &stream)))))
}

fn by_thread<E: Into<TrainError>, T>(
    device: Device,
    batches: impl Iterator<Item = Result<Batch, E>> + Send,
    work: impl FnOnce(&mut Ahead<'_>) -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    let (sender, receiver) = sync_channel(READY);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("copies".to_owned())
            .spawn_scoped(scope, move || copy_all(device, batches, &sender))
            .map_err(|error| {
                TrainError::new(format!("cannot start the thread that copies batches: {error}"))
            })?;
        let mut ahead = Ahead::FromThread(receiver);
        let result = work(&mut ahead);
        // Without a receiver, the thread ends.
        drop(ahead);
        match thread.join() {
            Ok(()) => result,
            Err(_) => Err(TrainError::new("the thread that copies batches has failed")),
        }
    })
}

/// Copies batches until there are no more, one fails, or nobody wants the next.
fn copy_all<E: Into<TrainError>>(
    device: Device,
    batches: impl Iterator<Item = Result<Batch, E>>,
    sender: &SyncSender<Taken>,
) {
    let stream = match CopyStream::new(device) {
        Ok(stream) => stream,
        Err(error) => {
            let _ = sender.send(Err(error.into()));
            return;
        }
    };
    for batch in batches {
        let taken = begin(batch, &stream);
        let failed = taken.is_err();
        if sender.send(taken).is_err() || failed {
            return;
        }
    }
}

fn begin<E: Into<TrainError>>(batch: Result<Batch, E>, stream: &CopyStream) -> Taken {
    let batch = batch.map_err(Into::into)?;
    let copying = begin_copy(&batch, stream)?;
    Ok((batch, copying))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(batch: Batch) -> Result<Batch, TrainError> {
        Ok(batch)
    }

    fn batch(pixel: u8) -> Batch {
        let item = yolo_data::loader::Item { sample: 0, native: [1, 2], ratio: [1.0; 2], pad: [0.0; 2] };
        Batch { height: 1, width: 2, pixels: vec![pixel; 6], targets: Vec::new(), items: vec![item] }
    }

    /// A batch whose pixels are too few cannot be copied.
    fn broken() -> Batch {
        Batch { pixels: vec![1; 5], ..batch(1) }
    }

    /// The first pixel of each of these batches, and how they ended. `threaded` as on a GPU.
    fn pixels(batches: Vec<Batch>, threaded: bool) -> (Vec<f64>, Result<(), TrainError>) {
        let mut pixels = Vec::new();
        let all = |ahead: &mut Ahead<'_>| {
            let mut taken = 0;
            while let Some((batch, images)) = ahead.next(&mut || taken += 1)? {
                assert_eq!(images.size(), [1, 3, 1, 2]);
                let value = images.double_value(&[0, 2, 0, 1]);
                assert!((value - f64::from(batch.pixels[0]) / 255.0).abs() < 1e-6);
                pixels.push((value * 255.0).round());
            }
            assert_eq!(taken, pixels.len());
            Ok(())
        };
        let batches = batches.into_iter().map(loaded);
        let ended = match threaded {
            true => by_thread(Device::Cpu, batches, all),
            false => copied_in_turn(Device::Cpu, batches, all),
        };
        (pixels, ended)
    }

    #[test]
    fn batches_come_in_order_whether_or_not_a_thread_takes_them() {
        for threaded in [false, true] {
            let (pixels, ended) = pixels([0, 51, 102, 255].map(batch).into(), threaded);
            ended.unwrap();
            assert_eq!(pixels, [0.0, 51.0, 102.0, 255.0]);
        }
    }

    #[test]
    fn an_error_of_the_loader_waits_for_its_turn() {
        for threaded in [false, true] {
            let (pixels, ended) = pixels(vec![batch(255), batch(51), broken(), batch(3)], threaded);
            assert_eq!(pixels, [255.0, 51.0]);
            assert!(ended.is_err());
        }
    }

    #[test]
    fn a_thread_is_few_batches_ahead_and_ends_when_nobody_wants_more() {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let endless = std::iter::repeat_with(|| {
            asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            loaded(batch(1))
        });
        let two = |ahead: &mut Ahead<'_>| {
            for _ in 0..2 {
                assert!(ahead.next(&mut || ())?.is_some());
            }
            Ok(())
        };
        by_thread(Device::Cpu, endless, two).unwrap();
        // Two were wanted, one was ready, one in the thread's hands, and it may have asked for another meanwhile.
        let asked = asked.into_inner();
        assert!((2..=2 + READY + 2).contains(&asked), "{asked}");
    }

    #[test]
    fn a_thread_that_fails_ends_the_work_with_an_error() {
        let batches =
            std::iter::once_with(|| -> Result<Batch, TrainError> { panic!("a fault of the loader") });
        let ended = by_thread(Device::Cpu, batches, |ahead| Ok(ahead.next(&mut || ())?.is_none()));
        assert_eq!(ended.unwrap_err().to_string(), "the thread that copies batches has failed");
    }
}
