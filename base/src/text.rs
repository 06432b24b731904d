//! Text files as people write them: in UTF-8, and as programs of Windows save them, in UTF-8 after a byte order mark or, as
//! the `>` of Windows PowerShell does, in UTF-16.

use std::io;
use std::path::Path;

/// The text of a file, without a byte order mark.
///
/// # Errors
/// If the file cannot be read, or is neither UTF-8 nor UTF-16 after a mark.
pub fn read(path: &Path) -> io::Result<String> {
    let not_text = || io::Error::new(io::ErrorKind::InvalidData, "it is neither UTF-8 nor UTF-16 text");
    decode(std::fs::read(path)?).ok_or_else(not_text)
}

/// The text of these bytes, without a byte order mark. Without a mark, they are UTF-8, so that a zero byte stays one.
pub fn decode(bytes: Vec<u8>) -> Option<String> {
    match bytes.as_slice() {
        [0xEF, 0xBB, 0xBF, rest @ ..] => std::str::from_utf8(rest).ok().map(str::to_owned),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    char::decode_utf16(pairs.map(|pair| unit([pair[0], pair[1]]))).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_in_each_encoding_of_windows_is_read() {
        let text = "images/数.jpg\r\n";
        let utf16 = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(unit).collect()
        };
        let marked = ["\u{feff}", text].concat().into_bytes();
        for bytes in [text.as_bytes().to_vec(), marked, utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
            assert_eq!(decode(bytes).as_deref(), Some(text));
        }
        assert_eq!(decode(b"a\0b".to_vec()).as_deref(), Some("a\0b"));
        for bytes in [&[0xE9][..], &[0xFF, 0xFE, 0x61], &[0xFF, 0xFE, 0x00, 0xD8]] {
            assert_eq!(decode(bytes.to_vec()), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(bytes: Vec<u8>) {
            let _ = decode(bytes);
        }
    }
}
