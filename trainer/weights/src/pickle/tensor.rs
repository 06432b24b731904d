//! PyTorch tensors: a view of a storage, which is outside the pickle. Sizes and strides come from the
//! file, so they are checked against the storage before a byte is copied.

use super::arena::Arena;
use super::dtype::storage_dtype;
use super::node::{Id, Node};
use super::strided::{gather, is_contiguous};
use crate::error::Problem;
use crate::value::{DType, TensorData};

/// Rebuilds a tensor from `storage, offset, size, stride`. Without `dtype`, its elements have the
/// type of the storage.
pub(super) fn tensor(
    arena: &mut Arena<'_>,
    items: &[Id],
    dtype: Option<DType>,
) -> Result<TensorData, Problem> {
    let [storage, offset, size, stride, ..] = *items else {
        return Err(malformed("has too few arguments"));
    };
    let (key, stored) = storage_reference(arena, storage)?;
    let dtype = dtype.unwrap_or(stored);
    let wrong = |reason: &str| Problem::Tensor { key: key.to_owned(), reason: reason.to_owned() };
    let shape = arena.sizes(size).ok_or_else(|| wrong("has a malformed size"))?;
    let strides = arena.sizes(stride).ok_or_else(|| wrong("has a malformed stride"))?;
    let offset = arena.int(offset).and_then(|n| usize::try_from(n).ok());
    let offset = offset.ok_or_else(|| wrong("has a malformed offset"))?;
    if shape.len() != strides.len() {
        return Err(wrong("has a different number of strides than sizes"));
    }
    let element = dtype.size();
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).and_then(|n| n.checked_mul(element));
    let bytes = count.ok_or_else(|| wrong("has more bytes than can be addressed"))?;
    arena.spend_tensor(bytes as u64)?;
    if bytes == 0 {
        return Ok(TensorData { dtype, shape, bytes: Vec::new() });
    }
    // Invariant: if the element farthest from the start is in the storage, all elements are.
    let last =
        shape.iter().zip(&strides).try_fold(offset, |at, (d, s)| at.checked_add(s.checked_mul(d - 1)?));
    let end = last.and_then(|at| at.checked_add(1)).and_then(|n| n.checked_mul(element));
    let end = end.ok_or_else(|| wrong("extends beyond its storage"))?;
    let data = arena.storages.read(key, element)?;
    arena.spend_tensor(data.len() as u64)?;
    if end > data.len() {
        return Err(wrong(&format!("has {} bytes, but a tensor needs {end}", data.len())));
    }
    let bytes = if is_contiguous(&shape, &strides) {
        if offset == 0 && bytes == data.len() { data } else { data[offset * element..][..bytes].to_vec() }
    } else {
        gather(&data, &shape, &strides, offset, element, bytes)
    };
    Ok(TensorData { dtype, shape, bytes })
}

/// Reads `('storage', class, key, device, elements)`: the key and the element type. Before version 1.6 a sixth item
/// says if the storage is a part of another.
fn storage_reference<'a>(arena: &Arena<'a>, id: Id) -> Result<(&'a str, DType), Problem> {
    let Node::Persistent(reference) = arena.nodes[id] else {
        return Err(malformed("does not point to a storage"));
    };
    let [tag, class, key, ref others @ ..] = *arena.items(reference) else {
        return Err(malformed("points to a malformed storage"));
    };
    if others.get(2).is_some_and(|part| !matches!(arena.nodes[*part], Node::None)) {
        return Err(Problem::Unsupported("a tensor in a part of a storage".to_owned()));
    }
    let (Some("storage"), Some(class), Some(key)) = (arena.text(tag), arena.class(class), arena.text(key))
    else {
        return Err(malformed("points to a malformed storage"));
    };
    let dtype = storage_dtype(class).ok_or_else(|| {
        Problem::Unsupported(match class.contains("Complex") {
            true => "a tensor of complex numbers".to_owned(),
            false => format!("a tensor in a {class}"),
        })
    })?;
    Ok((key, dtype))
}

fn malformed(reason: &str) -> Problem {
    Problem::Tensor { key: "(without a key)".to_owned(), reason: reason.to_owned() }
}
