//! Tensors between libtorch and files: a tensor as bytes, and the bytes of a file into an existing
//! tensor, which keeps its kind, device and memory layout.

use tch::{Device, Kind, Tensor, no_grad};
use torch_checkpoint::{DType, TensorData};

use crate::error::TrainError;

/// The numbers of a tensor on any device, in any memory layout.
///
/// # Errors
/// When the tensor's kind has no counterpart in files, or it cannot be read from its device.
pub fn tensor_data(tensor: &Tensor) -> Result<TensorData, TrainError> {
    let dtype = dtype(tensor.f_kind()?)?;
    let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let mut bytes = vec![0; tensor.numel() * tensor.f_kind()?.elt_size_in_bytes()];
    tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
    Ok(TensorData { dtype, shape: tensor.size().iter().map(|&side| side as usize).collect(), bytes })
}

/// Copies the numbers of `source` into `target`, converted to its kind.
///
/// # Errors
/// When the shapes differ, or `source` has too few bytes.
pub(crate) fn fill(target: &Tensor, source: &TensorData) -> Result<(), TrainError> {
    let shape = shape(source);
    if shape != target.size() {
        return Err(TrainError::new(format!("its shape is {shape:?}, not {:?}", target.size())));
    }
    // C++ reads as many bytes as the shape says.
    let expected = source.shape.iter().product::<usize>() * source.dtype.size();
    if source.bytes.len() != expected {
        let found = source.bytes.len();
        return Err(TrainError::new(format!("it has {found} bytes, but shape {shape:?} needs {expected}")));
    }
    let read = Tensor::f_from_data_size(&source.bytes, &shape, kind(source.dtype))?;
    no_grad(|| target.shallow_clone().f_copy_(&read))?;
    Ok(())
}

/// The shape of a file's tensor, in libtorch's type.
pub(crate) fn shape(source: &TensorData) -> Vec<i64> {
    source.shape.iter().map(|&side| side as i64).collect()
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
        other => {
            return Err(TrainError::new(format!("a tensor of kind {other:?} cannot be written to a file")));
        }
    })
}

fn kind(dtype: DType) -> Kind {
    match dtype {
        DType::F64 => Kind::Double,
        DType::F32 => Kind::Float,
        DType::F16 => Kind::Half,
        DType::BF16 => Kind::BFloat16,
        DType::I64 => Kind::Int64,
        DType::I32 => Kind::Int,
        DType::I16 => Kind::Int16,
        DType::I8 => Kind::Int8,
        DType::U8 => Kind::Uint8,
        DType::Bool => Kind::Bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_fill_floats() {
        let source = TensorData::from_f32(vec![2], &[1.5, -2.0]).to_f16();
        let target = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        fill(&target, &source).unwrap();
        assert_eq!(Vec::<f32>::try_from(&target).unwrap(), [1.5, -2.0]);
    }

    #[test]
    fn wrong_shapes_and_missing_bytes_are_rejected() {
        let mut source = TensorData::from_f32(vec![2], &[1.5, -2.0]);
        let target = Tensor::zeros([3], (Kind::Float, Device::Cpu));
        assert_eq!(fill(&target, &source).unwrap_err().to_string(), "its shape is [2], not [3]");
        source.bytes.pop();
        let target = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        assert_eq!(fill(&target, &source).unwrap_err().to_string(), "it has 7 bytes, but shape [2] needs 8");
    }

    #[test]
    fn a_tensor_survives_a_round_trip_in_any_memory_layout() {
        let tensor = Tensor::arange(24, (Kind::Float, Device::Cpu)).reshape([1, 2, 3, 4]);
        tch_train::set_channels_last(&tensor).unwrap();
        let copy = tensor.zeros_like();
        fill(&copy, &tensor_data(&tensor).unwrap()).unwrap();
        assert_eq!(copy, tensor);
    }
}
