//! Reads and writes `.safetensors` files with the official crate. All metadata is text; `names`, `yaml` and
//! `stride` are used if they contain JSON.

use std::collections::HashMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View, serialize};

use crate::WeightsFile;
use crate::checkpoint;
use crate::error::{Problem, WeightsError};
use crate::value::{DType, TensorData, Value};

pub(crate) fn weights(bytes: &[u8]) -> Result<WeightsFile, Problem> {
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    let file = SafeTensors::deserialize(bytes)?;
    let mut tensors = Vec::new();
    for name in header.offset_keys() {
        let view = file.tensor(&name)?;
        let dtype = dtype(view.dtype())
            .ok_or_else(|| Problem::Unsupported(format!("tensor {name} of type {:?}", view.dtype())))?;
        let tensor = TensorData { dtype, shape: view.shape().to_vec(), bytes: view.data().to_vec() };
        tensors.push((name, Value::Tensor(tensor)));
    }
    if tensors.is_empty() {
        return Err(Problem::NoModel("the safetensors file has no tensors".to_owned()));
    }
    let metadata: Vec<(String, Value)> = header
        .metadata()
        .iter()
        .flatten()
        .map(|(key, text)| {
            let parsed = serde_json::from_str::<serde_json::Value>(text);
            // Only arrays and objects; other metadata stays text.
            let value = match parsed {
                Ok(json @ (serde_json::Value::Array(_) | serde_json::Value::Object(_))) => Value::from(&json),
                _ => Value::Str(text.clone()),
            };
            (key.clone(), value)
        })
        .collect();
    let mut root = metadata.clone();
    root.retain(|(key, _)| matches!(key.as_str(), "names" | "yaml" | "stride"));
    root.push(("model".to_owned(), Value::dict(tensors)));
    let mut weights = checkpoint::weights(Value::dict(root))?;
    weights.root = Value::dict(metadata);
    Ok(weights)
}

/// The bytes of a `.safetensors` file with these tensors, sorted by type and name, and this metadata. Equal content
/// gives equal bytes only with at most one entry of metadata, because the format does not order them.
/// `name` is the file in an error.
///
/// # Errors
/// If a tensor has another number of bytes than its shape needs.
pub fn encode_safetensors<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a TensorData)>,
    metadata: HashMap<String, String>,
    name: &Path,
) -> Result<Vec<u8>, WeightsError> {
    let tensors: Vec<(&str, Borrowed<'_>)> =
        tensors.into_iter().map(|(name, tensor)| (name, Borrowed(tensor))).collect();
    serialize(tensors, Some(metadata)).map_err(|error| WeightsError::new(name, error.into()))
}

/// A tensor whose bytes are not copied before they are written.
struct Borrowed<'a>(&'a TensorData);

impl View for Borrowed<'_> {
    fn dtype(&self) -> Dtype {
        match self.0.dtype {
            DType::F64 => Dtype::F64,
            DType::F32 => Dtype::F32,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::I64 => Dtype::I64,
            DType::I32 => Dtype::I32,
            DType::I16 => Dtype::I16,
            DType::I8 => Dtype::I8,
            DType::U8 => Dtype::U8,
            DType::Bool => Dtype::BOOL,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        (&self.0.bytes).into()
    }

    fn data_len(&self) -> usize {
        self.0.bytes.len()
    }
}

fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        _ => return None,
    })
}
