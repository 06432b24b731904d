//! Where the bytes of tensors come from: they are outside the pickle.

use crate::error::Problem;

/// The storages of tensors, which are outside the pickle.
pub(crate) trait Storages {
    /// All bytes of the storage, in little-endian order for elements of `element` bytes.
    fn read(&mut self, key: &str, element: usize) -> Result<Vec<u8>, Problem>;

    /// How many tensor bytes the pickle may request in total. More than a few times the size of the
    /// file is an attack on memory.
    fn budget(&self) -> u64;
}

/// The tensor bytes that a file of `length` bytes may request. Each tensor counts as itself and as its storage, and
/// tensors can share a storage.
pub(crate) fn budget(length: u64) -> u64 {
    length.saturating_mul(8) + (64 << 20)
}

/// Converts elements of `element` bytes from big-endian to little-endian order.
pub(crate) fn reverse_elements(bytes: &mut [u8], element: usize) {
    if element > 1 {
        bytes.chunks_exact_mut(element).for_each(<[u8]>::reverse);
    }
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
