//! A window of a JPEG file decodes to the very pixels that the whole file has there. Chroma is interpolated between
//! neighbors, so this fails if the decoder does not see enough around it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use libjpeg_turbo_rs::{Encoder, PixelFormat, Subsampling};
use yolo_data::image::decode::{decode, decode_into};
use yolo_data::image::{Image, Window};
use yolo_data::random::{Purpose, Random};

/// Compares random windows of a file, and some at its edges, with the whole.
fn assert_windows_equal(path: &Path, random: &mut Random) {
    let whole = decode(path).unwrap();
    let (mut file, mut image) = (Vec::new(), Image::default());
    for round in 0..20 {
        let mut range = |edge: usize, side: usize| match (edge % 5, random.below(side), random.below(side)) {
            (0, a, _) => a..side,
            (1, a, _) => 0..a + 1,
            (2, ..) => 0..side,
            (_, a, b) => a.min(b)..a.max(b) + 1,
        };
        let window = Window { columns: range(round, whole.width), rows: range(round / 5, whole.height) };
        let decoded = decode_into(path, Some(&window), &mut file, &mut image).unwrap();
        assert_eq!(decoded.whole, [whole.width, whole.height]);
        let [left, top] = decoded.first;
        let inside = Window {
            columns: window.columns.start - left..window.columns.end - left,
            rows: window.rows.start - top..window.rows.end - top,
        };
        let same = image.cut(&inside) == whole.cut(&window);
        assert!(same, "{} has other pixels in {window:?}", path.display());
    }
}

/// Rows are left out only where that is worth while.
#[test]
fn few_rows_are_decoded_alone() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jpeg/420-61x47-baseline.jpg");
    let (mut file, mut image) = (Vec::new(), Image::default());
    let mut decoded = |rows| {
        let first =
            decode_into(&path, Some(&Window { columns: 0..61, rows }), &mut file, &mut image).unwrap().first;
        (first[1], image.height)
    };
    assert_eq!(decoded(20..30), (20, 10));
    assert_eq!(decoded(2..46), (0, 47));
}

#[test]
fn windows_of_all_kinds_of_files_equal_the_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jpeg");
    let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "jpg")).collect();
    assert!(files.len() > 60);
    files.iter().for_each(|path| assert_windows_equal(path, &mut random));
}

#[test]
fn windows_of_files_with_many_blocks_equal_the_whole() {
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
                assert_windows_equal(&path, &mut random);
            }
        }
    }
}
