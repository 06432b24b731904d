//! Reads the structures of a zip archive: end record, central directory and local headers, each also in
//! its zip64 form. Invariant: no input makes it panic; a field that points outside the archive is an
//! error.

use std::collections::HashSet;
use std::io::{self, Read};

use super::member_path::safe_name;

/// The longest possible tail: the end record with its comment, and the zip64 locator before it.
pub(super) const TAIL: u64 = 22 + 65_535 + 20;

/// The tail that is read first: enough for an end record with a short comment.
pub(super) const FIRST_TAIL: u64 = 16 << 10;

const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
pub(super) const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const ENCRYPTED: u16 = 1;
const HAS_DESCRIPTOR: u16 = 8;

/// How a member is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
}

/// One member, as the central directory describes it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) method: Method,
    pub(super) crc: u32,
    pub(super) compressed: u64,
    pub(super) size: u64,
    /// Where its local header begins.
    pub(super) offset: u64,
}

/// Where the central directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryPlace {
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Bytes that were prepended to the finished archive, such as a self-extractor. `offset` and all offsets
    /// in the directory are too small by this number.
    pub(super) shift: u64,
}

/// What the tail of an archive contains.
pub(super) enum Tail {
    Directory(DirectoryPlace),
    /// The zip64 end record begins at this offset, before the tail.
    Earlier(u64),
    /// No end record in these bytes.
    Nothing,
}

/// Finds the central directory from the last bytes of an archive of `length` bytes.
pub(super) fn read_tail(tail: &[u8], length: u64) -> Result<Tail, String> {
    let tail_start = length - tail.len() as u64;
    let record = |at: usize| u32_at(tail, at) == Some(END) && u16_at(tail, at + 20).is_some();
    let comment = |at: usize| at + 22 + usize::from(u16_at(tail, at + 20).unwrap_or_default());
    let mut places = (0..tail.len().saturating_sub(21)).rev().filter(|&at| record(at));
    // The comment may contain the signature by chance, so the record must end where the file ends. If none
    // does, bytes were appended to the archive; then the last record with a plausible directory counts.
    let end = places.clone().find(|&at| comment(at) == tail.len()).or_else(|| {
        let all = tail.len() as u64 >= TAIL.min(length);
        let fits = |at: usize| {
            let directory = u64::from(u32_at(tail, at + 12).unwrap_or_default());
            comment(at) <= tail.len()
                && (directory == u64::from(u32::MAX) || directory <= tail_start + at as u64)
        };
        places.find(|&at| all && fits(at))
    });
    let Some(end) = end else { return Ok(Tail::Nothing) };
    let place = DirectoryPlace {
        length: u64::from(u32_at(tail, end + 12).unwrap_or_default()),
        offset: u64::from(u32_at(tail, end + 16).unwrap_or_default()),
        shift: 0,
    };
    let mut behind = tail_start + end as u64;
    let place = match end.checked_sub(20).filter(|&at| u32_at(tail, at) == Some(LOCATOR64)) {
        None => place,
        Some(locator) => {
            let mut record = u64_at(tail, locator + 8).unwrap_or_default();
            // After bytes were prepended, the record is right before the locator.
            if let Some(before) = locator.checked_sub(56).filter(|&at| u32_at(tail, at) == Some(END64)) {
                record = tail_start + before as u64;
            }
            behind = record;
            let Some(at) = record.checked_sub(tail_start) else { return Ok(Tail::Earlier(record)) };
            let at = usize::try_from(at).map_err(|_| "the zip64 end record is outside the file")?;
            if u32_at(tail, at) != Some(END64) {
                return Err("the zip64 end record is not where the locator says".into());
            }
            match (u64_at(tail, at + 40), u64_at(tail, at + 48)) {
                (Some(length), Some(offset)) => DirectoryPlace { offset, length, shift: 0 },
                _ => return Err("the zip64 end record is truncated".into()),
            }
        }
    };
    match place.offset.checked_add(place.length) {
        Some(end) if end <= behind => Ok(Tail::Directory(DirectoryPlace { shift: behind - end, ..place })),
        Some(end) if end <= length => Ok(Tail::Directory(place)),
        _ => Err("the central directory is outside the file".into()),
    }
}

/// Whether these bytes begin a central directory.
pub(super) fn is_directory(bytes: &[u8]) -> bool {
    u32_at(bytes, 0) == Some(CENTRAL)
}

