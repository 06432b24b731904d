//! Every recorded number is read by a test or has a reason why none reads it. `golden/keys.txt` lists
//! them; this test compares the list with the recorded files and with the source of the tests. It is
//! skipped if the files are not on this machine.

#![cfg(not(windows))]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says what it skips"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use yolo_base::env::YOLO_GOLDEN;

/// A line of `keys.txt`.
struct Line<'a> {
    number: usize,
    file: &'a str,
    key: &'a str,
    reader: Reader<'a>,
}

/// What reads a recorded number.
enum Reader<'a> {
    /// This test file, which contains the text.
    Test { file: &'a str, text: String },
    /// No test.
    None,
}

impl<'a> Line<'a> {
    fn parse(number: usize, line: &'a str) -> Self {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("keys.txt:{number}: too few columns"));
        let (file, key, reader) = (word(), word(), word());
        let rest = words.next();
        let reader = match (reader, rest) {
            ("-", Some(reason)) if !reason.is_empty() => Reader::None,
            ("-", _) => panic!("keys.txt:{number}: the reason is missing"),
            (file, None) => Reader::Test { file, text: quoted(key) },
            (file, Some(rest)) => {
                let text = rest.strip_prefix("as ").unwrap_or_else(|| panic!("keys.txt:{number}: {rest}"));
                Reader::Test { file, text: text.to_owned() }
            }
        };
        Self { number, file, key, reader }
    }
}

/// How a test names the key: as a string literal, or as the start of one if the key is a pattern.
fn quoted(key: &str) -> String {
    match key.split_once('*') {
        None => format!("\"{key}\""),
        Some((group, "")) if group.ends_with('.') && !group.trim_end_matches('.').contains('.') => {
            format!("\"{}\"", group.trim_end_matches('.'))
        }
        Some((start, _)) => format!("\"{start}"),
    }
}

/// Whether `key` matches `pattern`, in which `*` is any text.
fn matches(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((start, rest)) => key.strip_prefix(start).is_some_and(|key| {
            (0..=key.len()).filter(|&at| key.is_char_boundary(at)).any(|at| matches(rest, &key[at..]))
        }),
    }
}

/// The keys of a recorded file; `None` for other files.
fn keys(path: &Path) -> Option<Vec<String>> {
    let object = |bytes: &[u8]| match serde_json::from_slice(bytes).unwrap() {
        serde_json::Value::Object(entries) => entries.into_iter().map(|(key, _)| key).collect(),
        _ => vec!["[]".to_owned()],
    };
    match path.extension()?.to_str()? {
        "json" => Some(object(&std::fs::read(path).unwrap())),
        "safetensors" => {
            let bytes = std::fs::read(path).unwrap();
            let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
            let header = &rest[..usize::try_from(u64::from_le_bytes(*length)).unwrap()];
            Some(object(header).into_iter().filter(|key| key != "__metadata__").collect())
        }
        "npz" => {
            let archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
            Some(archive.file_names().map(|name| name.trim_end_matches(".npy").to_owned()).collect())
        }
        _ => None,
    }
}

#[test]
fn every_recorded_number_is_read_or_has_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os(YOLO_GOLDEN).map_or_else(|| root.join("../shared/golden"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: {} does not exist", folder.display());
        return;
    };
    let list = std::fs::read_to_string(root.join("tests/golden/keys.txt")).unwrap();
    let lines: Vec<Line<'_>> = (1..)
        .zip(list.lines())
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| Line::parse(number, line))
        .collect();

    let mut problems = Vec::new();
    let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
    for entry in entries {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        for key in keys(&path).unwrap_or_default() {
            match lines.iter().find(|line| line.file == file && matches(line.key, &key)) {
                Some(line) => *uses.entry(line.number).or_default() += 1,
                None => problems.push(format!("{file}: {key} is not in tests/golden/keys.txt")),
            }
        }
    }
    for Line { number, file, key, reader } in &lines {
        if !uses.contains_key(number) {
            problems.push(format!("keys.txt:{number}: {file} has no {key} that an earlier line leaves"));
        }
        if let Reader::Test { file: test, text } = reader {
            match std::fs::read_to_string(root.join(test)) {
                Ok(source) if source.contains(text.as_str()) => {}
                Ok(_) => problems.push(format!("keys.txt:{number}: {test} does not contain {text}")),
                Err(error) => problems.push(format!("keys.txt:{number}: cannot read {test}: {error}")),
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn a_star_matches_any_text() {
    assert!(matches("rank0.step*.grad.*", "rank0.step1.grad.model.0"));
    assert!(!matches("rank0.step*.grad.*", "rank0.step1.after.model.0"));
    assert!(matches("*", "a") && matches("a*", "a") && !matches("a", "ab"));
}
