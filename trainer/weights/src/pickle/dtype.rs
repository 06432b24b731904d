//! Element types by the names that PyTorch and NumPy use.

use crate::value::DType;

/// A PyTorch element type by its name after `torch.`.
pub(super) fn torch_dtype(name: &str) -> Option<DType> {
    Some(match name {
        "float64" | "double" => DType::F64,
        "float32" | "float" => DType::F32,
        "float16" | "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "int64" | "long" => DType::I64,
        "int32" | "int" => DType::I32,
        "int16" | "short" => DType::I16,
        "int8" => DType::I8,
        "uint8" => DType::U8,
        "bool" => DType::Bool,
        _ => return None,
    })
}

/// The element type of a PyTorch storage class.
pub(super) fn storage_dtype(class: &str) -> Option<DType> {
    Some(match class.rsplit('.').next()? {
        "DoubleStorage" => DType::F64,
        "FloatStorage" => DType::F32,
        "HalfStorage" => DType::F16,
        "BFloat16Storage" => DType::BF16,
        "LongStorage" => DType::I64,
        "IntStorage" => DType::I32,
        "ShortStorage" => DType::I16,
        "CharStorage" => DType::I8,
        "ByteStorage" | "UntypedStorage" => DType::U8,
        "BoolStorage" => DType::Bool,
        _ => return None,
    })
}

/// The PyTorch storage class of an element type.
pub(super) fn storage_class(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "DoubleStorage",
        DType::F32 => "FloatStorage",
        DType::F16 => "HalfStorage",
        DType::BF16 => "BFloat16Storage",
        DType::I64 => "LongStorage",
        DType::I32 => "IntStorage",
        DType::I16 => "ShortStorage",
        DType::I8 => "CharStorage",
        DType::U8 => "ByteStorage",
        DType::Bool => "BoolStorage",
    }
}

/// A NumPy element type by its code, `f8`.
pub(super) fn numpy_dtype(code: &str) -> Option<DType> {
    Some(match code {
        "f8" => DType::F64,
        "f4" => DType::F32,
        "f2" => DType::F16,
        "i8" => DType::I64,
        "i4" => DType::I32,
        "i2" => DType::I16,
        "i1" => DType::I8,
        "u1" => DType::U8,
        "b1" => DType::Bool,
        _ => return None,
    })
}

/// Whether a name is one of NumPy's scalar types, which are classes of the module `numpy`.
pub(super) fn is_numpy_scalar(name: &str) -> bool {
    matches!(
        name,
        "float64" | "float32" | "float16" | "int64" | "int32" | "int16" | "int8" | "uint8" | "bool_" | "bool"
    )
}
