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

/// Whether a name after `torch.` is an element type that [`DType`] lacks.
pub(super) fn is_unsupported_dtype(name: &str) -> bool {
    name.starts_with("float8_")
        || name.starts_with("float4_")
        || matches!(name, "uint16" | "uint32" | "uint64" | "complex32" | "complex64" | "complex128")
        || matches!(name, "qint8" | "quint8" | "qint32" | "quint4x2" | "quint2x4")
}

/// Whether a name after `torch.` says how a tensor was quantized.
pub(super) fn is_quantization_scheme(name: &str) -> bool {
    name.starts_with("per_tensor_") || name.starts_with("per_channel_")
}

/// What a function of `torch._utils` makes, if it is a tensor of a kind that is not supported.
pub(super) fn unsupported_tensor(function: &str) -> Option<&'static str> {
    Some(match function {
        "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor" => "a sparse tensor",
        "_rebuild_qtensor" => "a quantized tensor",
        "_rebuild_nested_tensor" => "a nested tensor",
        "_rebuild_meta_tensor_no_storage" => "a tensor without data (on the device `meta`)",
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
