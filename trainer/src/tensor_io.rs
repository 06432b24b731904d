//! Tensors between libtorch and files, both ways: a tensor as bytes, a model's state as a
//! dictionary, and the numbers of a file into a tensor that exists. The kind is converted, and the
//! place in memory (device, order of dimensions) stays that of the tensor that is filled.

use tch::{Device, Kind, Tensor, no_grad};
use torch_checkpoint::{DType, TensorData};

use crate::error::TrainError;

/// The numbers of a tensor, wherever it lives and however it lies in memory.
pub fn tensor_data(tensor: &Tensor) -> Result<TensorData, TrainError> {
    let dtype = dtype(tensor.f_kind()?)?;
    let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let mut bytes = vec![0; tensor.numel() * tensor.f_kind()?.elt_size_in_bytes()];
    tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
    Ok(TensorData { dtype, shape: tensor.size().iter().map(|&side| side as usize).collect(), bytes })
}

/// Copies the numbers of `source` into `target`.
///
/// # Errors
/// When the shapes differ, with both in the message, or libtorch refuses.
pub(crate) fn fill(target: &Tensor, source: &TensorData) -> Result<(), TrainError> {
    let shape = shape(source);
    if shape != target.size() {
        return Err(TrainError::new(format!("its shape is {shape:?}, and {:?} is needed", target.size())));
    }
    // The bytes are read by C++ as far as the shape says.
    let expected = source.shape.iter().product::<usize>() * source.dtype.size();
    if source.bytes.len() != expected {
        let found = source.bytes.len();
        return Err(TrainError::new(format!("it has {found} bytes, and shape {shape:?} needs {expected}")));
    }
    let read = Tensor::f_from_data_size(&source.bytes, &shape, kind(source.dtype))?;
    no_grad(|| target.shallow_clone().f_copy_(&read))?;
    Ok(())
}

/// The shape of a file's tensor as libtorch writes shapes.
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
        other => return Err(TrainError::new(format!("tensors of kind {other:?} are not written to files"))),
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
    fn another_shape_and_too_few_bytes_are_refused() {
        let mut source = TensorData::from_f32(vec![2], &[1.5, -2.0]);
        let target = Tensor::zeros([3], (Kind::Float, Device::Cpu));
        assert_eq!(fill(&target, &source).unwrap_err().to_string(), "its shape is [2], and [3] is needed");
        source.bytes.pop();
        let target = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        assert_eq!(fill(&target, &source).unwrap_err().to_string(), "it has 7 bytes, and shape [2] needs 8");
    }

    #[test]
    fn a_tensor_comes_back_whatever_its_order_in_memory() {
        let tensor = Tensor::arange(24, (Kind::Float, Device::Cpu)).reshape([1, 2, 3, 4]);
        tch_train::set_channels_last(&tensor).unwrap();
        let copy = tensor.zeros_like();
        fill(&copy, &tensor_data(&tensor).unwrap()).unwrap();
        assert_eq!(copy, tensor);
    }
}
