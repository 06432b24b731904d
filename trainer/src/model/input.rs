//! Batches as the input of a model: copied to its device as bytes, and made numbers there.

use tch::{Device, Kind, Tensor};
use tch_train::{CopyStream, Copying};
use yolo_data::loader::Batch;

use crate::error::TrainError;

/// The images of a batch as (B, 3, H, W) from 0 to 1 on `device`.
///
/// # Errors
/// When memory runs out.
pub fn images_tensor(batch: &Batch, device: Device) -> Result<Tensor, TrainError> {
    arrived(begin_copy(batch, &CopyStream::new(device)?)?)
}

/// Begins to copy the images of a batch, whose pixels may change afterwards. [`arrived`] ends it.
///
/// # Errors
/// When memory runs out.
pub(crate) fn begin_copy(batch: &Batch, stream: &CopyStream) -> Result<Copying, TrainError> {
    let shape = [batch.items.len() as i64, 3, batch.height as i64, batch.width as i64];
    Ok(stream.copy_bytes(&batch.pixels, &shape)?)
}

/// The images of a batch that [`begin_copy`] copies. The device waits for them, and the host does not.
///
/// # Errors
/// When memory runs out.
pub(crate) fn arrived(copying: Copying) -> Result<Tensor, TrainError> {
    Ok(copying.arrive()?.f_to_kind(Kind::Float)?.f_div_scalar_(255.0)?)
}
