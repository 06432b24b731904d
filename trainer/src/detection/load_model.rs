//! Loads a weights file for inference.

use std::path::Path;

use tch::Device;

use crate::error::TrainError;
use crate::model::{Model, Transfer};

/// A model that is ready for inference.
pub struct LoadedModel {
    /// The model, with batch normalization fused into its convolutions.
    pub model: Model,
    /// Which tensors of the model the file had.
    pub transfer: Transfer,
    /// The names of its classes, if the file has them.
    pub names: Option<Vec<String>>,
}

/// Reads the model of a weights file, fuses it and moves it to `device`. With `half`, its weights
/// have half precision, which only CUDA devices support.
///
/// # Errors
/// When the file cannot be read, holds no model, or memory runs out.
pub fn load_model(path: &Path, device: Device, half: bool) -> Result<LoadedModel, TrainError> {
    let file = torch_checkpoint::read(path)?;
    if file.yaml.is_none() {
        return Err(TrainError::new("it has only tensors, and not the model that they belong to")
            .at_file(path)
            .with_hint(
                "give the checkpoint from which they were taken, such as weights/best.pt of its run; only yolo train \
                 accepts tensors alone, with --cfg",
            ));
    }
    let unfused = Model::from_weights(&file, None, None, device).map_err(|error| error.at_file(path))?;
    let transfer = unfused.transfer(&file, false)?;
    let mut model = unfused.fuse()?;
    if half {
        model.to_half()?;
    }
    Ok(LoadedModel { model, transfer, names: file.names })
}
