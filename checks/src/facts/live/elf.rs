//! What a program or library asks of the loader: the folders in which it looks for what the file needs
//! (DT_RUNPATH, or the older DT_RPATH, of its dynamic table), the libraries themselves, whether the stack must be
//! executable, and the newest versions of symbols that it needs and that it has. Only 64-bit little-endian files, which all
//! of libtorch's are; anything else has none. Nothing is loaded, and of a large file only small parts are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

use crate::facts::answer::of_error;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_STACK: u32 = 0x6474_E551;
/// The flag of a segment that may be executed.
const PF_X: u64 = 1;
const DT_NEEDED: u64 = 1;
const DT_VERDEF: u64 = 0x6FFF_FFFC;
const DT_VERDEFNUM: u64 = 0x6FFF_FFFD;
const DT_VERNEED: u64 = 0x6FFF_FFFE;
const DT_VERNEEDNUM: u64 = 0x6FFF_FFFF;
/// libtorch's largest library names about sixty versions and thirty libraries.
const MOST_VERSIONS: usize = 512;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// A dynamic table or a run path longer than this is damaged.
const LONGEST: u64 = 1 << 16;

/// What a file tells the loader about the libraries that it needs.
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// The folders of its run path, with `$ORIGIN` replaced by its own folder.
    pub(super) folders: Vec<String>,
    /// Whether they come before LD_LIBRARY_PATH: they are of DT_RPATH.
    pub(super) is_first: bool,
    /// The names of the libraries.
    pub(super) needed: Vec<String>,
}

pub(super) fn linked(file: &Path) -> Linked {
    let origin = file.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    let Some((elf, mut file)) =
        File::open(file).ok().and_then(|mut file| Some((Elf::read(&mut file)?, file)))
    else {
        return Linked::default();
    };
    let folders = elf.run_path(&mut file).unwrap_or_default();
    let folders = folders.split(':').filter(|folder| !folder.is_empty());
    Linked {
        folders: folders
            .map(|folder| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
            .collect(),
        is_first: elf.entry(DT_RUNPATH).is_none(),
        needed: elf.needed(&mut file),
    }
}

/// `{"executable_stack": false, "versions": {"GLIBC": "2.28"}, "defines": {"GOMP": "5.0"}, "needed": ["libc.so.6"]}`
pub(super) fn needs(path: &str) -> Value {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Value::Null,
        Err(error) => return of_error(error),
    };
    let Some(elf) = Elf::read(&mut file) else { return of_error("it is not a 64-bit ELF file") };
    json!({
        "executable_stack": elf.executable_stack,
        "versions": newest(elf.needed_versions(&mut file)),
        "defines": newest(elf.own_versions(&mut file)),
        "needed": elf.needed(&mut file),
    })
}

/// The tables of a file that say where the rest is.
struct Elf {
    /// Address, offset and length of each segment that is loaded.
    loads: Vec<(u64, u64, u64)>,
    /// The dynamic table.
    dynamic: Vec<u8>,
    /// Without a mark, the stack is executable.
    executable_stack: bool,
}

impl Elf {
    fn read(file: &mut (impl Read + Seek)) -> Option<Self> {
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
        let mut executable_stack = true;
        for segment in segments.chunks_exact(usize::try_from(size).ok()?) {
            let (offset, address, length) =
                (number(segment, 8, 8)?, number(segment, 16, 8)?, number(segment, 32, 8)?);
            match u32::try_from(number(segment, 0, 4)?).ok()? {
                PT_LOAD => loads.push((address, offset, length)),
                PT_DYNAMIC => dynamic = Some((offset, length)),
                PT_GNU_STACK => executable_stack = number(segment, 4, 4)? & PF_X != 0,
                _ => {}
            }
        }
        let (offset, length) = dynamic?;
        Some(Self { loads, dynamic: part(file, offset, length)?, executable_stack })
    }

    fn entry(&self, tag: u64) -> Option<u64> {
        let mut pairs = self.dynamic.chunks_exact(16);
        pairs.find(|pair| number(pair, 0, 8) == Some(tag)).and_then(|pair| number(pair, 8, 8))
    }

    /// The dynamic table gives addresses; the load segments map them to positions in the file.
    fn position(&self, place: u64) -> Option<u64> {
        let holds = |&&(address, _, length): &&(u64, u64, u64)| place >= address && place - address < length;
        let (address, offset, _) = self.loads.iter().find(holds)?;
        offset.checked_add(place - address)
    }

