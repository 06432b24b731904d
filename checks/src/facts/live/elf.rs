//! The run path of a program or library: the folders in which the loader looks for what it needs,
//! DT_RUNPATH or the older DT_RPATH of its dynamic table. Only 64-bit little-endian files, which
//! all of libtorch's are; anything else has none.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// A dynamic table or a run path longer than this is damaged.
const LONGEST: u64 = 1 << 16;

/// The folders of a file's run path, with `$ORIGIN` replaced by its own folder.
pub(super) fn run_path(file: &Path) -> Vec<String> {
    let origin = file.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    let found = File::open(file).ok().and_then(|mut file| read(&mut file));
    let folders = found.unwrap_or_default();
    folders
        .split(':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
        .collect()
}

fn read(file: &mut (impl Read + Seek)) -> Option<String> {
    let header = part(file, 0, 64)?;
    if header[..6] != [0x7F, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let table = number(&header, 32, 8)?;
    let (size, count) = (number(&header, 54, 2)?, number(&header, 56, 2)?);
    if size < 56 {
        return None;
    }
    let segments = part(file, table, size * count)?;
    let mut loads = Vec::new();
    let mut dynamic = None;
    for segment in segments.chunks_exact(usize::try_from(size).ok()?) {
        let (offset, address, length) =
            (number(segment, 8, 8)?, number(segment, 16, 8)?, number(segment, 32, 8)?);
        match u32::try_from(number(segment, 0, 4)?).ok()? {
            PT_LOAD => loads.push((address, offset, length)),
            PT_DYNAMIC => dynamic = Some((offset, length)),
            _ => {}
        }
    }
    let (offset, length) = dynamic?;
    let entries = part(file, offset, length)?;
    let entry = |tag: u64| {
        let mut pairs = entries.chunks_exact(16);
        pairs.find(|pair| number(pair, 0, 8) == Some(tag)).and_then(|pair| number(pair, 8, 8))
    };
    let strings = entry(DT_STRTAB)?;
    let place = strings.checked_add(entry(DT_RUNPATH).or_else(|| entry(DT_RPATH))?)?;
    // The dynamic table gives addresses; the load segments map them to positions in the file.
    let (address, offset, _) =
        loads.into_iter().find(|&(address, _, length)| place >= address && place - address < length)?;
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(offset.checked_add(place - address)?)).ok()?;
    file.by_ref().take(LONGEST).read_to_end(&mut text).ok()?;
    let end = text.iter().position(|&byte| byte == 0)?;
    String::from_utf8(text[..end].to_vec()).ok()
}

fn part(file: &mut (impl Read + Seek), at: u64, length: u64) -> Option<Vec<u8>> {
    if length > LONGEST {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + width)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// A file with one load segment, a dynamic table at 0x100 and strings at 0x200.
    fn elf(run_path: &str) -> Vec<u8> {
        let mut file = vec![0; 0x300];
        file[..6].copy_from_slice(&[0x7F, b'E', b'L', b'F', 2, 1]);
        let mut put = |at: usize, value: u64, width: usize| {
            file[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        };
        for (at, value, width) in [(32, 64, 8), (54, 56, 2), (56, 2, 2)] {
            put(at, value, width);
        }
        for (at, kind, offset, address, length) in
            [(64, PT_LOAD, 0, 0x40_0000, 0x300), (120, PT_DYNAMIC, 0x100, 0x40_0100, 0x30)]
        {
            put(at, u64::from(kind), 4);
            put(at + 8, offset, 8);
            put(at + 16, address, 8);
            put(at + 32, length, 8);
        }
        for (at, value) in [(0x100, DT_STRTAB), (0x108, 0x40_0200), (0x110, DT_RUNPATH), (0x118, 1)] {
            put(at, value, 8);
        }
        file[0x201..0x201 + run_path.len()].copy_from_slice(run_path.as_bytes());
        file
    }

    #[test]
    fn a_run_path_is_read() {
        let found = read(&mut Cursor::new(elf("$ORIGIN/../lib:/opt/torch")));
        assert_eq!(found.as_deref(), Some("$ORIGIN/../lib:/opt/torch"));
    }

    #[test]
    fn a_file_that_is_not_elf_has_no_run_path() {
        assert!(run_path(Path::new("/proc/version")).is_empty());
        assert!(run_path(Path::new("/no/such/file")).is_empty());
    }

    proptest! {
        #[test]
        fn a_damaged_file_does_not_panic(at in 0usize..0x300, byte: u8) {
            let mut file = elf("$ORIGIN");
            file[at] = byte;
            let _ = read(&mut Cursor::new(file));
        }
    }
}
