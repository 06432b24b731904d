//! Writes checkpoints in PyTorch's zip layout, which `torch.load(path, weights_only=True)` opens. Records
//! start at multiples of 64 bytes, as in PyTorch, so that they can be mapped into memory. All sizes are
//! known before the first byte is written, so the writer streams, and a message about a full disk can
//! say how much space is needed.

use std::io::{self, Write};
use std::path::Path;

use crate::atomic;
use crate::error::{Problem, WeightsError};
use crate::pickle::writer::{Objects, pickle};
use crate::value::Value;

/// Writes a value as a `.pt` file. The file is replaced atomically: after a kill or on a full disk, the
/// old file is still there.
///
/// A dict with text keys and only tensors as values is written as an `OrderedDict`.
///
/// # Errors
/// If the value contains an object or a malformed tensor, the folder is not writable, or the disk is
/// full. An existing file is then unchanged.
pub fn write_pt(path: &Path, root: &Value) -> Result<(), WeightsError> {
    with_records(root, Objects::Refused, |length, records| {
        atomic::replace(path, length, |file| archive(file, records))
    })
    .map_err(|problem| WeightsError::new(path, problem))
}

/// The bytes of the file that [`write_pt`] would write. `name` is the file in an error.
///
/// # Errors
/// If the value contains an object or a malformed tensor.
pub fn encode(root: &Value, name: &Path) -> Result<Vec<u8>, WeightsError> {
    bytes(root, Objects::Refused, name)
}

/// The bytes of a file with modules of PyTorch and YOLOv5 as Python objects, as YOLOv5's checkpoints have them.
///
/// A module is a [`Value::Object`] whose fields are its attributes. In those that begin with an underscore, dicts become
/// `OrderedDict`s, and the tensors of `_parameters` become parameters. Python opens the file with `weights_only=False`
/// where it can import the classes. Attributes that PyTorch itself adds to modules from older versions, such as
/// `_is_full_backward_hook`, may be missing.
///
/// # Errors
/// If the value contains an object that is no such module, or a malformed tensor.
pub fn encode_modules(root: &Value, name: &Path) -> Result<Vec<u8>, WeightsError> {
    bytes(root, Objects::Modules, name)
}

fn bytes(root: &Value, objects: Objects, name: &Path) -> Result<Vec<u8>, WeightsError> {
    with_records(root, objects, |length, records| {
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        archive(&mut bytes, records).map_err(|source| Problem::Io { doing: "written", source })?;
        Ok(bytes)
    })
    .map_err(|problem| WeightsError::new(name, problem))
}

/// Calls `write` with the records of a file for this value and the length of the file.
fn with_records<T>(
    root: &Value,
    objects: Objects,
    write: impl FnOnce(u64, &[(String, &[u8])]) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let pickled = pickle(root, objects)?;
    let mut records: Vec<(String, &[u8])> =
        vec![("data.pkl".to_owned(), &pickled.stream), ("byteorder".to_owned(), b"little")];
    let storages = pickled.storages.iter().enumerate();
    records.extend(storages.map(|(key, tensor)| (format!("data/{key}"), tensor.bytes.as_slice())));
    // 3: the version of the layout, as torch.save writes it.
    records.push(("version".to_owned(), b"3\n"));
    let mut length = Counter(0);
    // Counting bytes cannot fail.
    archive(&mut length, &records).map_err(|source| Problem::Io { doing: "written", source })?;
    write(length.0, &records)
}

/// Records start at multiples of this.
const ALIGNMENT: u64 = 64;

/// The folder in the archive. PyTorch accepts any name.
const FOLDER: &str = "archive";

/// The fixed size of a local header (PKWARE APPNOTE 4.3).
const LOCAL: u64 = 30;
const U32_MAX: u64 = 0xffff_ffff;

