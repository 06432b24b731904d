//! YAML files of data sets in the encoding of a region, as a Chinese or Western editor of Windows saves them. The run
//! reads UTF-8, and UTF-16 after a mark; it refuses all others, as YOLOv5 does on most systems.

use crate::facts::Host;
use crate::finding::Finding;
use crate::shell_quote::quote;

/// How the bytes of a file are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// UTF-8, or UTF-16 after a mark.
    Read,
    /// Bytes above 127 stand in pairs, as in GBK, Big5 and Shift-JIS.
    OfPairs,
    /// Single bytes above 127, as in the code pages of Europe.
    OfBytes,
}

fn of(bytes: &[u8]) -> Encoding {
    let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if is_utf16 || std::str::from_utf8(bytes).is_ok() {
        return Encoding::Read;
    }
    // The second byte of a pair may be a letter of ASCII.
    let (mut pairs, mut single, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let is_pair = bytes[at] >= 0x81 && bytes.get(at + 1).is_some_and(|next| *next >= 0x80);
        if is_pair {
            pairs += 1;
        } else if bytes[at] >= 0x80 {
            single += 1;
        }
        at += if is_pair { 2 } else { 1 };
    }
    if pairs > single { Encoding::OfPairs } else { Encoding::OfBytes }
}

/// `disk.data-yaml`, if the file is not UTF-8.
pub(super) fn finding(host: &Host, yaml: &str) -> Option<Finding> {
    let bytes = host.file(yaml).ok().flatten()?;
    let (what, from) = match of(&bytes) {
        Encoding::Read => return None,
        Encoding::OfPairs => {
            ("it has letters in the encoding of a region, probably Chinese (GBK)", "GB18030")
        }
        Encoding::OfBytes => {
            ("it has letters in the encoding of a region, probably Western (Windows-1252)", "CP1252")
        }
    };
    let title = format!("the data set {yaml} is not usable: it is not UTF-8 text");
    let finding = Finding::new("disk.data-yaml", title)
        .because(format!("{what}, and a YAML file has to be UTF-8"))
        .remedy("save the file as UTF-8 (in Windows' Notepad: Save as, Encoding UTF-8)");
    if host.is_windows() == Ok(true) {
        return Some(finding);
    }
    let (file, new) = (quote(yaml), quote(&format!("{yaml}.utf8")));
    Some(finding.command(format!("iconv -f {from} -t UTF-8 {file} > {new} && mv {new} {file}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(of("names: [人, 车]".as_bytes()), Encoding::Read);
        assert_eq!(of(b"\xef\xbb\xbfnames: [a]"), Encoding::Read);
        assert_eq!(of(b"\xff\xfen\0a\0"), Encoding::Read);
        assert_eq!(of(b"names: [\xc8\xcb, \xb3\xb5\xc1\xbe]"), Encoding::OfPairs);
        assert_eq!(of(b"names: [p\xeache, \xe9t\xe9]"), Encoding::OfBytes);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = of(&bytes);
        }
    }
}
