//! A generated data set for tests of the loaders, and the settings of a loader for it.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use yolo_data::augment::Augment;
use yolo_data::loader::{ImageMemory, LoaderSettings};
use yolo_data::scan::Sample;

/// Writes `count` BMP images of several sizes, each with one red rectangle on black and its label.
pub fn painted(folder: &Path, count: usize) -> Arc<[Sample]> {
    (0..count)
        .map(|i| {
            let (width, height) = [(96, 64), (64, 96), (80, 80)][i % 3];
            let (left, top, w, h) = (10 + i % 5 * 3, 8 + i % 4 * 5, 30 + i % 3 * 4, 24 + i % 5 * 3);
            let image = folder.join(format!("{i:03}.bmp"));
            let red = |x: usize, y: usize| (left..left + w).contains(&x) && (top..top + h).contains(&y);
            fs::write(&image, bmp(width, height, red)).unwrap();
            let (wide, high) = (width as f32, height as f32);
            let (cx, cy) = (left as f32 + w as f32 / 2.0, top as f32 + h as f32 / 2.0);
            Sample {
                image,
                width: width as u32,
                height: height as u32,
                boxes: vec![[(i % 3) as f32, cx / wide, cy / high, w as f32 / wide, h as f32 / high]],
                segments: Vec::new(),
            }
        })
        .collect()
}

/// A 24-bit BMP file, red or black.
pub fn bmp(width: usize, height: usize, red: impl Fn(usize, usize) -> bool) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for word in [54 + row * height, 0, 54, 40, width, height] {
        bytes.extend((word as u32).to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for y in (0..height).rev() {
        let start = bytes.len();
        for x in 0..width {
            bytes.extend([0, 0, if red(x, y) { 255 } else { 0 }]);
        }
        bytes.resize(start + row, 0);
    }
    bytes
}

/// An augmentation of this strength, which turns no image.
pub fn augment(strength: f64, mosaic: f64) -> Augment {
    Augment {
        hsv: [0.015, 0.7, 0.4],
        degrees: 0.0,
        translate: 0.1 * strength,
        scale: 0.5 * strength,
        shear: 0.0,
        perspective: 0.0,
        flipud: 0.5,
        fliplr: 0.5,
        mosaic,
        mixup: 0.0,
        copy_paste: 0.0,
    }
}

/// Settings with batches of four images of 64 pixels, which most augmentations change.
pub fn settings(workers: usize) -> LoaderSettings {
    LoaderSettings {
        image_size: 64,
        stride: 32,
        shares: vec![4],
        balance: None,
        rank: 0,
        seed: 11,
        workers,
        rect: false,
        image_weights: None,
        quad: false,
        cache: None,
        memory: ImageMemory::default(),
        augment: Augment { mixup: 0.3, degrees: 5.0, ..augment(1.0, 0.8) },
    }
}
