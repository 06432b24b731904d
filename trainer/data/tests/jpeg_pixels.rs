//! JPEG files decode to the very pixels that OpenCV makes of them, so that training and validation see what
//! YOLOv5 sees. `jpeg/make.py` and `jpeg/make_sizes.py` made the files and say where the expected pixels come from.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use yolo_data::image::decode::{decode, decode_bytes};

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
