//! Instruction counts of the hot paths of the trainer that are our own code: assignment of targets
//! and non-maximum suppression. `.ci/instructions` runs them; see `instructions.rs`.

#![allow(missing_docs, clippy::exit, reason = "a benchmark; gungraun's main exits")]

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use yolo_trainer::detection::{Detection, NmsSettings, suppress};
use yolo_trainer::loss::assign::{Assignment, assign_level};

/// Numbers from 0 to 1 that repeat on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 24) as f32
    }
}

/// Targets of a batch of 16 images with 20 boxes each.
fn targets() -> Vec<[f32; 6]> {
    let mut random = Random(1);
    (0..16 * 20)
        .map(|index| {
            let [x, y, w, h] = std::array::from_fn(|_| random.next());
            [(index / 20) as f32, (index % 3) as f32, x, y, 0.02 + 0.3 * w, 0.02 + 0.3 * h]
        })
        .collect()
}

#[library_benchmark]
#[bench::batch_16(setup = targets)]
fn assign(targets: Vec<[f32; 6]>) -> Vec<Assignment> {
    let anchors = [[1.25, 1.625], [2.0, 3.75], [4.125, 2.875]];
    black_box(assign_level(black_box(&targets), &anchors, [40, 40], 4.0))
}

/// The decoded outputs of one image: 6300 rows of 3 classes, one in ten of them confident.
fn predictions() -> Vec<f32> {
    let mut random = Random(2);
    (0..6300)
        .flat_map(|row| {
            let [x, y, w, h, a, b, c] = std::array::from_fn(|_| random.next());
            let objectness = if row % 10 == 0 { 0.9 } else { 0.0001 };
            [320.0 * x, 320.0 * y, 8.0 + 60.0 * w, 8.0 + 60.0 * h, objectness, a, b, c]
        })
        .collect()
}

#[library_benchmark]
#[bench::image_320(setup = predictions)]
fn nms(predictions: Vec<f32>) -> Vec<Detection> {
    let settings = NmsSettings {
        conf_thres: 0.001,
        iou_thres: 0.6,
        multi_label: true,
        agnostic: false,
        classes: None,
        max_det: 300,
    };
    black_box(suppress(black_box(&predictions), 3, &[], &settings))
}

library_benchmark_group!(name = trainer, benchmarks = [assign, nms]);

main!(library_benchmark_groups = trainer);
