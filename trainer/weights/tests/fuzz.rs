//! Damaged and hostile files by the thousand: each is read or rejected, without a panic and within bounded memory.
//!
//! Seeds are the files of `golden/`, in both layouts and four protocols. Pickles are changed before they are packed, because the
//! checksum of the archive would catch most changes after it. The run is the same every time; `TORCH_CHECKPOINT_FUZZ`
//! is the number of inputs:
//!
//! ```sh
//! TORCH_CHECKPOINT_FUZZ=1000000 cargo test --release -p torch-checkpoint --test fuzz
//! ```
#![expect(clippy::unwrap_used, reason = "clippy exempts tests, but not their helper functions")]

use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;

use peak_alloc::PeakAlloc;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use torch_checkpoint::{Problem, inspect, read};
use zip::write::SimpleFileOptions;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory in bytes that no file of a few kilobytes may make the reader use: 4 Mi values, 256 MiB of text and 64 MiB
/// of tensors, each at its own limit.
const MEMORY_LIMIT: usize = 768 << 20;

/// A file to change.
enum Seed {
    /// The records of an archive.
    Zip(Vec<(String, Vec<u8>)>),
    Plain(Vec<u8>),
}

fn seeds() -> Vec<Seed> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> = [golden.clone(), golden.join("corpus"), golden.join("corpus/refused")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pt"))
        .collect();
    files.sort();
    assert!(files.len() >= 20, "{files:?}");
    files
        .iter()
        .map(|path| {
            let bytes = std::fs::read(path).unwrap();
            let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(&bytes)) else {
                return Seed::Plain(bytes);
            };
            let records = (0..archive.len()).map(|index| {
                let mut record = archive.by_index(index).unwrap();
                let mut content = Vec::new();
                record.read_to_end(&mut content).unwrap();
                (record.name().to_owned(), content)
            });
            Seed::Zip(records.collect())
        })
        .collect()
}

/// Instructions of a pickle, and numbers at the limits of their types.
const PIECES: [&[u8]; 24] = [
    b"(",
    b"t",
    b"}",
    b"]",
    b"u",
    b"e",
    b"R",
    b"b",
    b"o",
    b"Q",
    b"0",
    b"2",
    b"\x85",
    b"\x86",
    b"\x93",
    b"\x94",
    b"h\x00",
    b"cos\nsystem\n",
    b"cbuiltins\ndict\n",
    b"J\xff\xff\xff\x7f",
    b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"X\xff\xff\xff\xff",
    b"C\x08",
    b"\x80\x05",
];

/// Changes bytes in one to six places.
fn change(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..=6) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..6) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let end = bytes.len().min(at + random.random_range(1..32));
                bytes.drain(at..end);
            }
            4 => {
                let end = bytes.len().min(at + random.random_range(1..64));
                let part = bytes[at..end].repeat(random.random_range(1..50));
                bytes.splice(at..at, part);
            }
            _ if random.random_range(0..8) == 0 => bytes.truncate(at),
            _ => bytes[at] = PIECES[random.random_range(0..PIECES.len())][0],
        }
    }
}

/// The next input: a seed with changes.
fn input(seeds: &[Seed], random: &mut ChaCha8Rng) -> Vec<u8> {
    match &seeds[random.random_range(0..seeds.len())] {
        Seed::Plain(bytes) => {
            let mut bytes = bytes.clone();
            change(&mut bytes, random);
            bytes
        }
        Seed::Zip(records) => {
            let mut records = records.clone();
            let pickle = records.iter().position(|(name, _)| name.ends_with("data.pkl")).unwrap();
            let other = random.random_range(0..records.len());
            change(&mut records[if random.random_range(0..8) == 0 { other } else { pickle }].1, random);
            let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            for (name, content) in &records {
                writer.start_file(name, stored).unwrap();
                writer.write_all(content).unwrap();
            }
            let mut bytes = writer.finish().unwrap().into_inner();
            if random.random_range(0..16) == 0 {
                change(&mut bytes, random);
            }
            bytes
        }
    }
}

#[test]
fn damaged_files_are_read_or_rejected_within_bounded_memory() {
    let count = std::env::var("TORCH_CHECKPOINT_FUZZ").map_or(20_000, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pt");
    let seeds = seeds();
    let mut random = ChaCha8Rng::seed_from_u64(2026);
    let (mut accepted, mut hostile, mut most) = (0, 0, 0);
    for number in 0..count {
        let bytes = input(&seeds, &mut random);
        std::fs::write(&path, &bytes).unwrap();
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        match read(&path) {
            Ok(_) => accepted += 1,
            Err(error) => {
                hostile += usize::from(matches!(error.problem(), Problem::Code(_)));
                assert!(!error.to_string().is_empty());
            }
        }
        let _ = inspect(&path);
        let used = MEMORY.peak_usage() - before;
        most = most.max(used);
        assert!(used < MEMORY_LIMIT, "input {number} of {} bytes used {used} bytes", bytes.len());
    }
    println!(
        "{count} inputs: {accepted} accepted, {hostile} named code, at most {} KiB of memory",
        most / 1024
    );
    // Changes that change nothing, and changes that reject everything, would test nothing.
    assert!(accepted > count / 50 && accepted < count * 9 / 10, "{accepted} of {count}");
    assert!(hostile > count / 200, "{hostile} of {count}");
}