/// All members, by offset. They must end before `directory_offset`, and are `shift` bytes after the
/// offsets in the directory.
pub(super) fn read_directory(bytes: &[u8], directory_offset: u64, shift: u64) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut names = HashSet::new();
    let mut at = 0;
    while u32_at(bytes, at) == Some(CENTRAL) {
        let (mut entry, next) = central_header(bytes, at).ok_or("the central directory is damaged")??;
        entry.offset = entry.offset.saturating_add(shift);
        if entry.offset.saturating_add(entry.compressed) > directory_offset {
            return Err(format!("{} is outside the file", entry.name));
        }
        if !names.insert(entry.name.clone()) {
            return Err(format!("it contains {} twice", entry.name));
        }
        entries.push(entry);
        at = next;
    }
    if at == 0 {
        return Err("it has no members".into());
    }
    if let Some(both) =
        entries.iter().find_map(|entry| file_and_folder(&entry.name, |name| names.contains(name)))
    {
        return Err(format!("it contains {both} both as a file and as a folder"));
    }
    entries.sort_by_key(|entry| entry.offset);
    // Overlapping members are how a small zip bomb unpacks to a huge size.
    for pair in entries.windows(2) {
        if pair[0].offset.saturating_add(pair[0].compressed) > pair[1].offset {
            return Err(format!("{} and {} overlap in it", pair[0].name, pair[1].name));
        }
    }
    Ok(entries)
}

/// A parent of `name` that is a file in the same archive.
pub(super) fn file_and_folder(name: &str, is_file: impl Fn(&str) -> bool) -> Option<&str> {
    name.match_indices('/').map(|(at, _)| &name[..at]).find(|parent| is_file(parent))
}

/// `None`: truncated. `Some(Err)`: complete, but unusable.
fn central_header(bytes: &[u8], at: usize) -> Option<Result<(Entry, usize), String>> {
    let flags = u16_at(bytes, at + 8)?;
    let method = u16_at(bytes, at + 10)?;
    let name_length = usize::from(u16_at(bytes, at + 28)?);
    let extra_length = usize::from(u16_at(bytes, at + 30)?);
    let comment_length = usize::from(u16_at(bytes, at + 32)?);
    let name = bytes.get(at + 46..at + 46 + name_length)?;
    let extra = bytes.get(at + 46 + name_length..at + 46 + name_length + extra_length)?;
    let name = match safe_name(&String::from_utf8_lossy(name)) {
        Ok(name) => name,
        Err(why) => return Some(Err(why)),
    };
    let mut sizes = Sizes {
        size: u64::from(u32_at(bytes, at + 24)?),
        compressed: u64::from(u32_at(bytes, at + 20)?),
        offset: u64::from(u32_at(bytes, at + 42)?),
    };
    if !sizes.widen(extra) {
        return Some(Err(format!("{name} has a damaged zip64 field")));
    }
    // The upper half of the external attributes is the Unix mode (S_IFMT, S_IFLNK).
    if (u32_at(bytes, at + 38)? >> 16) & 0o170_000 == 0o120_000 {
        return Some(Err(format!("{name} is a symbolic link, which yolo does not unpack")));
    }
    let entry = usable(&name, flags, method).map(|method| Entry {
        name,
        method,
        crc: u32_at(bytes, at + 16).unwrap_or_default(),
        compressed: sizes.compressed,
        size: sizes.size,
        offset: sizes.offset,
    });
    Some(entry.map(|entry| (entry, at + 46 + name_length + extra_length + comment_length)))
}

struct Sizes {
    size: u64,
    compressed: u64,
    offset: u64,
}

impl Sizes {
    /// Replaces each 32-bit field that is all ones by its 64-bit form. False if that is truncated.
    fn widen(&mut self, extra: &[u8]) -> bool {
        let Some(mut wide) = extra_field(extra, 1) else { return true };
        for field in [&mut self.size, &mut self.compressed, &mut self.offset] {
            if *field == u64::from(u32::MAX) {
                let Some((value, rest)) = wide.split_first_chunk() else { return false };
                *field = u64::from_le_bytes(*value);
                wide = rest;
            }
        }
        true
    }
}

/// The content of the extra field with this number.
fn extra_field(mut extra: &[u8], number: u16) -> Option<&[u8]> {
    while let (Some(id), Some(length)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let content = extra.get(4..4 + usize::from(length))?;
        if id == number {
            return Some(content);
        }
        extra = &extra[4 + usize::from(length)..];
    }
    None
}

