//! Whether the data set's images are intact. Only the first and last bytes of a few files are read,
//! which reveals truncated downloads, web pages saved as images and unsupported formats.

use yolo_base::format;

use super::{unread_formats, unreadable};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, Described, sample};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// YOLOv5 skips images with a shorter side, in pixels.
const LEAST_SIDE: u32 = 10;

pub(super) static CHECK: Check = Check {
    question: "Are the data set's images intact?",
    reports: &["disk.images-broken", "disk.images-format"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(data) = &intent.data else { return Ok(Vec::new()) };
    let Described::Yaml(set) = host.data_set(data)? else { return Ok(Vec::new()) };
    let Ok(images) = set.images(host, "train") else { return Ok(Vec::new()) };
    let (mut looked, mut broken, mut format, mut refused) = (0, Vec::new(), Vec::new(), Vec::new());
    let mut deep: Vec<&String> = Vec::new();
    for path in sample(&images.paths) {
        let head = match host.head(path) {
            Ok(Some(head)) => head,
            Ok(None) => continue,
            Err(why) => {
                if unreadable::is_refused(host, path, Some(&why)) {
                    refused.push(path.clone());
                }
                continue;
            }
        };
        looked += 1;
        if is_deep(&head) {
            deep.push(path);
        }
        match fault_of(&head, || host.tail(path).ok().flatten()) {
            Some(Fault::Broken(why)) => broken.push(format!("{path}: {why}")),
            Some(Fault::Format(why)) => format.push(format!("{path}: {why}")),
            None => {}
        }
    }
    // The check of the data set reports folders that have no others.
    let others = if set.is_empty(host, "train") { &[][..] } else { &images.others[..] };
    let unread: Vec<&String> = others.iter().filter(|path| unread_formats::is_image(path)).collect();
    let mut findings = Vec::new();
    let sampled = sample(&images.paths).count();
    let refused = unreadable::finding(host, "disk.images-broken", &refused, sampled, ("sampled image", ""));
    findings.extend(refused.or_else(|| unreadable_validation(host, &set)));
    if let Some(first) = broken.first() {
        let verb = if broken.len() == 1 { "is" } else { "are" };
        let title = format!("{} of {} {verb} corrupt", broken.len(), format::count(looked, "sampled image"));
        findings.push(Finding::new("disk.images-broken", title).seen(first));
    }
    if !format.is_empty() || !unread.is_empty() {
        let number = format.len() + unread.len();
        let title = format!("{} cannot be used for training", format::count(number, "image"));
        let first =
            format.first().cloned().or_else(|| Some(format!("{}: unsupported format", unread.first()?)));
        findings.extend(first.map(|first| Finding::new("disk.images-format", title).seen(first)));
    }
    if let Some(first) = deep.first() {
        findings.push(of_16_bits(deep.len(), looked, first));
    }
    Ok(findings)
}

/// Whether it is a PNG with 16 bits per channel.
fn is_deep(head: &[u8]) -> bool {
    const DEPTH: usize = 24;
    head.starts_with(b"\x89PNG") && head.get(DEPTH) == Some(&16)
}

/// Pictures of medicine, thermal cameras and depth often use a small part of the 16 bits.
fn of_16_bits(deep: usize, looked: usize, first: &str) -> Finding {
    let verb = if deep == 1 { "has" } else { "have" };
    let title = format!("{deep} of {} {verb} 16 bits per channel", format::count(looked, "sampled image"));
    Finding::new("disk.images-format", title)
        .status(Status::Info)
        .seen(first)
        .because(
            "training uses the upper 8 bits, as OpenCV does: pictures that use only a part of the range, such as 12 bits, become nearly \
             black",
        )
        .remedy(
            "nothing, if the pictures look right in an image viewer; otherwise stretch copies of all to 8 bits with one range, such as \
             `mogrify -level 0,4095 -depth 8 *.png` for 12 bits, or each by itself with `-auto-level` instead of `-level`",
        )
}

/// Images for validation that this user may not read, although those for training are.
fn unreadable_validation(host: &Host, set: &DataSet) -> Option<Finding> {
    let images = set.images(host, "val").ok()?.paths;
    let refused: Vec<String> =
        sample(&images).filter(|path| unreadable::is_refused(host, path, None)).cloned().collect();
    unreadable::finding(
        host,
        "disk.images-broken",
        &refused,
        sample(&images).count(),
        ("sampled image", " of val"),
    )
}

enum Fault {
    Broken(&'static str),
    Format(String),
}

fn fault_of(head: &[u8], tail: impl FnOnce() -> Option<Vec<u8>>) -> Option<Fault> {
    match head {
        [] => Some(Fault::Broken("it is empty")),
        [0xFF, 0xD8, ..] => {
            let tail = tail()?;
            // Cameras append bytes after the end marker; a truncated file has no marker near its end.
            let ends = tail.windows(2).any(|pair| pair == [0xFF, 0xD9]);
            (!ends).then_some(Fault::Broken("the JPEG is truncated"))
        }
        [0x89, b'P', b'N', b'G', ..] => {
            let side = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
            let (width, height) = (side(16)?, side(20)?);
            if width.min(height) < LEAST_SIDE {
                return Some(Fault::Format(format!("it has only {width}x{height} pixels")));
            }
            let ends = tail()?.windows(4).any(|word| word == b"IEND");
            (!ends).then_some(Fault::Broken("the PNG is truncated"))
        }
        [b'G', b'I', b'F', b'8', ..] => Some(Fault::Format("it is a GIF, despite its name".to_owned())),
        _ if head.iter().all(|byte| *byte == 0) => Some(Fault::Broken(
            "it has nothing but zeros: it was not written to the end, or is a placeholder of a cloud folder",
        )),
        _ if head.get(4..8) == Some(b"ftyp".as_slice()) => {
            let name = match head.get(8..12).unwrap_or_default() {
                [b'a', b'v', b'i', _] => "AVIF",
                [b'h', b'e', ..] | b"mif1" | b"msf1" => "HEIC",
                b"crx " => {
                    return Some(Fault::Format(
                        "it is a raw photo of a camera (CR3), despite its name".to_owned(),
                    ));
                }
                _ => return Some(Fault::Format("it is a video (MP4 or MOV), despite its name".to_owned())),
            };
            Some(Fault::Format(format!(
                "it is {name}, despite its name; `mogrify -format jpg` or `heif-convert` makes a JPEG of it"
            )))
        }
        _ if head.starts_with(b"%PDF") => Some(Fault::Format("it is a PDF, despite its name".to_owned())),
        [b'{', b'"', ..] => Some(Fault::Broken("it is the error of a server, not an image")),
        [first, ..] if *first == b'<' || head.starts_with(b"\n<") => {
            Some(Fault::Broken("it is a web page, not an image"))
        }
        _ if head.starts_with(b"version https://git-lfs") => {
            Some(Fault::Broken("it is a Git LFS pointer; `git lfs pull` downloads the image"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_of_the_mp4_family_are_told_by_their_brand() {
        for (brand, word) in
            [("heic", "HEIC"), ("mif1", "HEIC"), ("avif", "AVIF"), ("isom", "video"), ("qt  ", "video")]
        {
            let head = format!("\0\0\0 ftyp{brand}");
            let Some(Fault::Format(why)) = fault_of(head.as_bytes(), || None) else { panic!("{brand}") };
            assert!(why.contains(word), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(mut head in proptest::collection::vec(any::<u8>(), 0..40), png: bool) {
            if png {
                head.splice(0..0, *b"\x89PNG");
            }
            let _ = fault_of(&head, || Some(head.clone()));
        }
    }
}
