//! The classes and functions that stand for data: tensors, NumPy arrays and scalars, bytes, sizes
//! and paths.

use super::arena::Arena;
use super::dtype::{torch_dtype, unsupported_tensor};
use super::node::Id;
use super::{numpy, tensor};
use crate::error::Problem;
use crate::value::Value;

/// What a call stands for.
pub(super) enum Known {
    Value(Value),
    /// The same value as another node.
    SameAs(Id),
    /// Nothing known: an object like others.
    No,
}

pub(super) fn known(arena: &mut Arena<'_>, class: &str, args: Id, states: &[Id]) -> Result<Known, Problem> {
    let items = arena.items(args);
    let value = match class {
        "torch._utils._rebuild_tensor" | "torch._utils._rebuild_tensor_v2" => {
            Value::Tensor(tensor::tensor(arena, items, None)?)
        }
        "torch._utils._rebuild_tensor_v3" => {
            let name = items.get(6).and_then(|id| arena.class(*id));
            let dtype = name.and_then(|name| torch_dtype(name.strip_prefix("torch.")?));
            let dtype = dtype.ok_or_else(|| {
                Problem::Unsupported(format!("a tensor of type {}", name.unwrap_or("that is unknown")))
            })?;
            Value::Tensor(tensor::tensor(arena, items, Some(dtype))?)
        }
        "torch._utils._rebuild_parameter"
        | "torch._utils._rebuild_parameter_with_state"
        | "torch.nn.parameter.Parameter" => {
            return Ok(items.first().map_or(Known::No, |data| Known::SameAs(*data)));
        }
        "torch.Size" => match items.first() {
            Some(sizes) => return Ok(Known::SameAs(*sizes)),
            None => Value::Tuple(Vec::new()),
        },
        "numpy.core.multiarray.scalar" | "numpy._core.multiarray.scalar" => numpy::scalar(arena, items)?,
        "numpy.core.multiarray._reconstruct" | "numpy._core.multiarray._reconstruct" => {
            let Some(state) = states.last() else { return Ok(Known::No) };
            let state = arena.items(*state);
            Value::Tensor(numpy::reconstructed(arena, state)?)
        }
        "numpy.core.numeric._frombuffer" | "numpy._core.numeric._frombuffer" => {
            Value::Tensor(numpy::from_buffer(arena, items)?)
        }
        "_codecs.encode"
        | "builtins.bytes"
        | "__builtin__.bytes"
        | "builtins.bytearray"
        | "__builtin__.bytearray" => Value::Bytes(numpy::bytes(arena, items)?),
        _ if let Some(kind) = class.strip_prefix("torch._utils.").and_then(unsupported_tensor) => {
            return Err(Problem::Unsupported(kind.to_owned()));
        }
        _ if class.starts_with("pathlib.") => {
            let parts: Option<Vec<&str>> = items.iter().map(|id| arena.text(*id)).collect();
            let Some(parts) = parts else { return Ok(Known::No) };
            // The first part of an absolute path is its root, which ends with a separator.
            Value::Str(parts.join("/").replacen("//", "/", 1))
        }
        _ => return Ok(Known::No),
    };
    Ok(Known::Value(value))
}
