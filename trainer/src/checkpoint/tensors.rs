//! Tensors between libtorch and files: a tensor as bytes, a model's state as a dictionary.

use tch::{Device, Kind, Tensor};
use yolo_data::weights::{DType, TensorData, Value};

use crate::error::TrainError;
use crate::model::State;

/// The state of a model as a dictionary from name to tensor, in order; floating tensors in half
/// precision when `half` is set.
pub fn state_dict(state: &State, half: bool) -> Result<Value, TrainError> {
    let entries = state
        .iter()
        .map(|entry| {
            let tensor = entry.tensor.f_detach()?;
            let tensor =
                if half && tensor.is_floating_point() { tensor.f_to_kind(Kind::Half)? } else { tensor };
            Ok((Value::Str(entry.name.clone()), Value::Tensor(tensor_data(&tensor)?)))
        })
        .collect::<Result<Vec<_>, TrainError>>()?;
    Ok(Value::Dict(entries))
}

/// The numbers of a tensor, wherever it lives and however it lies in memory.
pub fn tensor_data(tensor: &Tensor) -> Result<TensorData, TrainError> {
    let dtype = dtype(tensor.f_kind()?)?;
    let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let mut bytes = vec![0; tensor.numel() * tensor.f_kind()?.elt_size_in_bytes()];
    tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
    Ok(TensorData { dtype, shape: tensor.size().iter().map(|&side| side as usize).collect(), bytes })
}

fn dtype(kind: Kind) -> Result<DType, TrainError> {
    Ok(match kind {
        Kind::Double => DType::F64,
        Kind::Float => DType::F32,
        Kind::Half => DType::F16,
        Kind::BFloat16 => DType::BF16,
        Kind::Int64 => DType::I64,
        Kind::Int => DType::I32,
        Kind::Uint8 => DType::U8,
        Kind::Bool => DType::Bool,
        other => return Err(TrainError::new(format!("tensors of kind {other:?} are not written to files"))),
    })
}
