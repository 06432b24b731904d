//! Formats that are the tensors of the network under YOLOv5's names, without operations: a state dict for `torch.load`,
//! and safetensors. They have all tensors, so that training can go on, in the precision of the weights file.

use std::collections::HashMap;

use tch::Device;
use torch_checkpoint::{Replacement, Value, WeightsFile, encode, encode_safetensors, read};

use super::compare::{Difference, compare};
use super::source::Source;
use crate::error::TrainError;
use crate::model::Model;

/// Writes a state dict as `torch.save(model.state_dict())` does.
///
/// # Errors
/// When it cannot be written, or differs from the network.
pub(super) fn write_torch(source: &Source, file: &Replacement) -> Result<Difference, TrainError> {
    let tensors = source.tensors()?.into_iter().map(|(name, tensor)| (name, Value::Tensor(tensor)));
    file.write(&encode(&Value::dict(tensors), file.path())?)?;
    read_back(source, &read(file.path())?)
}

/// Writes tensors, and as metadata what a reader needs to build the network.
///
/// # Errors
/// When it cannot be written, or differs from the network.
pub(super) fn write_safetensors(source: &Source, file: &Replacement) -> Result<Difference, TrainError> {
    let text = |value: &serde_json::Value| value.to_string();
    let metadata = HashMap::from([
        ("format".to_owned(), "pt".to_owned()),
        ("names".to_owned(), text(&source.names.clone().into())),
        ("stride".to_owned(), text(&source.model.strides().into())),
        ("yaml".to_owned(), text(&source.model.spec().yaml)),
    ]);
    let tensors = source.tensors()?;
    let borrowed = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
    file.write(&encode_safetensors(borrowed, metadata, file.path())?)?;
    let written = read(file.path())?;
    // `yolo` itself can use this file without another one.
    let rebuilt = Model::from_weights(&written, None, None, Device::Cpu)?;
    if rebuilt.spec().layers != source.model.spec().layers {
        return Err(TrainError::new("the metadata that was written describes another model"));
    }
    read_back(source, &written)
}

/// Compares a network with the tensors that were written with the one that they were taken from.
pub(super) fn read_back(source: &Source, written: &WeightsFile) -> Result<Difference, TrainError> {
    let rounded = source.model.copy()?;
    if source.stores_half {
        rounded.round_to_half()?;
    }
    let rebuilt = Model::new(source.model.spec(), source.model.device())?;
    let transfer = rebuilt.transfer(written, false)?;
    if transfer.matched < transfer.total || !transfer.extra.is_empty() {
        return Err(TrainError::new(format!("what was written is not the network: {}", transfer.summary())));
    }
    let outputs = |model: &Model| Source::outputs(&model.fuse()?, &source.images);
    compare(&outputs(&rounded)?, &outputs(&rebuilt)?, false)
}
