//! Batches as the input of a model.

use tch::{Device, Kind, Tensor};
use yolo_data::loader::Batch;

use crate::error::TrainError;

/// The images of a batch as (B, 3, H, W) from 0 to 1 on `device`.
///
/// # Errors
/// When memory runs out.
pub fn images_tensor(batch: &Batch, device: Device) -> Result<Tensor, TrainError> {
    let shape = [batch.items.len() as i64, 3, batch.height as i64, batch.width as i64];
    let bytes = Tensor::f_from_data_size(&batch.pixels, &shape, Kind::Uint8)?;
    Ok(bytes.f_to_device(device)?.f_to_kind(Kind::Float)?.f_div_scalar_(255.0)?)
}
