//! Resized images have the very bytes that OpenCV makes. `golden/resize.py` wrote the expected hashes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use sha2::{Digest as _, Sha256};
use yolo_data::image::{Image, resize};

/// The generator's noise: of every fourth seed only black and white.
fn noise(seed: u32, width: usize, height: usize) -> Image {
    let mut state = seed;
    let byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let byte = (state >> 24) as u8;
        match seed % 4 {
            3 if byte < 128 => 0,
            3 => 255,
            _ => byte,
        }
    };
    Image { width, height, data: std::iter::repeat_with(byte).take(width * height * 3).collect() }
}

/// The lines whose images differ from OpenCV's, and the number of lines.
fn differing(filter: &str, resize: fn(&Image, usize, usize) -> Image) -> (Vec<String>, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/resize.txt");
    let (mut differing, mut compared) = (Vec::new(), 0);
    for (seed, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        let (sizes, expected) = line.rsplit_once(' ').unwrap();
        let Some(numbers) = sizes.strip_prefix(filter) else { continue };
        let numbers: Vec<usize> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let image = resize(&noise(seed as u32, numbers[0], numbers[1]), numbers[2], numbers[3]);
        assert_eq!([image.width, image.height], numbers[2..]);
        let digest = Sha256::digest(&image.data);
        if digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() != expected {
            differing.push(sizes.to_owned());
        }
        compared += 1;
    }
    (differing, compared)
}

#[test]
fn linear_resizing_gives_every_byte_of_opencv() {
    let (differing, compared) =
        differing("linear", |image, width, height| resize::linear(image, width, height));
    assert!(differing.is_empty(), "{differing:?}");
    assert!(compared > 200);
}

#[test]
fn shrinking_by_area_gives_every_byte_of_opencv() {
    let (differing, compared) = differing("area", |image, width, height| resize::area(image, width, height));
    assert!(differing.is_empty(), "{differing:?}");
    assert!(compared > 200);
}
