//! Tensors of a file into tensors of a run: the shape must agree, the kind is converted, and the
//! place in memory (device, order of dimensions) stays that of the run's tensor.

use tch::{Kind, Tensor, no_grad};
use yolo_data::weights::{DType, TensorData};

use crate::error::TrainError;

/// Copies the numbers of `source` into `target`.
///
/// # Errors
/// When the shapes differ, with both in the message, or libtorch refuses.
pub(super) fn copy(source: &TensorData, target: &Tensor) -> Result<(), TrainError> {
    let shape: Vec<i64> = source.shape.iter().map(|&side| side as i64).collect();
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
    use tch::Device;

    #[test]
    fn halves_fill_floats() {
        let source = TensorData::from_f32(vec![2], &[1.5, -2.0]).to_f16();
        let target = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        copy(&source, &target).unwrap();
        assert_eq!(Vec::<f32>::try_from(&target).unwrap(), [1.5, -2.0]);
    }

    #[test]
    fn another_shape_and_too_few_bytes_are_refused() {
        let mut source = TensorData::from_f32(vec![2], &[1.5, -2.0]);
        let target = Tensor::zeros([3], (Kind::Float, Device::Cpu));
        assert_eq!(copy(&source, &target).unwrap_err().to_string(), "its shape is [2], and [3] is needed");
        source.bytes.pop();
        let target = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        assert_eq!(copy(&source, &target).unwrap_err().to_string(), "it has 7 bytes, and shape [2] needs 8");
    }
}
