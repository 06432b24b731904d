//! NumPy arrays and scalars, and bytes in the ways in which pickles of all protocols write them.

use super::arena::Arena;
use super::dtype::numpy_dtype;
use super::node::{Id, Node};
use super::strided::gather;
use crate::error::Problem;
use crate::value::{DType, TensorData, Value};

fn problem(reason: &str) -> Problem {
    Problem::Tensor { key: "of a NumPy array".to_owned(), reason: reason.to_owned() }
}

/// Reads `numpy.dtype('f8', False, True)` with the state `(3, '<', …)`: the element type, and
/// whether the elements are big-endian.
fn element_type(arena: &Arena<'_>, id: Id) -> Result<(DType, bool), Problem> {
    let unsupported =
        |name: &str| Problem::Unsupported(format!("a NumPy array of type {}", name.escape_debug()));
    let Node::Call { class, args, states } = &arena.nodes[id] else { return Err(problem("has no type")) };
    let code = arena.items(*args).first().and_then(|id| arena.text(*id));
    let code = code.ok_or_else(|| unsupported(class))?;
    let dtype = numpy_dtype(code).ok_or_else(|| unsupported(code))?;
    let order = states.last().and_then(|state| arena.items(*state).get(1)).and_then(|id| arena.text(*id));
    Ok((dtype, order == Some(">")))
}

/// A scalar from `dtype, bytes`.
pub(super) fn scalar(arena: &Arena<'_>, items: &[Id]) -> Result<Value, Problem> {
    let [dtype, data] = *items else { return Err(problem("has unexpected arguments")) };
    let (dtype, is_big_endian) = element_type(arena, dtype)?;
    let mut bytes = argument_bytes(arena, data)?;
    if bytes.len() != dtype.size() {
        return Err(problem("has a length that does not match its type"));
    }
    if is_big_endian {
        bytes.reverse();
    }
    let tensor = TensorData { dtype, shape: Vec::new(), bytes };
    let number = tensor.to_f64()[0];
    Ok(match dtype {
        DType::Bool => Value::Bool(number != 0.0),
        DType::I64 => Value::Int(i64::from_le_bytes(*tensor.bytes.first_chunk().unwrap_or(&[0; 8]))),
        _ if dtype.is_float() => Value::Float(number),
        _ => Value::Int(number as i64),
    })
}

/// An array from the state `version, shape, dtype, is in Fortran order, bytes`.
pub(super) fn reconstructed(arena: &mut Arena<'_>, state: &[Id]) -> Result<TensorData, Problem> {
    let [_, shape, dtype, fortran, data] = *state else { return Err(problem("has an unexpected state")) };
    let is_fortran = matches!(arena.nodes[fortran], Node::Bool(true));
    array(arena, shape, dtype, is_fortran, data)
}

/// An array from `bytes, dtype, shape, order`.
pub(super) fn from_buffer(arena: &mut Arena<'_>, items: &[Id]) -> Result<TensorData, Problem> {
    let [data, dtype, shape, order] = *items else { return Err(problem("has unexpected arguments")) };
    let is_fortran = arena.text(order) == Some("F");
    array(arena, shape, dtype, is_fortran, data)
}

fn array(
    arena: &mut Arena<'_>,
    shape: Id,
    dtype: Id,
    is_fortran: bool,
    data: Id,
) -> Result<TensorData, Problem> {
    let shape = arena.sizes(shape).ok_or_else(|| problem("has a malformed shape"))?;
    let (dtype, is_big_endian) = element_type(arena, dtype)?;
    let mut bytes = argument_bytes(arena, data)?;
    arena.spend_tensor(bytes.len() as u64)?;
    let count = shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
    if count != Some(bytes.len()) {
        return Err(problem("has a length that does not match its shape"));
    }
    if is_big_endian {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if is_fortran && !bytes.is_empty() {
        let strides: Vec<usize> = shape
            .iter()
            .scan(1, |next, size| {
                let stride = *next;
                *next *= size;
                Some(stride)
            })
            .collect();
        bytes = gather(&bytes, &shape, &strides, 0, dtype.size(), bytes.len());
    }
    Ok(TensorData { dtype, shape, bytes })
}

/// An argument that is bytes. Protocol 2 writes them as `_codecs.encode(text, 'latin1')`.
fn argument_bytes(arena: &Arena<'_>, id: Id) -> Result<Vec<u8>, Problem> {
    match &arena.nodes[id] {
        Node::Bytes(bytes) => Ok(bytes.clone()),
        Node::Str(text) => latin1(text),
        Node::Call { args, .. } => bytes(arena, arena.items(*args)),
        _ => Err(problem("has no bytes")),
    }
}

/// The value of a call that makes bytes.
pub(super) fn bytes(arena: &Arena<'_>, args: &[Id]) -> Result<Vec<u8>, Problem> {
    match args.first().map(|id| &arena.nodes[*id]) {
        None => Ok(Vec::new()),
        Some(Node::Str(text)) => latin1(text),
        Some(Node::Bytes(bytes)) => Ok(bytes.clone()),
        _ => Err(problem("has no bytes")),
    }
}

fn latin1(text: &str) -> Result<Vec<u8>, Problem> {
    text.chars().map(|c| u8::try_from(c).map_err(|_| problem("has text instead of bytes"))).collect()
}
