//! The tensors of a pickled module, by the names that they have in PyTorch's `state_dict()`: a module is walked as there, its
//! parameters, its buffers, then its children.

use indexmap::IndexMap;

use crate::error::Problem;
use crate::value::{TensorData, Value};

/// The tensors of a pickled module.
pub(crate) fn tensors(module: &Value) -> Result<IndexMap<String, TensorData>, Problem> {
    let mut tensors = IndexMap::new();
    walk(module, "", &mut tensors)?;
    Ok(tensors)
}

/// The depth is bounded, because the reader limits the nesting of values.
fn walk(module: &Value, prefix: &str, tensors: &mut IndexMap<String, TensorData>) -> Result<(), Problem> {
    let members = |key| module.get(key).and_then(Value::as_entries).unwrap_or_default();
    let transient = module.get("_non_persistent_buffers_set").and_then(Value::as_slice).unwrap_or_default();
    for (key, value) in members("_parameters").iter().chain(members("_buffers")) {
        match value {
            // No bias, or a buffer that state_dict() omits.
            Value::None => {}
            _ if transient.contains(key) => {}
            Value::Tensor(tensor) => {
                tensors.insert(format!("{prefix}{}", name(key)?), tensor.clone());
            }
            _ => {
                return Err(Problem::Content {
                    part: "model",
                    reason: format!("has no tensor at {prefix}{}", name(key)?),
                });
            }
        }
    }
    for (key, child) in members("_modules") {
        if *child != Value::None {
            walk(child, &format!("{prefix}{}.", name(key)?), tensors)?;
        }
    }
    Ok(())
}

fn name(key: &Value) -> Result<&str, Problem> {
    key.as_str().ok_or_else(|| Problem::Content {
        part: "model",
        reason: "has a tensor whose name is not text".to_owned(),
    })
}
