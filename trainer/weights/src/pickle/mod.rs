//! Reads Python's pickle format, protocols 0 to 5 as far as PyTorch, NumPy and YOLOv5 use them.
//! Invariant: nothing in a pickle is ever executed. `machine` runs its instructions, none of which
//! calls anything, and builds nodes; `classes` is the allow-list of names; `rebuild` turns the nodes
//! into a `Value`, with `known` for calls that stand for data, such as tensors.

mod arena;
mod classes;
mod dtype;
mod followed;
mod known;
mod machine;
mod node;
mod numpy;
mod opcode;
mod rebuild;
mod storages;
mod stream;
mod strided;
mod tensor;
pub(crate) mod writer;

use self::dtype::storage_dtype;
use self::node::{Id, Node};
use super::error::Problem;
use super::value::{DType, Value};

pub(crate) use classes::is_notorious;
pub(crate) use followed::Followed;
pub(crate) use storages::{NoStorages, Storages, budget, reverse_elements};

/// A pickle whose instructions have run, but whose tensors are not read yet.
pub(crate) struct Pickle {
    nodes: Vec<Node>,
    root: Id,
}

impl Pickle {
    /// Runs the pickle at the beginning of `bytes`, and returns it with its length.
    pub(crate) fn run(bytes: &[u8]) -> Result<(Self, usize), Problem> {
        let (nodes, root, length) = machine::run(bytes)?;
        Ok((Self { nodes, root }, length))
    }

    /// The key and the element type of each storage that it refers to. One can appear several times.
    pub(crate) fn storages(&self) -> impl Iterator<Item = (&str, DType)> {
        self.nodes.iter().filter_map(|node| {
            let Node::Persistent(reference) = node else { return None };
            let Node::Tuple(items) = &self.nodes[*reference] else { return None };
            let [_, class, key, ..] = items[..] else { return None };
            match (&self.nodes[class], &self.nodes[key]) {
                (Node::Class(class, _), Node::Str(key)) => Some((&**key, storage_dtype(class)?)),
                _ => None,
            }
        })
    }

    /// Its value, with tensors read from `storages`.
    pub(crate) fn value(&self, storages: &mut dyn Storages) -> Result<Value, Problem> {
        rebuild::value(&self.nodes, self.root, storages)
    }
}

/// Follows the pickle at the beginning of `bytes`, also past names that are not on the allow-list.
pub(crate) fn follow(bytes: &[u8]) -> Followed {
    machine::follow(bytes)
}

/// Reads one pickle.
pub(crate) fn load(bytes: &[u8], storages: &mut dyn Storages) -> Result<Value, Problem> {
    Pickle::run(bytes)?.0.value(storages)
}
