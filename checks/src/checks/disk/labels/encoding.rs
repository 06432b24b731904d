//! Label files that editors saved in another encoding than UTF-8, or with a byte order mark. YOLOv5 and `yolo` read
//! plain UTF-8 and skip the images of all others.

use yolo_base::format;

use crate::finding::Finding;
use crate::shell_quote::quote;

/// Why the bytes of a label file are not read as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8 behind a byte order mark, which makes the first class "not a number".
    Marked,
    /// As PowerShell's `>` saves text.
    Utf16,
    /// Neither of these: the encoding of a region, or no text.
    Unknown,
}

/// `None` if the bytes are plain UTF-8.
pub(super) fn of(bytes: &[u8]) -> Option<Encoding> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(Encoding::Utf16),
        [0xef, 0xbb, 0xbf, ..] => Some(Encoding::Marked),
        _ => std::str::from_utf8(bytes).is_err().then_some(Encoding::Unknown),
    }
}

/// `disk.labels-columns` for files that are not read; all have the encoding of the first, as one export has.
pub(super) fn finding(files: &[(String, Encoding)], sampled: usize, yaml: &str) -> Option<Finding> {
    let (first, encoding) = files.first()?;
    let what = match encoding {
        Encoding::Marked => "begin with a byte order mark",
        Encoding::Utf16 => "are saved as UTF-16",
        Encoding::Unknown => "are not UTF-8 text",
    };
    let title =
        format!("{} of {} of {yaml} {what}", files.len(), format::count(sampled, "sampled label file"));
    let finding = Finding::new("disk.labels-columns", title).seen(first.clone()).because(
        "labels are read as plain UTF-8, here as by YOLOv5: images with label files in another encoding are left out of the training",
    );
    let folder = quote(first.rfind(['/', '\\']).map_or(".", |at| &first[..at]));
    let each = |command: &str| {
        format!("find {folder} -name '*.txt' -exec sh -c 'for file; do {command}; done' sh {{}} +")
    };
    Some(match encoding {
        Encoding::Marked => finding
            .remedy("save the label files as UTF-8 without a byte order mark (BOM); this removes it from all of the folder")
            .command(format!("find {folder} -name '*.txt' -exec sed -i '1s/^\\xef\\xbb\\xbf//' {{}} +")),
        Encoding::Utf16 => finding
            .remedy("save the label files as UTF-8; this converts all of the folder that are UTF-16")
            .command(each(
                "case $(head -c 2 \"$file\" | od -An -tx1) in *ff*fe*|*fe*ff*) iconv -f UTF-16 -t UTF-8 \"$file\" > \"$file.utf8\" \
                 && mv \"$file.utf8\" \"$file\";; esac",
            )),
        Encoding::Unknown => finding.remedy("export the labels again, as UTF-8 text"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_told_by_their_first_bytes() {
        assert_eq!(of(b"0 0.5 0.5 0.1 0.1\r\n"), None);
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\xef\xbb\xbf0 0.5"), Some(Encoding::Marked));
        assert_eq!(of(b"\xff\xfe0\0 \0"), Some(Encoding::Utf16));
        assert_eq!(of(b"\xb3\xb5 0.5 0.5 0.1 0.1\n"), Some(Encoding::Unknown));
    }
}