    fn string(&self, file: &mut (impl Read + Seek), at: u64, longest: u64) -> Option<String> {
        let place = self.position(self.entry(DT_STRTAB)?.checked_add(at)?)?;
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(place)).ok()?;
        file.by_ref().take(longest).read_to_end(&mut text).ok()?;
        let end = text.iter().position(|&byte| byte == 0)?;
        String::from_utf8(text[..end].to_vec()).ok()
    }

    fn run_path(&self, file: &mut (impl Read + Seek)) -> Option<String> {
        self.string(file, self.entry(DT_RUNPATH).or_else(|| self.entry(DT_RPATH))?, LONGEST)
    }

    /// The names of the libraries that it is linked with.
    fn needed(&self, file: &mut (impl Read + Seek)) -> Vec<String> {
        let is_library = |pair: &&[u8]| number(pair, 0, 8) == Some(DT_NEEDED);
        let names = self.dynamic.chunks_exact(16).filter(is_library).take(MOST_VERSIONS);
        names.filter_map(|pair| self.string(file, number(pair, 8, 8)?, 256)).collect()
    }

    /// The names in the table of versions that the file itself has. The first only repeats the name of the file.
    fn own_versions(&self, file: &mut (impl Read + Seek)) -> Option<Vec<String>> {
        let mut entry = self.position(self.entry(DT_VERDEF)?)?;
        let mut names = Vec::new();
        for _ in 0..self.entry(DT_VERDEFNUM)?.min(MOST_VERSIONS as u64) {
            let definition = part(file, entry, 20)?;
            let aux = part(file, entry.checked_add(number(&definition, 12, 4)?)?, 8)?;
            names.extend(self.string(file, number(&aux, 0, 4)?, 128));
            match number(&definition, 16, 4)? {
                0 => break,
                next => entry = entry.checked_add(next)?,
            }
        }
        Some(names)
    }

    /// The names in the table of needed versions: `GLIBC_2.28`, `GLIBCXX_3.4.22`. Each library has an
    /// entry, followed by a list; both say where the next one is, relative to themselves.
    fn needed_versions(&self, file: &mut (impl Read + Seek)) -> Option<Vec<String>> {
        let mut entry = self.position(self.entry(DT_VERNEED)?)?;
        let mut names = Vec::new();
        for _ in 0..self.entry(DT_VERNEEDNUM)?.min(64) {
            let need = part(file, entry, 16)?;
            let mut at = entry.checked_add(number(&need, 8, 4)?)?;
            for _ in 0..number(&need, 2, 2)? {
                let aux = part(file, at, 16)?;
                names.extend(self.string(file, number(&aux, 8, 4)?, 128));
                let next = number(&aux, 12, 4)?;
                if next == 0 || names.len() > MOST_VERSIONS {
                    break;
                }
                at = at.checked_add(next)?;
            }
            match number(&need, 12, 4)? {
                0 => break,
                next => entry = entry.checked_add(next)?,
            }
        }
        Some(names)
    }
}

/// The newest version of each kind, such as 2.28 of `GLIBC`.
fn newest(names: Option<Vec<String>>) -> BTreeMap<String, String> {
    let mut newest: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for name in names.unwrap_or_default() {
        let Some((kind, version)) = name.rsplit_once('_') else { continue };
        let numbers: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
        let Ok(numbers) = numbers else { continue };
        let known = newest.entry(kind.to_owned()).or_default();
        if *known < numbers {
            *known = numbers;
        }
    }
    let text = |numbers: Vec<u32>| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    newest.into_iter().map(|(kind, numbers)| (kind, text(numbers))).collect()
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

    fn run_path_of(file: Vec<u8>) -> Option<String> {
        let mut file = Cursor::new(file);
        Elf::read(&mut file)?.run_path(&mut file)
    }

    #[test]
    fn a_run_path_is_read() {
        let found = run_path_of(elf("$ORIGIN/../lib:/opt/torch"));
        assert_eq!(found.as_deref(), Some("$ORIGIN/../lib:/opt/torch"));
    }

    #[test]
    fn a_file_without_a_mark_has_an_executable_stack() {
        assert!(Elf::read(&mut Cursor::new(elf("/"))).unwrap().executable_stack);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_program_needs_a_version_of_glibc_and_no_executable_stack() {
        let program = std::env::current_exe().unwrap();
        let needs = needs(&program.to_string_lossy());
        assert_eq!(needs["executable_stack"], false);
        assert!(
            needs["versions"]["GLIBC"].as_str().is_some_and(|version| version.starts_with("2.")),
            "{needs}"
        );
        let is_libc = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("libc.so."));
        assert!(needs["needed"].as_array().is_some_and(|names| names.iter().any(is_libc)), "{needs}");
        assert_eq!(super::needs("/no/such/file"), Value::Null);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_c_library_has_versions_of_its_own() {
        let places = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"];
        let Some(path) = places.into_iter().find(|path| Path::new(path).exists()) else { return };
        let needs = needs(path);
        assert!(
            needs["defines"]["GLIBC"].as_str().is_some_and(|version| version.starts_with("2.")),
            "{needs}"
        );
    }

    #[test]
    fn a_file_that_is_not_elf_has_no_run_path() {
        assert!(linked(Path::new("/proc/version")).folders.is_empty());
        assert!(linked(Path::new("/no/such/file")).folders.is_empty());
    }

    proptest! {
        #[test]
        fn a_damaged_file_does_not_panic(at in 0usize..0x300, byte: u8) {
            let mut file = elf("$ORIGIN");
            file[at] = byte;
            let mut file = Cursor::new(file);
            if let Some(elf) = Elf::read(&mut file) {
                let _ = (elf.run_path(&mut file), elf.needed_versions(&mut file));
                let _ = (elf.own_versions(&mut file), elf.needed(&mut file));
            }
        }
    }
}