fn usable(name: &str, flags: u16, method: u16) -> Result<Method, String> {
    if flags & ENCRYPTED != 0 {
        return Err(format!("{name} is encrypted"));
    }
    match method {
        0 => Ok(Method::Stored),
        8 => Ok(Method::Deflated),
        other => Err(format!("{name} uses compression method {other}, which yolo does not support")),
    }
}

/// A member, as its local header describes it.
#[derive(Debug)]
pub(super) struct LocalHeader {
    pub(super) name: String,
    pub(super) method: Method,
    /// CRC-32, compressed size and size; `None` if they follow the data.
    pub(super) sums: Option<(u32, u64, u64)>,
    zip64: bool,
}

impl LocalHeader {
    /// Reads everything after the signature, up to the data.
    pub(super) fn read(reader: &mut impl Read) -> io::Result<Self> {
        let mut fixed = [0; 26];
        reader.read_exact(&mut fixed)?;
        let field = |at| u16_at(&fixed, at).unwrap_or_default();
        let wide = |at| u32_at(&fixed, at).unwrap_or_default();
        let mut name = vec![0; usize::from(field(22))];
        reader.read_exact(&mut name)?;
        let mut extra = vec![0; usize::from(field(24))];
        reader.read_exact(&mut extra)?;
        let damaged = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let name = safe_name(&String::from_utf8_lossy(&name)).map_err(damaged)?;
        let method = usable(&name, field(2), field(4)).map_err(damaged)?;
        let mut sizes = Sizes { size: u64::from(wide(18)), compressed: u64::from(wide(14)), offset: 0 };
        if !sizes.widen(&extra) {
            return Err(damaged(format!("{name} has a damaged zip64 field")));
        }
        let sums = (field(2) & HAS_DESCRIPTOR == 0).then_some((wide(10), sizes.compressed, sizes.size));
        Ok(Self { name, method, sums, zip64: extra_field(&extra, 1).is_some() })
    }

    /// Reads the descriptor after the data: CRC-32, compressed size, size.
    pub(super) fn read_descriptor(&self, reader: &mut impl Read) -> io::Result<(u32, u64, u64)> {
        // The signature is optional in the standard.
        let mut crc = read_u32(reader)?;
        if crc == DESCRIPTOR {
            crc = read_u32(reader)?;
        }
        if self.zip64 {
            let mut sizes = [0; 16];
            reader.read_exact(&mut sizes)?;
            Ok((crc, u64_at(&sizes, 0).unwrap_or_default(), u64_at(&sizes, 8).unwrap_or_default()))
        } else {
            Ok((crc, u64::from(read_u32(reader)?), u64::from(read_u32(reader)?)))
        }
    }
}

pub(super) fn read_u32(reader: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_members_and_unknown_methods_are_refused() {
        assert_eq!(usable("torch/lib/x.so", 0, 8), Ok(Method::Deflated));
        assert!(usable("x", ENCRYPTED, 8).is_err());
        assert!(usable("x", 0, 12).is_err());
    }

    #[test]
    fn a_zip64_field_replaces_only_what_overflowed() {
        let mut extra = vec![1, 0, 8, 0];
        extra.extend(5_000_000_000_u64.to_le_bytes());
        let mut sizes = Sizes { size: 7, compressed: u64::from(u32::MAX), offset: 9 };
        assert!(sizes.widen(&extra));
        assert_eq!((sizes.size, sizes.compressed, sizes.offset), (7, 5_000_000_000, 9));
        sizes.size = u64::from(u32::MAX);
        sizes.compressed = u64::from(u32::MAX);
        assert!(!sizes.widen(&extra), "one value for two fields");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = read_tail(&bytes, bytes.len() as u64);
            let _ = read_directory(&bytes, u64::MAX, 7);
            let _ = LocalHeader::read(&mut bytes.as_slice());
        }

        #[test]
        fn no_bytes_after_a_signature_make_it_panic(rest: Vec<u8>, signature in 0_usize..3) {
            let signature: u32 = [END, CENTRAL, LOCATOR64][signature];
            let mut bytes = signature.to_le_bytes().to_vec();
            bytes.extend(rest);
            let _ = read_tail(&bytes, bytes.len() as u64);
            let _ = read_directory(&bytes, u64::MAX, 7);
        }
    }
}
