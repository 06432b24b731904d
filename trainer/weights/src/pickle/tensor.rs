//! The classes that stand for data: PyTorch's tensors (a view of a storage outside the pickle),
//! NumPy's arrays and scalars, bytes, and paths. Sizes and strides come from the file, so each is
//! checked against the storage before a byte is copied.

use super::machine::{Id, Node};
use super::rebuild::Builder;
use crate::error::Problem;
use crate::value::{DType, TensorData, Value};

/// A PyTorch element type by its name after `torch.`.
pub(super) fn dtype(name: &str) -> Option<DType> {
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

/// NumPy's scalar types, as classes in the module `numpy`.
pub(super) fn is_numpy_type(name: &str) -> bool {
    matches!(
        name,
        "float64" | "float32" | "float16" | "int64" | "int32" | "int16" | "int8" | "uint8" | "bool_" | "bool"
    )
}

fn storage_dtype(class: &str) -> Option<DType> {
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

/// The value of a call that stands for data; none when it is an object like others.
pub(super) fn special(
    builder: &mut Builder<'_>,
    class: &str,
    args: Id,
    states: &[Id],
) -> Result<Option<Value>, Problem> {
    let items = builder.items(args).to_vec();
    Ok(Some(match class {
        "torch._utils._rebuild_tensor" | "torch._utils._rebuild_tensor_v2" => {
            Value::Tensor(torch_tensor(builder, &items, None)?)
        }
        "torch._utils._rebuild_tensor_v3" => {
            let dtype = items
                .get(6)
                .and_then(|id| class_name(builder, *id))
                .and_then(|name| dtype(name.strip_prefix("torch.")?));
            let dtype =
                dtype.ok_or_else(|| Problem::Unsupported("a tensor of an unknown type".to_owned()))?;
            Value::Tensor(torch_tensor(builder, &items, Some(dtype))?)
        }
        "torch._utils._rebuild_parameter"
        | "torch._utils._rebuild_parameter_with_state"
        | "torch.nn.parameter.Parameter" => match items.first() {
            Some(data) => builder.value(*data)?,
            None => return Ok(None),
        },
        "torch.Size" => match items.first() {
            Some(sizes) => builder.value(*sizes)?,
            None => Value::Tuple(Vec::new()),
        },
        "numpy.core.multiarray.scalar" | "numpy._core.multiarray.scalar" => numpy_scalar(builder, &items)?,
        "numpy.core.multiarray._reconstruct" | "numpy._core.multiarray._reconstruct" => {
            let Some(state) = states.last() else { return Ok(None) };
            // (version, shape, dtype, is Fortran order, bytes)
            match builder.items(*state).to_vec()[..] {
                [_, shape, dtype, fortran, data] => {
                    Value::Tensor(numpy_array(builder, shape, dtype, fortran, data)?)
                }
                _ => return Err(array("has a state of another form")),
            }
        }
        "numpy.core.numeric._frombuffer" | "numpy._core.numeric._frombuffer" => match items[..] {
            [data, dtype, shape, order] => {
                let order = if builder.text(order) == Some("F") { Some(order) } else { None };
                Value::Tensor(numpy_from(builder, shape, dtype, order.is_some(), data)?)
            }
            _ => return Err(array("has arguments of another form")),
        },
        "_codecs.encode"
        | "builtins.bytes"
        | "__builtin__.bytes"
        | "builtins.bytearray"
        | "__builtin__.bytearray" => Value::Bytes(bytes(builder, &items)?),
        _ if class.starts_with("pathlib.") => {
            let parts: Option<Vec<&str>> = items.iter().map(|id| builder.text(*id)).collect();
            match parts {
                // An absolute path begins with its root, which already ends in a separator.
                Some(parts) => Value::Str(parts.join("/").replacen("//", "/", 1)),
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

fn class_name<'b>(builder: &'b Builder<'_>, id: Id) -> Option<&'b str> {
    if let Node::Class(name, _) = &builder.nodes[id] { Some(name) } else { None }
}

fn torch_tensor(
    builder: &mut Builder<'_>,
    items: &[Id],
    dtype: Option<DType>,
) -> Result<TensorData, Problem> {
    let malformed =
        |reason: &str| Problem::Tensor { key: "(without a key)".to_owned(), reason: reason.to_owned() };
    let [storage, offset, size, stride, ..] = *items else {
        return Err(malformed("has too few arguments"));
    };
    // ('storage', class, key, device, elements)
    let Node::Persistent(storage) = builder.nodes[storage] else {
        return Err(malformed("does not point to a storage"));
    };
    let parts = builder.items(storage);
    let [tag, class, key, ..] = *parts else { return Err(malformed("points to a malformed storage")) };
    let (Some("storage"), Some(class), Some(key)) =
        (builder.text(tag), class_name(builder, class), builder.text(key))
    else {
        return Err(malformed("points to a malformed storage"));
    };
    let stored =
        storage_dtype(class).ok_or_else(|| Problem::Unsupported(format!("a tensor in a {class}")))?;
    let (key, dtype) = (key.to_owned(), dtype.unwrap_or(stored));
    let wrong = |reason: &str| Problem::Tensor { key: key.clone(), reason: reason.to_owned() };
    let shape = sizes(builder, size).ok_or_else(|| wrong("has a malformed size"))?;
    let strides = sizes(builder, stride).ok_or_else(|| wrong("has a malformed stride"))?;
    let offset = builder.int(offset).and_then(|n| usize::try_from(n).ok());
    let offset = offset.ok_or_else(|| wrong("has a malformed offset"))?;
    if shape.len() != strides.len() {
        return Err(wrong("has not as many strides as sizes"));
    }
    let element = dtype.size();
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).and_then(|n| n.checked_mul(element));
    let bytes = count.ok_or_else(|| wrong("is larger than memory can be"))?;
    builder.spend_tensor(bytes as u64)?;
    if bytes == 0 {
        return Ok(TensorData { dtype, shape, bytes: Vec::new() });
    }
    // The element farthest from the start must lie in the storage; then all do.
    let last =
        shape.iter().zip(&strides).try_fold(offset, |at, (d, s)| at.checked_add(s.checked_mul(d - 1)?));
    let end = last.and_then(|at| at.checked_add(1)).and_then(|n| n.checked_mul(element));
    let end = end.ok_or_else(|| wrong("reaches beyond its storage"))?;
    let data = builder.storages.read(&key, element)?;
    builder.spend_tensor(data.len() as u64)?;
    if end > data.len() {
        return Err(wrong(&format!("has {} bytes; a tensor needs {end}", data.len())));
    }
    let bytes = if is_contiguous(&shape, &strides) {
        if offset == 0 && bytes == data.len() { data } else { data[offset * element..][..bytes].to_vec() }
    } else {
        gather(&data, &shape, &strides, offset, element, bytes)
    };
    Ok(TensorData { dtype, shape, bytes })
}

fn sizes(builder: &Builder<'_>, id: Id) -> Option<Vec<usize>> {
    // A torch.Size is a call with the tuple as its argument.
    let id = match &builder.nodes[id] {
        Node::Call { class, args, .. } if **class == *"torch.Size" => *builder.items(*args).first()?,
        _ => id,
    };
    let (Node::Tuple(items) | Node::List(items)) = &builder.nodes[id] else { return None };
    if items.len() > 64 {
        return None;
    }
    items.iter().map(|item| usize::try_from(builder.int(*item)?).ok()).collect()
}

fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (size, stride) in shape.iter().zip(strides).rev() {
        if *size != 1 && *stride != expected {
            return false;
        }
        expected *= size;
    }
    true
}

/// Copies a strided view into contiguous rows. Every index was checked to lie in `data`.
fn gather(
    data: &[u8],
    shape: &[usize],
    strides: &[usize],
    offset: usize,
    element: usize,
    bytes: usize,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    let mut index = vec![0; shape.len()];
    let mut at = offset;
    while out.len() < bytes {
        out.extend_from_slice(&data[at * element..][..element]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

fn array(reason: &str) -> Problem {
    Problem::Tensor { key: "of a NumPy array".to_owned(), reason: reason.to_owned() }
}

/// `numpy.dtype('f8', False, True)` with the state `(3, '<', …)`.
fn numpy_dtype(builder: &Builder<'_>, id: Id) -> Result<(DType, bool), Problem> {
    let unsupported =
        |name: &str| Problem::Unsupported(format!("a NumPy array of type {}", name.escape_debug()));
    let Node::Call { class, args, states } = &builder.nodes[id] else { return Err(array("has no type")) };
    let Some(name) = builder.items(*args).first().and_then(|id| builder.text(*id)) else {
        return Err(unsupported(class));
    };
    let dtype = match name {
        "f8" => DType::F64,
        "f4" => DType::F32,
        "f2" => DType::F16,
        "i8" => DType::I64,
        "i4" => DType::I32,
        "i2" => DType::I16,
        "i1" => DType::I8,
        "u1" => DType::U8,
        "b1" => DType::Bool,
        _ => return Err(unsupported(name)),
    };
    let order = states.last().and_then(|state| builder.items(*state).get(1)).and_then(|id| builder.text(*id));
    Ok((dtype, order == Some(">")))
}

fn numpy_scalar(builder: &mut Builder<'_>, items: &[Id]) -> Result<Value, Problem> {
    let [dtype, data] = *items else { return Err(array("has arguments of another form")) };
    let (dtype, big) = numpy_dtype(builder, dtype)?;
    let mut bytes = raw(builder, data)?;
    if bytes.len() != dtype.size() {
        return Err(array("has another length than its type"));
    }
    if big {
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

fn numpy_array(
    builder: &mut Builder<'_>,
    shape: Id,
    dtype: Id,
    fortran: Id,
    data: Id,
) -> Result<TensorData, Problem> {
    let fortran = matches!(builder.nodes[fortran], Node::Bool(true));
    numpy_from(builder, shape, dtype, fortran, data)
}

fn numpy_from(
    builder: &mut Builder<'_>,
    shape: Id,
    dtype: Id,
    fortran: bool,
    data: Id,
) -> Result<TensorData, Problem> {
    let shape = sizes(builder, shape).ok_or_else(|| array("has a malformed shape"))?;
    let (dtype, big) = numpy_dtype(builder, dtype)?;
    let mut bytes = raw(builder, data)?;
    builder.spend_tensor(bytes.len() as u64)?;
    let count = shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
    if count != Some(bytes.len()) {
        return Err(array("has another length than its shape"));
    }
    if big {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if fortran && !bytes.is_empty() {
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

/// The bytes of an argument: protocol 2 writes them as `_codecs.encode(text, 'latin1')`.
fn raw(builder: &Builder<'_>, id: Id) -> Result<Vec<u8>, Problem> {
    match &builder.nodes[id] {
        Node::Bytes(bytes) => Ok(bytes.clone()),
        Node::Str(text) => latin1(text),
        Node::Call { args, .. } => bytes(builder, builder.items(*args)),
        _ => Err(array("has no bytes")),
    }
}

fn bytes(builder: &Builder<'_>, args: &[Id]) -> Result<Vec<u8>, Problem> {
    match args.first().map(|id| &builder.nodes[*id]) {
        None => Ok(Vec::new()),
        Some(Node::Str(text)) => latin1(text),
        Some(Node::Bytes(bytes)) => Ok(bytes.clone()),
        _ => Err(array("has no bytes")),
    }
}

fn latin1(text: &str) -> Result<Vec<u8>, Problem> {
    text.chars().map(|c| u8::try_from(c).map_err(|_| array("has text for bytes"))).collect()
}
