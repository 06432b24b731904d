//! Turns the arena of a pickle into a [`Value`] that owns its parts. An arena can share a node a
//! million times or put a list into itself; a tree cannot, so depth, members, text and the bytes
//! of tensors are counted here, and too much of any is refused.

use super::machine::{Id, Node};
use super::{MAX_DEPTH, Storages, tensor};
use crate::error::Problem;
use crate::value::Value;

/// Values in one file. YOLOv5's largest checkpoints have under 200,000.
const MAX_VALUES: usize = 4 << 20;

/// Bytes of text in one file, repetitions counted.
const MAX_TEXT: usize = 256 << 20;

pub(super) fn value(nodes: &[Node], root: Id, storages: &mut dyn Storages) -> Result<Value, Problem> {
    let tensor_bytes = storages.budget();
    Builder { nodes, storages, depth: 0, values: MAX_VALUES, text: MAX_TEXT, tensor_bytes }.value(root)
}

/// A walk over an arena.
pub(super) struct Builder<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) storages: &'a mut dyn Storages,
    depth: usize,
    values: usize,
    text: usize,
    tensor_bytes: u64,
}

impl Builder<'_> {
    pub(super) fn value(&mut self, id: Id) -> Result<Value, Problem> {
        if self.depth == MAX_DEPTH {
            return Err(Problem::Limit(format!(
                "nests values more than {MAX_DEPTH} deep, or one within itself"
            )));
        }
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| Problem::Limit(format!("holds more than {MAX_VALUES} values")))?;
        self.depth += 1;
        let value = self.inner(id);
        self.depth -= 1;
        value
    }

    fn inner(&mut self, id: Id) -> Result<Value, Problem> {
        let nodes = self.nodes;
        Ok(match &nodes[id] {
            Node::None => Value::None,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Float(value) => Value::Float(*value),
            Node::Str(text) => {
                self.spend_text(text.len())?;
                Value::Str(text.clone())
            }
            Node::Bytes(bytes) => {
                self.spend_text(bytes.len())?;
                Value::Bytes(bytes.clone())
            }
            Node::BigInt(bytes) => {
                self.spend_text(bytes.len())?;
                Value::Object {
                    class: "builtins.int".to_owned(),
                    fields: vec![("little_endian".to_owned(), Value::Bytes(bytes.clone()))],
                }
            }
            Node::List(items) => Value::List(self.values(items)?),
            Node::Tuple(items) => Value::Tuple(self.values(items)?),
            Node::Dict(pairs) => {
                let mut entries = Vec::new();
                for (key, value) in pairs {
                    entries.push((self.value(*key)?, self.value(*value)?));
                }
                Value::Dict(entries)
            }
            Node::Class(class, _) => {
                self.spend_text(class.len())?;
                Value::Object { class: class.to_string(), fields: Vec::new() }
            }
            Node::Persistent(_) => Value::Object { class: "torch.storage".to_owned(), fields: Vec::new() },
            Node::Call { class, args, states } => match tensor::special(self, class, *args, states)? {
                Some(value) => value,
                None => self.object(class, *args, states)?,
            },
        })
    }

    fn values(&mut self, items: &[Id]) -> Result<Vec<Value>, Problem> {
        items.iter().map(|item| self.value(*item)).collect()
    }

    fn object(&mut self, class: &str, args: Id, states: &[Id]) -> Result<Value, Problem> {
        self.spend_text(class.len())?;
        let mut fields = Vec::new();
        if !self.items(args).is_empty() {
            fields.push(("args".to_owned(), self.value(args)?));
        }
        for state in states {
            // Python gives `__setstate__` a dict, or a pair of dicts when the class has slots.
            let nodes = self.nodes;
            let parts: &[Id] = match &nodes[*state] {
                Node::Tuple(parts) => parts,
                _ => std::slice::from_ref(state),
            };
            for part in parts {
                match self.value(*part)? {
                    Value::Dict(entries) => {
                        for (key, value) in entries {
                            if let Value::Str(key) = key {
                                fields.push((key, value));
                            }
                        }
                    }
                    Value::None => {}
                    other => fields.push(("state".to_owned(), other)),
                }
            }
        }
        Ok(Value::Object { class: class.to_owned(), fields })
    }

    /// The members of a tuple, or nothing.
    pub(super) fn items(&self, id: Id) -> &[Id] {
        if let Node::Tuple(items) = &self.nodes[id] { items } else { &[] }
    }

    pub(super) fn text(&self, id: Id) -> Option<&str> {
        if let Node::Str(text) = &self.nodes[id] { Some(text) } else { None }
    }

    pub(super) fn int(&self, id: Id) -> Option<i64> {
        if let Node::Int(value) = &self.nodes[id] { Some(*value) } else { None }
    }

    /// Takes bytes of tensors from the file's budget.
    pub(super) fn spend_tensor(&mut self, bytes: u64) -> Result<(), Problem> {
        self.tensor_bytes = self.tensor_bytes.checked_sub(bytes).ok_or_else(|| {
            Problem::Limit("asks for many times more bytes of tensors than the file holds".to_owned())
        })?;
        Ok(())
    }

    fn spend_text(&mut self, bytes: usize) -> Result<(), Problem> {
        self.text = self
            .text
            .checked_sub(bytes)
            .ok_or_else(|| Problem::Limit(format!("holds more than {MAX_TEXT} bytes of text")))?;
        Ok(())
    }
}
