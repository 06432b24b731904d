//! JPEG files decode to the very pixels that OpenCV makes of them, so that training and validation see what
//! YOLOv5 sees. `jpeg/make.py` and `jpeg/make_sizes.py` made the files and say where the expected pixels come from.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use yolo_data::image::Image;
use yolo_data::image::decode::{decode, decode_bytes, decode_into, decode_untrusted};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jpeg")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_pixels_are_those_of_opencv() {
    let expected = std::fs::read_to_string(folder().join("pixels.txt")).unwrap();
    let mut differing = Vec::new();
    for line in expected.lines() {
        let file = line.split(' ').next().unwrap();
        let image = decode(&folder().join(file)).unwrap();
        let pixels = hex(&Sha256::digest(&image.data));
        if line != format!("{file} {} {} {pixels}", image.width, image.height) {
            differing.push(file);
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
    assert!(expected.lines().count() > 60);
}

#[test]
fn the_pixels_are_those_of_opencv_at_every_size_and_quality() {
    let expected = std::fs::read_to_string(folder().join("sizes.txt")).unwrap();
    let archive = std::fs::File::open(folder().join("sizes.zip")).unwrap();
    let mut archive = zip::ZipArchive::new(archive).unwrap();
    let mut differing = Vec::new();
    for line in expected.lines() {
        let file = line.split(' ').next().unwrap();
        let mut bytes = Vec::new();
        archive.by_name(file).unwrap().read_to_end(&mut bytes).unwrap();
        let found = decode_bytes(&bytes).map(|image| {
            format!("{file} {} {} {}", image.width, image.height, hex(&Sha256::digest(&image.data)))
        });
        if found.as_deref() != Ok(line) {
            differing.push(format!("{file}: {found:?}"));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(expected.lines().count() > 400);
}

/// OpenCV decodes such a file with a warning, so a run should not end because of one.
#[test]
fn scans_before_a_damaged_one_are_decoded() {
    let whole = std::fs::read(folder().join("420-61x47-progressive.jpg")).unwrap();
    let last = whole.windows(2).rposition(|marker| marker == [0xFF, 0xDA]).unwrap();
    let sound = decode_bytes(&[&whole[..last], &[0xFF, 0xD9]].concat()).unwrap();
    assert_ne!(sound.data, decode_bytes(&whole).unwrap().data);
    // Codes of ones only are invalid. After 0xFF, a zero byte belongs to it.
    let mut bytes = whole;
    let end = bytes.len() - 2;
    let data = last + 10;
    for (index, byte) in bytes[data..end].iter_mut().enumerate() {
        *byte = if index % 2 == 0 { 0xFF } else { 0 };
    }
    bytes[end - 1] = 0;
    let image = decode_bytes(&bytes).unwrap();
    assert_eq!(image.data, sound.data);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jpg");
    std::fs::write(&path, &bytes).unwrap();
    let mut image = Image::default();
    let decoded = decode_into(&path, None, &mut Vec::new(), &mut image).unwrap();
    assert_eq!(decoded.damage, Some("its compressed data is damaged, so pixels of it are wrong"));
    let refused = decode_untrusted(&path, 1 << 20).unwrap_err().to_string();
    assert!(refused.ends_with("a.jpg: corrupt data: invalid Huffman code"), "{refused}");
}

#[test]
fn a_damaged_first_scan_is_decoded_up_to_the_damage() {
    let whole = std::fs::read(folder().join("420-61x47-progressive.jpg")).unwrap();
    let scans: Vec<usize> =
        (0..whole.len() - 1).filter(|&at| whole[at..].starts_with(&[0xFF, 0xDA])).collect();
    let first_scan = decode_bytes(&[&whole[..scans[1]], &[0xFF, 0xD9]].concat()).unwrap();
    let mut bytes = whole;
    let end = bytes[..scans[1]].windows(2).rposition(|marker| marker == [0xFF, 0xC4]).unwrap();
    let data = scans[0] + 14;
    for (index, byte) in bytes[(data + end) / 2..end].iter_mut().enumerate() {
        *byte = if index % 2 == 0 { 0xFF } else { 0 };
    }
    bytes[end - 1] = 0;
    let image = decode_bytes(&bytes).unwrap();
    // The first rows are whole, the last are gray, and those between depend on their neighbors.
    let row = image.width * 3;
    assert_eq!(image.data[..8 * row], first_scan.data[..8 * row]);
    assert_ne!(image.data, first_scan.data);
    let last = &image.data[image.data.len() - row..];
    assert!(last.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 2), "noise in the last row: {last:?}");
}

/// Found by chance in the test after this one.
#[test]
fn four_colors_of_any_size_do_no_harm() {
    let bytes = std::fs::read(folder().join("cmyk.jpg")).unwrap();
    let frame = bytes.windows(2).position(|pair| matches!(pair, [0xFF, 0xC0..=0xC2])).unwrap();
    for color in 0..4 {
        for size in (1..=4).flat_map(|width| (1..=4).map(move |height| width << 4 | height)) {
            let mut changed = bytes.clone();
            changed[frame + 10 + 3 * color + 1] = size;
            for length in [changed.len(), changed.len() / 2, changed.len() / 4] {
                if let Ok(image) = decode_bytes(&changed[..length]) {
                    assert_eq!(image.data.len(), image.width * image.height * 3, "{color} {size:x}");
                }
            }
        }
    }
}

proptest! {
    /// A damaged file is decoded or refused. The decoder contains unsafe code, so CI also runs this under valgrind.
    #[test]
    fn damaged_files_do_no_harm(
        file in prop::sample::select(vec!["420-61x47-baseline", "420-61x47-progressive", "411-33x18-baseline",
            "440-restarts", "cmyk", "gray-progressive", "rgb", "exif-6"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = std::fs::read(folder().join(format!("{file}.jpg"))).unwrap();
        if let Some(length) = length {
            bytes.truncate(length.index(bytes.len()));
        }
        for (place, value) in changes {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
        }
        if let Ok(image) = decode_bytes(&bytes) {
            prop_assert_eq!(image.data.len(), image.width * image.height * 3);
        }
    }
}
