//! PyTorch's format before version 1.6, which `torch.save` still writes on request: five pickles one after the other (a
//! number that marks the format, its version, facts about the machine, the value, the keys of its storages), then the
//! storages. Unlike those of a zip archive, they have no index, so the value's own references say how long each is.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::Problem;
use crate::pickle::{self, Followed, NoStorages, Pickle, Storages};
use crate::value::{DType, Value};

/// 0x1950a86a20f9469cfc6c, with which such a file begins, as a pickle writes it.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
/// The only version of the format.
const VERSION: i64 = 1001;
/// Number that marks the format, version, machine, value, keys of the storages.
const PICKLES: usize = 5;
/// The longest pickle, as in zip archives.
const MAX_PICKLE: usize = 64 << 20;

/// Whether a file with this beginning has the format.
pub(crate) fn is_legacy(head: &[u8]) -> bool {
    // A pickle begins with its protocol, and newer ones then with the length of a frame.
    let head = &head[..head.len().min(32)];
    head.first() == Some(&0x80) && head.windows(MAGIC.len()).any(|part| part == MAGIC)
}

/// Reads a whole file.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Problem> {
    let mut file = Sections { bytes, at: 0 };
    file.pickle()?;
    let version = file.pickle()?.value(&mut NoStorages)?;
    if version != Value::Int(VERSION) {
        return Err(Problem::Unsupported("an unknown version of PyTorch's old format".to_owned()));
    }
    let machine = file.pickle()?.value(&mut NoStorages)?;
    let root = file.pickle()?;
    let keys = file.pickle()?.value(&mut NoStorages)?;
    let types: HashMap<&str, DType> = root.storages().collect();
    let mut ranges = HashMap::new();
    for key in keys.as_slice().unwrap_or_default() {
        let wrong =
            |key: &str, reason: &str| Problem::Tensor { key: key.to_owned(), reason: reason.to_owned() };
        let key = key.as_str().ok_or_else(|| wrong("(without a key)", "is not named by text"))?;
        let dtype = types.get(key).ok_or_else(|| wrong(key, "belongs to no tensor"))?;
        ranges.insert(key.to_owned(), file.storage(dtype.size())?);
    }
    let big_endian = machine.get("little_endian") == Some(&Value::Bool(false));
    root.value(&mut Found { bytes, ranges, big_endian })
}

/// Follows the five pickles of a file, as far as they can be followed.
pub(crate) fn follow(bytes: &[u8]) -> Vec<Followed> {
    let mut file = Sections { bytes, at: 0 };
    let mut pickles = Vec::new();
    for _ in 0..PICKLES {
        let followed = pickle::follow(file.rest());
        file.at += followed.length;
        let is_last = followed.problem.is_some();
        pickles.push(followed);
        if is_last {
            break;
        }
    }
    pickles
}

/// The parts of a file, read one after the other.
struct Sections<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Sections<'a> {
    /// What the next pickle can be.
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..self.bytes.len().min(self.at.saturating_add(MAX_PICKLE))]
    }

    fn pickle(&mut self) -> Result<Pickle, Problem> {
        let (pickle, length) = Pickle::run(self.rest())?;
        self.at += length;
        Ok(pickle)
    }

    /// The place of the next storage, whose elements have `element` bytes: their number in 8 bytes, then they.
    fn storage(&mut self, element: usize) -> Result<Range<usize>, Problem> {
        let rest = &self.bytes[self.at..];
        let length =
            rest.first_chunk().and_then(|count| u64::from_le_bytes(*count).checked_mul(element as u64));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let start = self.at + size_of::<u64>();
        let end = length.and_then(|length| start.checked_add(length)).filter(|end| *end <= self.bytes.len());
        self.at = end.ok_or(Problem::TensorsEnd(self.bytes.len() as u64))?;
        Ok(start..self.at)
    }
}

/// The storages of a file.
struct Found<'a> {
    bytes: &'a [u8],
    ranges: HashMap<String, Range<usize>>,
    big_endian: bool,
}

impl Storages for Found<'_> {
    fn read(&mut self, key: &str, element: usize) -> Result<Vec<u8>, Problem> {
        let missing = || Problem::Tensor { key: key.to_owned(), reason: "is not in the file".to_owned() };
        let range = self.ranges.get(key).ok_or_else(missing)?;
        let mut bytes = self.bytes[range.clone()].to_vec();
        if self.big_endian {
            pickle::reverse_elements(&mut bytes, element);
        }
        Ok(bytes)
    }

    fn budget(&self) -> u64 {
        pickle::budget(self.bytes.len() as u64)
    }
}
