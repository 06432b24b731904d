//! Bytes to text and back. Editors on Windows write UTF-16 or a byte order mark, and PowerShell's
//! `>>` even mixes encodings; several releases of WSL silently ignore such a file
//! (microsoft/WSL#5383, #7851, #11151). It is read here, and written as plain UTF-8 once a value
//! changes.

use std::fmt;

/// How a file's text is written as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a mark, which every WSL reads.
    Utf8,
    /// UTF-8 after a byte order mark.
    Utf8Bom,
    /// UTF-16, low byte first, with or without a byte order mark.
    Utf16Le,
    /// UTF-16, high byte first, after a byte order mark.
    Utf16Be,
    /// UTF-8 to which a program appended UTF-16, as Windows PowerShell's `>>` does.
    Mixed,
    /// Bytes that are not UTF-8, such as an accent in a comment from an old editor: each byte is
    /// kept. WSL reads the ASCII of it.
    Bytes,
}

impl Encoding {
    /// Whether every release of WSL reads it.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Utf8 | Self::Bytes)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with a byte order mark",
            Self::Utf16Le => "UTF-16",
            Self::Utf16Be => "UTF-16 (big-endian)",
            Self::Mixed => "partly UTF-8 and partly UTF-16",
            Self::Bytes => "neither UTF-8 nor UTF-16",
        })
    }
}

/// The encoding and the text. Any bytes are accepted.
pub(super) fn decode(bytes: &[u8]) -> (Encoding, String) {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => match std::str::from_utf8(rest) {
            Ok(text) => (Encoding::Utf8Bom, text.to_owned()),
            Err(_) => (Encoding::Bytes, latin1(bytes)),
        },
        [0xFF, 0xFE, rest @ ..] => (Encoding::Utf16Le, utf16(rest, u16::from_le_bytes)),
        [0xFE, 0xFF, rest @ ..] => (Encoding::Utf16Be, utf16(rest, u16::from_be_bytes)),
        // No mark, but every second byte of the beginning is zero: ASCII letters in UTF-16.
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => {
            (Encoding::Utf16Le, utf16(bytes, u16::from_le_bytes))
        }
        _ => match std::str::from_utf8(bytes) {
            // Zero bytes are the high bytes of ASCII letters; text in UTF-8 has none.
            Ok(text) if text.contains('\0') => (Encoding::Mixed, text.replace('\0', "")),
            Ok(text) => (Encoding::Utf8, text.to_owned()),
            Err(_) => (Encoding::Bytes, latin1(bytes)),
        },
    }
}

/// The bytes of a text, without UTF-16 and marks, which not every WSL reads.
pub(super) fn encode(encoding: Encoding, text: &str) -> Vec<u8> {
    match encoding {
        // `decode` made one character below U+0100 of each byte, and edits add ASCII only.
        Encoding::Bytes => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect(),
        _ => text.as_bytes().to_vec(),
    }
}

/// Each byte as the character with its number, so that it can be written back.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
