//! Writes a [`Value`] as a pickle of protocol 2 that PyTorch opens with `weights_only=True`: plain values,
//! `collections.OrderedDict` for state dicts, and `torch._utils._rebuild_tensor_v2` with typed storages.
//! The bytes of tensors are collected separately, one storage per tensor. Modules of a network are objects, which only
//! `weights_only=False` opens, so they are written if the caller asks for them.

use super::classes::is_module;
use super::dtype::storage_class;
use super::node::MAX_DEPTH;
use super::opcode as op;
use crate::error::Problem;
use crate::value::{TensorData, Value};

/// What is done with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objects {
    /// Refused: the file shall open with `weights_only=True`.
    Refused,
    /// Modules of a network are written, and others refused.
    Modules,
}

/// A pickle, and the tensors whose bytes are the storages `0`, `1`, ….
pub(crate) struct Pickled<'a> {
    pub(crate) stream: Vec<u8>,
    pub(crate) storages: Vec<&'a TensorData>,
    objects: Objects,
}

pub(crate) fn pickle(root: &Value, objects: Objects) -> Result<Pickled<'_>, Problem> {
    let mut pickled = Pickled { stream: vec![op::PROTO, 2], storages: Vec::new(), objects };
    pickled.value(root, 0)?;
    pickled.stream.push(op::STOP);
    Ok(pickled)
}

impl<'a> Pickled<'a> {
    fn value(&mut self, value: &'a Value, depth: usize) -> Result<(), Problem> {
        if depth == MAX_DEPTH {
            return Err(Problem::Unwritable(format!("values nest more than {MAX_DEPTH} deep")));
        }
        match value {
            Value::None => self.stream.push(op::NONE),
            Value::Bool(true) => self.stream.push(op::NEWTRUE),
            Value::Bool(false) => self.stream.push(op::NEWFALSE),
            Value::Int(number) => self.int(*number),
            Value::Float(number) => {
                self.stream.push(op::BINFLOAT);
                self.stream.extend(number.to_be_bytes());
            }
            Value::Str(text) => self.text(text)?,
            Value::Bytes(bytes) => {
                // Protocol 2 has no bytes; this is how Python writes them.
                self.global("_codecs", "encode");
                self.text(&bytes.iter().map(|b| char::from(*b)).collect::<String>())?;
                self.text("latin1")?;
                self.stream.extend([op::TUPLE2, op::REDUCE]);
            }
            Value::List(items) => {
                self.stream.extend([op::EMPTY_LIST, op::MARK]);
                for item in items {
                    self.value(item, depth + 1)?;
                }
                self.stream.push(op::APPENDS);
            }
            Value::Tuple(items) => {
                self.stream.push(op::MARK);
                for item in items {
                    self.value(item, depth + 1)?;
                }
                self.stream.push(op::TUPLE);
            }
            Value::Dict(entries) => {
                if is_state_dict(entries) {
                    self.ordered_dict();
                } else {
                    self.stream.push(op::EMPTY_DICT);
                }
                self.entries(entries, depth, Self::value)?;
            }
            Value::Tensor(tensor) => self.tensor(tensor)?,
            Value::Object { class, fields } => self.object(class, fields, depth)?,
        }
        Ok(())
    }

