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
mod stream;
mod strided;
mod tensor;
pub(crate) mod writer;

use super::error::Problem;
use super::value::Value;

pub(crate) use classes::is_notorious;

/// The deepest nesting of values. A YOLOv5 checkpoint has 30 levels. Recursion to this depth fits the
/// smallest stack of a thread.
pub(crate) const MAX_DEPTH: usize = 200;

/// The storages of tensors, which are outside the pickle.
pub(crate) trait Storages {
    /// All bytes of the storage, in little-endian order for elements of `element` bytes.
    fn read(&mut self, key: &str, element: usize) -> Result<Vec<u8>, Problem>;

    /// How many tensor bytes the pickle may request in total. More than a few times the size of the
    /// file is an attack on memory.
    fn budget(&self) -> u64;
}

/// For a pickle without tensors.
pub(crate) struct NoStorages;

impl Storages for NoStorages {
    fn read(&mut self, key: &str, _element: usize) -> Result<Vec<u8>, Problem> {
        Err(Problem::Tensor { key: key.to_owned(), reason: "is not in the file".to_owned() })
    }

    fn budget(&self) -> u64 {
        64 << 20
    }
}

/// Reads one pickle.
pub(crate) fn load(bytes: &[u8], storages: &mut dyn Storages) -> Result<Value, Problem> {
    let (nodes, root) = machine::run(bytes)?;
    rebuild::value(&nodes, root, storages)
}
