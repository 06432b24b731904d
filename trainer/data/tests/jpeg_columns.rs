//! Some columns of a JPEG file decode to the very pixels that the whole file has there. Chroma is interpolated between
//! neighbors, so this fails if the decoder does not see enough around them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use libjpeg_turbo_rs::{Encoder, PixelFormat, Subsampling};
use yolo_data::image::Image;
use yolo_data::image::decode::{decode, decode_into};
use yolo_data::random::{Purpose, Random};

/// Compares random columns of a file, and some at its edges, with the whole.
fn assert_columns_equal(path: &Path, random: &mut Random) {
    let whole = decode(path).unwrap();
    let (mut file, mut image) = (Vec::new(), Image::default());
    for round in 0..12 {
        let mut range = |side: usize| match (round % 4, random.below(side), random.below(side)) {
            (0, a, _) => a..side,
            (1, a, _) => 0..a + 1,
            (_, a, b) => a.min(b)..a.max(b) + 1,
        };
        let columns = range(whole.width);
        let decoded = decode_into(path, Some(&columns), &mut file, &mut image).unwrap();
        assert_eq!(decoded.whole, [whole.width, whole.height]);
        assert_eq!(image.height, whole.height);
        for y in 0..whole.height {
            let ours = &image.row(y)[(columns.start - decoded.left) * 3..(columns.end - decoded.left) * 3];
            let theirs = &whole.row(y)[columns.start * 3..columns.end * 3];
            assert!(ours == theirs, "{} has other pixels in row {y} of {columns:?}", path.display());
        }
    }
}

#[test]
fn columns_of_all_kinds_of_files_equal_the_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jpeg");
    let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "jpg")).collect();
    assert!(files.len() > 60);
    files.iter().for_each(|path| assert_columns_equal(path, &mut random));
}

#[test]
fn columns_of_files_with_many_blocks_equal_the_whole() {
    use Subsampling::{S411, S420, S422, S440, S441, S444};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jpg");
    let mut random = Random::keyed(1, 0, Purpose::Augment, 0);
    for (width, height) in [(320, 48), (259, 33), (131, 65)] {
        let noise: Vec<u8> = (0..width * height * 3).map(|_| random.below(256) as u8).collect();
        for subsampling in [S411, S420, S422, S440, S441, S444] {
            for progressive in [false, true] {
                let encoder = Encoder::new(&noise, width, height, PixelFormat::Rgb).quality(90);
                let bytes = encoder.subsampling(subsampling).progressive(progressive).encode().unwrap();
                std::fs::write(&path, bytes).unwrap();
                assert_columns_equal(&path, &mut random);
            }
        }
    }
}