    /// The entries of the dict on the stack, with values as `write` writes them.
    fn entries(
        &mut self,
        entries: &'a [(Value, Value)],
        depth: usize,
        write: impl Fn(&mut Self, &'a Value, usize) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.stream.push(op::MARK);
        for (key, value) in entries {
            if matches!(key, Value::List(_) | Value::Dict(_) | Value::Tensor(_) | Value::Object { .. }) {
                return Err(Problem::Unwritable("a dict has a key that Python cannot hash".to_owned()));
            }
            self.value(key, depth + 1)?;
            write(self, value, depth + 1)?;
        }
        self.stream.push(op::SETITEMS);
        Ok(())
    }

    /// A module: Python makes an object of the class without calling its constructor, and gives it these attributes.
    fn object(&mut self, class: &str, fields: &'a [(String, Value)], depth: usize) -> Result<(), Problem> {
        if self.objects == Objects::Refused {
            return Err(Problem::Unwritable(format!(
                "it contains a `{class}`, but only plain values and tensors can be opened with weights_only=True"
            )));
        }
        let Some((module, name)) = class.rsplit_once('.').filter(|(module, name)| is_module(module, name))
        else {
            return Err(Problem::Unwritable(format!(
                "it contains a `{class}`, which is no module of a network"
            )));
        };
        self.global(module, name);
        self.stream.extend([op::EMPTY_TUPLE, op::NEWOBJ, op::EMPTY_DICT, op::MARK]);
        for (key, value) in fields {
            self.text(key)?;
            // The reader counts a level for the attributes, and one for each of them.
            self.attribute(key, value, depth + 2)?;
        }
        self.stream.extend([op::SETITEMS, op::BUILD]);
        Ok(())
    }

    /// An attribute of a module, in the type that PyTorch expects: hooks, tensors and children are in `OrderedDict`s.
    fn attribute(&mut self, key: &str, value: &'a Value, depth: usize) -> Result<(), Problem> {
        match value {
            Value::Dict(entries) if key.starts_with('_') => {
                self.ordered_dict();
                match key {
                    "_parameters" => self.entries(entries, depth, Self::parameter),
                    _ => self.entries(entries, depth, Self::value),
                }
            }
            Value::List(_) if key == "_non_persistent_buffers_set" => {
                self.global("__builtin__", "set");
                self.value(value, depth)?;
                self.stream.extend([op::TUPLE1, op::REDUCE]);
                Ok(())
            }
            _ => self.value(value, depth),
        }
    }

    /// A tensor as a parameter without a gradient, as YOLOv5 leaves the parameters of a finished run.
    fn parameter(&mut self, value: &'a Value, depth: usize) -> Result<(), Problem> {
        if !matches!(value, Value::Tensor(_)) {
            return self.value(value, depth);
        }
        self.global("torch._utils", "_rebuild_parameter");
        self.stream.push(op::MARK);
        self.value(value, depth + 1)?;
        self.stream.push(op::NEWFALSE);
        self.ordered_dict();
        self.stream.extend([op::TUPLE, op::REDUCE]);
        Ok(())
    }

    fn tensor(&mut self, tensor: &'a TensorData) -> Result<(), Problem> {
        let elements = tensor.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if elements.and_then(|n| n.checked_mul(tensor.dtype.size())) != Some(tensor.bytes.len()) {
            return Err(Problem::Unwritable(format!(
                "a tensor of shape {:?} has {} bytes of {:?}",
                tensor.shape,
                tensor.bytes.len(),
                tensor.dtype
            )));
        }
        self.global("torch._utils", "_rebuild_tensor_v2");
        self.stream.extend([op::MARK, op::MARK]);
        self.text("storage")?;
        self.global("torch", storage_class(tensor.dtype));
        self.text(&self.storages.len().to_string())?;
        self.text("cpu")?;
        self.size(tensor.elements());
        self.stream.extend([op::TUPLE, op::BINPERSID]);
        self.storages.push(tensor);
        self.int(0);
        self.stream.push(op::MARK);
        for size in &tensor.shape {
            self.size(*size);
        }
        self.stream.extend([op::TUPLE, op::MARK]);
        for axis in 0..tensor.shape.len() {
            // PyTorch computes strides as if an empty axis had one element.
            self.size(tensor.shape[axis + 1..].iter().map(|size| (*size).max(1)).product());
        }
        self.stream.extend([op::TUPLE, op::NEWFALSE]);
        self.ordered_dict();
        self.stream.extend([op::TUPLE, op::REDUCE]);
        Ok(())
    }

    fn ordered_dict(&mut self) {
        self.global("collections", "OrderedDict");
        self.stream.extend([op::EMPTY_TUPLE, op::REDUCE]);
    }

    fn global(&mut self, module: &str, name: &str) {
        self.stream.push(op::GLOBAL);
        self.stream.extend(format!("{module}\n{name}\n").into_bytes());
    }

    fn text(&mut self, text: &str) -> Result<(), Problem> {
        let length = u32::try_from(text.len())
            .map_err(|_| Problem::Unwritable("a text is longer than 4 GiB".to_owned()))?;
        self.stream.push(op::BINUNICODE);
        self.stream.extend(length.to_le_bytes());
        self.stream.extend(text.as_bytes());
        Ok(())
    }

    fn size(&mut self, size: usize) {
        // A size in memory is below 2⁶³.
        self.int(i64::try_from(size).unwrap_or(i64::MAX));
    }

    fn int(&mut self, number: i64) {
        if let Ok(number) = i32::try_from(number) {
            self.stream.push(op::BININT);
            self.stream.extend(number.to_le_bytes());
        } else {
            self.stream.extend([op::LONG1, 8]);
            self.stream.extend(number.to_le_bytes());
        }
    }
}

fn is_state_dict(entries: &[(Value, Value)]) -> bool {
    !entries.is_empty() && entries.iter().all(|(k, v)| matches!((k, v), (Value::Str(_), Value::Tensor(_))))
}
