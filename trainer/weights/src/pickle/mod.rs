//! A reader for Python's pickle format, protocols 0 to 5 as far as PyTorch, NumPy and YOLOv5 use
//! them. A pickle is a program; this machine builds the data that the program describes and has
//! no instruction that calls anything. `machine` runs the stream into an arena of nodes,
//! `classes` is the allow-list of names, `rebuild` turns the arena into a `Value`, and `tensor`
//! turns what PyTorch and NumPy write into tensors.

mod classes;
mod machine;
mod opcode;
mod rebuild;
mod stream;
mod tensor;
pub(crate) mod writer;

use super::error::Problem;
use super::value::Value;

pub(crate) use classes::is_notorious;

/// How deep a value may nest. A YOLOv5 checkpoint nests 30 deep; recursion to this depth fits
/// the smallest stack of a thread.
pub(crate) const MAX_DEPTH: usize = 200;

/// The bytes that tensors point to by key; they lie outside the pickle.
pub(crate) trait Storages {
    /// All bytes of the storage, in little-endian order for elements of `element` bytes.
    fn read(&mut self, key: &str, element: usize) -> Result<Vec<u8>, Problem>;

    /// How many bytes of tensors the pickle may ask for in all: more than a few times the
    /// file's own size is an attack on memory.
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
