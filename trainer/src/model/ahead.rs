//! Batches that are copied to a GPU one ahead: while it works on one batch, the next is on its way. On the CPU, where
//! nothing is copied and the loader's threads work ahead anyway, each batch is taken when it is needed.

use tch::{Device, Tensor};
use tch_train::{CopyStream, Copying};
use yolo_data::loader::Batch;

use super::input::{arrived, begin_copy};
use crate::error::TrainError;

/// Copies batches ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    stream: CopyStream,
    /// Whether there is another device that computes meanwhile.
    ahead: bool,
    /// The next batch, if it was taken already. What went wrong with it is reported when it is its turn.
    next: Option<Option<Result<(Batch, Copying), TrainError>>>,
}

impl Ahead {
    /// For batches of a model on `device`.
    ///
    /// # Errors
    /// When the device cannot be used.
    pub(crate) fn new(device: Device) -> Result<Self, TrainError> {
        Ok(Self { stream: CopyStream::new(device)?, ahead: device.is_cuda(), next: None })
    }

    /// The next of `batches`, with its images on the device; `None` after the last. `taken` is called when the batch
    /// is there, before it is copied.
    ///
    /// # Errors
    /// When the loader fails, or memory runs out.
    pub(crate) fn next<E: Into<TrainError>>(
        &mut self,
        batches: &mut impl Iterator<Item = Result<Batch, E>>,
        taken: &mut dyn FnMut(),
    ) -> Result<Option<(Batch, Tensor)>, TrainError> {
        let next = match self.next.take() {
            Some(next) => {
                taken();
                next
            }
            None => self.take(batches, taken),
        };
        let Some(next) = next else { return Ok(None) };
        let (batch, copying) = next?;
        Ok(Some((batch, arrived(copying)?)))
    }

    /// Begins to copy the batch that [`Self::next`] will return, if that gains anything. Call it when the device has
    /// work to do, because it waits for the loader.
    pub(crate) fn prepare<E: Into<TrainError>>(
        &mut self,
        batches: &mut impl Iterator<Item = Result<Batch, E>>,
    ) {
        if self.ahead && self.next.is_none() {
            self.next = Some(self.take(batches, &mut || ()));
        }
    }

    fn take<E: Into<TrainError>>(
        &self,
        batches: &mut impl Iterator<Item = Result<Batch, E>>,
        taken: &mut dyn FnMut(),
    ) -> Option<Result<(Batch, Copying), TrainError>> {
        let batch = batches.next()?;
        taken();
        Some(batch.map_err(Into::into).and_then(|batch| {
            let copying = begin_copy(&batch, &self.stream)?;
            Ok((batch, copying))
        }))
    }
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

    /// Takes all batches, with or without preparing each.
    fn values(mut ahead: Ahead, prepare: bool) -> Vec<f64> {
        let mut batches = [0, 51, 102, 255].map(|pixel| loaded(batch(pixel))).into_iter();
        let mut values = Vec::new();
        while let Some((batch, images)) = ahead.next(&mut batches, &mut || ()).unwrap() {
            if prepare {
                ahead.prepare(&mut batches);
            }
            assert_eq!(images.size(), [1, 3, 1, 2]);
            assert_eq!(
                f64::from(batch.pixels[0]) / 255.0,
                (images.double_value(&[0, 2, 0, 1]) * 1e6).round() / 1e6
            );
            values.push(images.double_value(&[0, 0, 0, 0]));
        }
        values
    }

    #[test]
    fn batches_come_in_order_whether_or_not_they_are_taken_ahead() {
        let plain = values(Ahead::new(Device::Cpu).unwrap(), false);
        assert_eq!(plain.len(), 4);
        assert_eq!(values(Ahead::new(Device::Cpu).unwrap(), true), plain);
        let taken_ahead = Ahead { ahead: true, ..Ahead::new(Device::Cpu).unwrap() };
        assert_eq!(values(taken_ahead, true), plain);
    }

    #[test]
    fn an_error_of_the_loader_waits_for_its_turn() {
        let mut ahead = Ahead { ahead: true, ..Ahead::new(Device::Cpu).unwrap() };
        // A batch whose pixels are too few cannot be copied.
        let broken = Batch { pixels: vec![1; 5], ..batch(1) };
        let mut batches = [batch(255), broken, batch(51)].map(loaded).into_iter();
        assert!(ahead.next(&mut batches, &mut || ()).unwrap().is_some());
        ahead.prepare(&mut batches);
        ahead.prepare(&mut batches);
        assert_eq!(batches.len(), 1, "only one batch is taken ahead");
        assert!(ahead.next(&mut batches, &mut || ()).is_err());
    }
}
