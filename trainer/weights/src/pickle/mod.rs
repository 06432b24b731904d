//! Reads Python's pickle format, protocols 0 to 5 as far as PyTorch, NumPy and YOLOv5 use them.
//! Invariant: nothing in a pickle is ever executed. `machine` runs its instructions, none of which
//! calls anything, and builds nodes; `classes` is the allow-list of names; `rebuild` turns the nodes
//! into a `Value`, with `known` for calls that stand for data, such as tensors.

mod arena;
mod classes;
mod dtype;
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

use super::error::Problem;
use super::value::Value;

pub(crate) use classes::is_notorious;
pub(crate) use storages::{NoStorages, Storages};

/// Reads one pickle.
pub(crate) fn load(bytes: &[u8], storages: &mut dyn Storages) -> Result<Value, Problem> {
    let (nodes, root) = machine::run(bytes)?;
    rebuild::value(&nodes, root, storages)
}
