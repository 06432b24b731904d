//! Detects what a file is from its first bytes, since a name that ends with `.pt` proves nothing. What
//! is often found instead of weights (a web page, a Git LFS pointer, an interrupted download) is
//! recognized, so that the message can say what to do.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::error::Problem;
use crate::{legacy, pickle};

/// How to read a file, or why it cannot be read.
pub(crate) enum Kind {
    Zip,
    Legacy,
    Safetensors,
    Other(Problem),
}

/// How many bytes are examined. The signature of a tar archive is at byte 257.
const HEAD: u64 = 4096;

/// A pickle without PyTorch's layout, as errors name it.
pub(crate) const BARE: &str = "a bare pickle";

/// Files up to this length are searched for code if they are not archives.
pub(crate) const BARE_PICKLE: u64 = 16 << 20;

pub(crate) fn kind(file: &mut (impl Read + Seek), length: u64) -> io::Result<Kind> {
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(Kind::Other(Problem::Empty));
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Ok(Kind::Zip);
    }
    if is_safetensors(&head, length) {
        return Ok(Kind::Safetensors);
    }
    if b"PK\x03\x04".starts_with(&head) {
        return Ok(Kind::Other(Problem::Truncated(length)));
    }
    if head.get(257..262) == Some(b"ustar") {
        return Ok(Kind::Other(Problem::Foreign("a tar archive")));
    }
    if let Some(problem) = text(&head) {
        // Protocol 0 of pickle is text, and can run code as well.
        return Ok(Kind::Other(bare_pickle(file, length)?.unwrap_or(problem)));
    }
    if legacy::is_legacy(&head) {
        return Ok(Kind::Legacy);
    }
    if let [0x80, 1..=5, ..] = head[..] {
        let problem = bare_pickle(file, length)?.unwrap_or(Problem::Foreign(BARE));
        return Ok(Kind::Other(problem));
    }
    let problem = if is_onnx(&head) { Problem::Onnx } else { Problem::Unknown };
    Ok(Kind::Other(bare_pickle(file, length)?.unwrap_or(problem)))
}

/// ONNX files begin with the version of the format (field 1 of the message), and then another field of the model: its
/// producer, domain, version, description, graph or operations.
fn is_onnx(head: &[u8]) -> bool {
    matches!(head, [0x08, 1..=63, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42, ..])
}

/// Safetensors begin with the length of the header in 8 bytes, then a JSON object.
fn is_safetensors(head: &[u8], length: u64) -> bool {
    let Some((size, rest)) = head.split_first_chunk::<8>() else { return false };
    let size = u64::from_le_bytes(*size);
    // Not compared with the length of the file: one that is truncated in the header counts as well.
    rest.first() == Some(&b'{') && (2..1 << 40).contains(&size) && length > 8
}

fn text(head: &[u8]) -> Option<Problem> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be incomplete.
        Err(error) if head.len() - error.valid_up_to() < 4 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    let lower: String = trimmed.chars().take(512).collect::<String>().to_lowercase();
    if trimmed.starts_with("version https://git-lfs") {
        return Some(Problem::LfsPointer);
    }
    if lower.starts_with("<!doctype") || lower.contains("<html") || lower.starts_with("<?xml") {
        return Some(Problem::Html);
    }
    Some(Problem::Text(trimmed.lines().next().unwrap_or_default().chars().take(60).collect()))
}

/// Whether a file without an archive would run code if Python unpickled it. This is more important
/// to report than its format.
fn bare_pickle(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<Problem>> {
    if length > BARE_PICKLE {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(BARE_PICKLE).read_to_end(&mut bytes)?;
    Ok(match pickle::load(&bytes, &mut pickle::NoStorages) {
        Err(Problem::Code(class)) if bytes[0] == 0x80 || pickle::is_notorious(&class) => {
            Some(Problem::Code(class))
        }
        _ => None,
    })
}

/// All bytes of a file.
pub(crate) fn whole(mut file: File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
