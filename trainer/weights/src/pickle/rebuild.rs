//! Turns the nodes of a pickle into a [`Value`], a tree that owns its parts. Nodes can share
//! members or contain themselves, which a tree cannot, so depth and size are limited.

use super::arena::Arena;
use super::known::{Known, known};
use super::node::MAX_DEPTH;
use super::node::{Id, Node};
use super::storages::Storages;
use crate::error::Problem;
use crate::value::Value;

/// Values per file. YOLOv5's largest checkpoints have fewer than 200,000.
const MAX_VALUES: usize = 4 << 20;

pub(super) fn value(nodes: &[Node], root: Id, storages: &mut dyn Storages) -> Result<Value, Problem> {
    Builder { arena: Arena::new(nodes, storages), depth: 0, values: MAX_VALUES }.value(root)
}

struct Builder<'a> {
    arena: Arena<'a>,
    depth: usize,
    values: usize,
}

impl Builder<'_> {
    fn value(&mut self, id: Id) -> Result<Value, Problem> {
        if self.depth == MAX_DEPTH {
            return Err(Problem::Limit(format!(
                "nests values more than {MAX_DEPTH} deep, or one within itself"
            )));
        }
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| Problem::Limit(format!("has more than {MAX_VALUES} values")))?;
        self.depth += 1;
        let value = self.inner(id);
        self.depth -= 1;
        value
    }

    fn inner(&mut self, id: Id) -> Result<Value, Problem> {
        let nodes = self.arena.nodes;
        Ok(match &nodes[id] {
            Node::None => Value::None,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Float(value) => Value::Float(*value),
            Node::Str(text) => {
                self.arena.spend_text(text.len())?;
                Value::Str(text.clone())
            }
            Node::Bytes(bytes) => {
                self.arena.spend_text(bytes.len())?;
                Value::Bytes(bytes.clone())
            }
            Node::BigInt(bytes) => {
                self.arena.spend_text(bytes.len())?;
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
                self.arena.spend_text(class.len())?;
                Value::Object { class: class.to_string(), fields: Vec::new() }
            }
            Node::Persistent(_) => Value::Object { class: "torch.storage".to_owned(), fields: Vec::new() },
            Node::Call { class, args, states } => match known(&mut self.arena, class, *args, states)? {
                Known::Value(value) => value,
                Known::SameAs(id) => self.value(id)?,
                Known::No => self.object(class, *args, states)?,
            },
        })
    }

    fn values(&mut self, items: &[Id]) -> Result<Vec<Value>, Problem> {
        items.iter().map(|item| self.value(*item)).collect()
    }

    fn object(&mut self, class: &str, args: Id, states: &[Id]) -> Result<Value, Problem> {
        self.arena.spend_text(class.len())?;
        let mut fields = Vec::new();
        if !self.arena.items(args).is_empty() {
            fields.push(("args".to_owned(), self.value(args)?));
        }
        for state in states {
            // Python passes `__setstate__` a dict, or a pair of dicts if the class has slots.
            let nodes = self.arena.nodes;
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
}
