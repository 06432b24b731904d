//! Batches that are copied to a GPU ahead: while it works on one batch, a thread takes the next from the loader, copies it
//! to page-locked memory, and has it on its way to the GPU. So the thread that launches the GPU's work does neither,
//! on which a small model would wait. On the CPU, where nothing is copied and the loader's threads work ahead
//! anyway, each batch is taken when it is needed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tch::{Device, Tensor};
use tch_train::{CopyStream, Copying};
use yolo_data::loader::{Batch, Halt};

use super::input::{arrived, begin_copy};
use crate::error::TrainError;

/// Batches that are ready before they are needed, in addition to the one that the thread is about to send. One is enough,
/// and each takes memory of the device.
const READY: usize = 1;
/// The most batches that were taken from the loader and not yet given to whoever works on them.
pub(crate) const MOST_AHEAD: usize = READY + 1;

/// A batch with its copy.
type Taken = (Batch, Copying);

/// Batches on their device, in their order.
pub(crate) enum Ahead<'a> {
    /// Taken and copied when they are needed.
    InTurn { batches: Box<dyn Iterator<Item = Result<Batch, TrainError>> + 'a>, stream: CopyStream },
    /// Taken and copied by a thread, which sends `None` after the last.
    FromThread { batches: Receiver<Result<Option<Taken>, TrainError>>, has_ended: bool },
}

impl Ahead<'_> {
    /// The next batch, with its images on the device; `None` after the last. `taken` is called when the batch is there:
    /// in turn before it is copied, else before the device may use it.
    ///
    /// # Errors
    /// When the loader fails, or memory runs out. An error waits for its turn.
    pub(crate) fn next(&mut self, taken: &mut dyn FnMut()) -> Result<Option<(Batch, Tensor)>, TrainError> {
        let next = match self {
            Self::InTurn { batches, stream } => {
                let Some(batch) = batches.next().transpose()? else { return Ok(None) };
                taken();
                let copying = begin_copy(&batch, stream)?;
                Some((batch, copying))
            }
            Self::FromThread { batches, has_ended } => {
                let next = batches.recv().unwrap_or_else(|_| Err(failed()));
                *has_ended = !matches!(next, Ok(Some(_)));
                let next = next?;
                if next.is_some() {
                    taken();
                }
                next
            }
        };
        let Some((batch, copying)) = next else { return Ok(None) };
        Ok(Some((batch, arrived(copying)?)))
    }
}

/// The error if the thread panics, which has written why.
fn failed() -> TrainError {
    TrainError::new(FAILED).with_hint("this is a bug; report it with the lines above")
}

const FAILED: &str = "the thread that copies batches ended unexpectedly";

/// Calls `work` with these batches on `device`. The loader may have been asked for some that `work` does not take; if `work`
/// ends before the last batch, `halt` ends the making of the others.
///
/// # Errors
/// Those of `work`; or when the device cannot be used, or the system refuses a thread.
pub(crate) fn copied_ahead<E: Into<TrainError>, T>(
    device: Device,
    halt: &Halt,
    batches: impl Iterator<Item = Result<Batch, E>> + Send,
    work: impl FnOnce(&mut Ahead<'_>) -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    if device.is_cuda() {
        by_thread(device, halt, batches, work)
    } else {
        copied_in_turn(device, batches, work)
    }
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
    work(&mut Ahead::InTurn { batches: Box::new(batches.map(|batch| batch.map_err(Into::into))), stream })
}

fn by_thread<E: Into<TrainError>, T>(
    device: Device,
    halt: &Halt,
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
        let mut ahead = Ahead::FromThread { batches: receiver, has_ended: false };
        let result = work(&mut ahead);
        let has_ended = matches!(ahead, Ahead::FromThread { has_ended: true, .. });
        // Without a receiver, the thread ends; it must not wait for a batch that nobody wants.
        drop(ahead);
        if !has_ended {
            halt.stop();
        }
        // If the thread has panicked, whoever wanted its next batch got an error. What was done without it stays done.
        let _ = thread.join();
        result
    })
}

/// Copies batches until there are no more, one fails, or nobody wants the next.
fn copy_all<E: Into<TrainError>>(
    device: Device,
    batches: impl Iterator<Item = Result<Batch, E>>,
    sender: &SyncSender<Result<Option<Taken>, TrainError>>,
) {
    let copy = || -> Result<(), TrainError> {
        let stream = CopyStream::new(device)?;
        for batch in batches {
            let batch = batch.map_err(Into::into)?;
            let copying = begin_copy(&batch, &stream)?;
            if sender.send(Ok(Some((batch, copying)))).is_err() {
                break;
            }
        }
        Ok(())
    };
    // Fails only if nobody wants the next batch.
    let _ = sender.send(copy().map(|()| None));
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
            true => by_thread(Device::Cpu, &Halt::default(), batches, all),
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
        by_thread(Device::Cpu, &Halt::default(), endless, two).unwrap();
        let asked = asked.into_inner();
        assert!((2..=2 + MOST_AHEAD).contains(&asked), "{asked}");
    }

    #[test]
    fn a_thread_that_fails_ends_the_work_with_an_error() {
        let panics =
            || std::iter::once_with(|| -> Result<Batch, TrainError> { panic!("a fault of the loader") });
        let halt = Halt::default();
        let ended = by_thread(Device::Cpu, &halt, panics(), |ahead| Ok(ahead.next(&mut || ())?.is_none()));
        assert_eq!(ended.unwrap_err().to_string(), FAILED);
        // What needed no batch of it stays done, and another error is not replaced.
        assert_eq!(by_thread(Device::Cpu, &halt, panics(), |_| Ok(7)).unwrap(), 7);
        let other =
            by_thread(Device::Cpu, &halt, panics(), |_| Err::<(), _>(TrainError::new("out of memory")));
        assert_eq!(other.unwrap_err().to_string(), "out of memory");
    }

    #[test]
    fn in_turn_a_batch_is_taken_before_it_is_copied() {
        let mut taken = 0;
        let error = copied_in_turn(Device::Cpu, [loaded(broken())].into_iter(), |ahead| {
            ahead.next(&mut || taken += 1).map(|_| ())
        });
        assert!(error.is_err(), "it cannot be copied");
        assert_eq!(taken, 1);
    }

    #[test]
    fn work_that_ends_early_does_not_wait_for_a_batch() {
        let (halt, began) = (Halt::default(), std::time::Instant::now());
        let seen = halt.clone();
        // A loader that needs a minute for a batch, unless it is stopped.
        let slow = std::iter::repeat_with(move || {
            while !seen.is_stopped() && began.elapsed().as_secs() < 60 {
                std::thread::yield_now();
            }
            loaded(batch(1))
        });
        let ended = by_thread(Device::Cpu, &halt, slow, |_| Err::<(), _>(TrainError::new("a peer is lost")));
        assert_eq!(ended.unwrap_err().to_string(), "a peer is lost");
        assert!(halt.is_stopped());
        assert!(began.elapsed().as_secs() < 60);
    }
}