/// Counts the bytes written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a zip archive of stored records, with 64-bit fields where needed.
fn archive(out: &mut dyn Write, records: &[(String, &[u8])]) -> io::Result<()> {
    let mut at = 0u64;
    let mut directory = Vec::new();
    for (name, bytes) in records {
        let name = format!("{FOLDER}/{name}");
        let size = bytes.len() as u64;
        let crc = crc32fast::hash(bytes);
        let wide_size =
            if size >= U32_MAX { [size.to_le_bytes(), size.to_le_bytes()].concat() } else { Vec::new() };
        let mut extra = zip64_field(&wide_size);
        // The padding is a field `FB`, as in PyTorch's writer.
        let unpadded = at + LOCAL + (name.len() + extra.len()) as u64 + 4;
        let padding = (ALIGNMENT - unpadded % ALIGNMENT) % ALIGNMENT;
        extra.extend(b"FB");
        extra.extend((padding as u16).to_le_bytes());
        extra.extend(std::iter::repeat_n(b'Z', padding as usize));

        let mut header = b"PK\x03\x04".to_vec();
        header.extend(common(&name, size, crc, extra.len(), !wide_size.is_empty()));
        header.extend(name.as_bytes());
        header.extend(extra);

        let mut wide = wide_size;
        if at >= U32_MAX {
            wide.extend(at.to_le_bytes());
        }
        let extra = zip64_field(&wide);
        directory.extend(b"PK\x01\x02\x2d\x00");
        directory.extend(common(&name, size, crc, extra.len(), !wide.is_empty()));
        directory.extend([0; 10]); // comment, disk, attributes
        directory.extend((at.min(U32_MAX) as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        directory.extend(extra);

        out.write_all(&header)?;
        out.write_all(bytes)?;
        at += header.len() as u64 + size;
    }
    out.write_all(&directory)?;
    out.write_all(&end(records.len() as u64, at, directory.len() as u64))
}

/// The fields that a local header and a directory entry share, from version to lengths.
fn common(name: &str, size: u64, crc: u32, extra: usize, zip64: bool) -> Vec<u8> {
    let mut fields = Vec::with_capacity(26);
    fields.extend(if zip64 { 45u16 } else { 20 }.to_le_bytes());
    fields.extend([0; 4]); // flags, stored
    fields.extend([0, 0, 0x21, 0]); // 1980-01-01, so that equal checkpoints give equal files
    fields.extend(crc.to_le_bytes());
    let size = (size.min(U32_MAX) as u32).to_le_bytes();
    fields.extend(size);
    fields.extend(size);
    fields.extend((name.len() as u16).to_le_bytes());
    fields.extend((extra as u16).to_le_bytes());
    fields
}

fn zip64_field(values: &[u8]) -> Vec<u8> {
    if values.is_empty() {
        return Vec::new();
    }
    [&[1, 0], &(values.len() as u16).to_le_bytes()[..], values].concat()
}

/// The end of the archive: the 64-bit records if needed, then the classic one.
fn end(entries: u64, directory: u64, length: u64) -> Vec<u8> {
    let mut end = Vec::new();
    if entries >= 0xffff || directory >= U32_MAX || length >= U32_MAX {
        end.extend(b"PK\x06\x06");
        end.extend(44u64.to_le_bytes());
        end.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for field in [entries, entries, length, directory] {
            end.extend(field.to_le_bytes());
        }
        end.extend(b"PK\x06\x07\0\0\0\0");
        end.extend((directory + length).to_le_bytes());
        end.extend(1u32.to_le_bytes());
    }
    end.extend(b"PK\x05\x06\0\0\0\0");
    end.extend((entries.min(0xffff) as u16).to_le_bytes());
    end.extend((entries.min(0xffff) as u16).to_le_bytes());
    end.extend((length.min(U32_MAX) as u32).to_le_bytes());
    end.extend((directory.min(U32_MAX) as u32).to_le_bytes());
    end.extend([0, 0]);
    end
}
