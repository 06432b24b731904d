//! The content of a checkpoint: plain values, and tensors as bytes. A [`Value`] is a tree that owns its
//! parts.

use half::{bf16, f16};

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "standard terms")]
pub enum DType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl DType {
    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// The name of the type in PyTorch, such as `float16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "float64",
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::I64 => "int64",
            Self::I32 => "int32",
            Self::I16 => "int16",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::Bool => "bool",
        }
    }

    /// Whether the elements are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::BF16)
    }
}

/// A tensor: contiguous rows of little-endian elements.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "standard terms")]
pub struct TensorData {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl TensorData {
    /// A float32 tensor. `shape` must have as many elements as `values`.
    pub fn from_f32(shape: Vec<usize>, values: &[f32]) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Self { dtype: DType::F32, shape, bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// The elements as float32: exact for float16, bfloat16, bool and small integers, and rounded for
    /// float64, int32 and int64.
    pub fn to_f32(&self) -> Vec<f32> {
        match self.dtype {
            DType::F32 => self.each(f32::from_le_bytes),
            DType::F16 => self.each(|b| f16::from_le_bytes(b).to_f32()),
            DType::BF16 => self.each(|b| bf16::from_le_bytes(b).to_f32()),
            DType::F64 => self.each(|b| f64::from_le_bytes(b) as f32),
            DType::I64 => self.each(|b| i64::from_le_bytes(b) as f32),
            DType::I32 => self.each(|b| i32::from_le_bytes(b) as f32),
            DType::I16 => self.each(|b| f32::from(i16::from_le_bytes(b))),
            DType::I8 => self.each(|b| f32::from(i8::from_le_bytes(b))),
            DType::U8 | DType::Bool => self.each(|b: [u8; 1]| f32::from(b[0])),
        }
    }

    /// The elements as float64: exact for all types except int64 beyond 2⁵³.
    pub fn to_f64(&self) -> Vec<f64> {
        match self.dtype {
            DType::F64 => self.each(f64::from_le_bytes),
            DType::I64 => self.each(|b| i64::from_le_bytes(b) as f64),
            DType::I32 => self.each(|b| f64::from(i32::from_le_bytes(b))),
            _ => self.to_f32().into_iter().map(f64::from).collect(),
        }
    }

    /// The same tensor with float16 elements, rounded to nearest even. A tensor of integers is returned
    /// unchanged, as in PyTorch's `Module.half()`.
    #[must_use]
    pub fn to_f16(&self) -> Self {
        if !self.dtype.is_float() || self.dtype == DType::F16 {
            return self.clone();
        }
        let bytes = if self.dtype == DType::F64 {
            self.to_f64().into_iter().flat_map(|v| f16::from_f64(v).to_le_bytes()).collect()
        } else {
            self.to_f32().into_iter().flat_map(|v| f16::from_f32(v).to_le_bytes()).collect()
        };
        Self { dtype: DType::F16, shape: self.shape.clone(), bytes }
    }

    fn each<const N: usize, T>(&self, element: impl Fn([u8; N]) -> T) -> Vec<T> {
        self.bytes.as_chunks::<N>().0.iter().map(|b| element(*b)).collect()
    }
}

/// Any value in a checkpoint.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as Python's types")]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    /// A list or a set.
    List(Vec<Self>),
    Tuple(Vec<Self>),
    /// Entries in order, also of an OrderedDict. If a key occurs twice, the last entry counts.
    Dict(Vec<(Self, Self)>),
    Tensor(TensorData),
    /// A Python object as inert data: its class and attributes. Positional arguments of its
    /// constructor, if any, are the field `args`.
    Object {
        class: String,
        fields: Vec<(String, Self)>,
    },
}

impl Value {
    /// A dict with text keys.
    pub fn dict<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Dict(entries.into_iter().map(|(key, value)| (Self::Str(key.into()), value)).collect())
    }

    /// The entry of a dict or the attribute of an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Dict(entries) => {
                entries.iter().rev().find(|(k, _)| k.as_str() == Some(key)).map(|(_, value)| value)
            }
            Self::Object { fields, .. } => {
                fields.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }

    /// The number of an integer.
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    /// A number of any kind, also a tensor with one element.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Tensor(tensor) if tensor.elements() == 1 => tensor.to_f64().first().copied(),
            _ => None,
        }
    }

    /// The members of a list or tuple.
    pub fn as_slice(&self) -> Option<&[Self]> {
        if let Self::List(items) | Self::Tuple(items) = self { Some(items) } else { None }
    }

    /// The entries of a dict.
    pub fn as_entries(&self) -> Option<&[(Self, Self)]> {
        if let Self::Dict(entries) = self { Some(entries) } else { None }
    }

    /// The tensor.
    pub fn as_tensor(&self) -> Option<&TensorData> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_widens_exactly_and_narrows_to_nearest_even() {
        let half = TensorData { dtype: DType::F16, shape: vec![3], bytes: vec![0, 0x3c, 1, 0, 0xff, 0xfb] };
        assert_eq!(half.to_f32(), [1.0, 2f32.powi(-24), -65504.0]);
        let wide = TensorData::from_f32(vec![3], &[1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11), 1e6]);
        assert_eq!(wide.to_f16().to_f32(), [1.0, 1.0 + 2f32.powi(-9), f32::INFINITY]);
    }

    #[test]
    fn integers_are_not_converted_to_half_precision() {
        let count = TensorData { dtype: DType::I64, shape: vec![], bytes: 7i64.to_le_bytes().to_vec() };
        assert_eq!(count.to_f16(), count);
        assert_eq!(Value::Tensor(count).as_f64(), Some(7.0));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let dict = Value::dict([("a", Value::Int(1)), ("a", Value::Int(2))]);
        assert_eq!(dict.get("a").and_then(Value::as_i64), Some(2));
    }
}
