//! The model of `docs/scaling.md`: what several GPUs would give, from published speeds and line rates. The
//! page's tables are those of this file, so that neither changes without the other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use yolo_plan::model::ModelSpec;
use yolo_plan::schedule::accumulate;

/// Images per training step of each GPU, as in YOLOv5's guide.
const BATCH: usize = 16;
/// YOLOv5's nominal batch: gradients are exchanged when it is full.
const NOMINAL_BATCH: usize = 64;
/// Bytes of the largest part of the gradients that is sent at once, DistributedDataParallel's default.
const BUCKET: f64 = 25.0 * 1024.0 * 1024.0;
/// The part of a step in which gradients can be sent: the backward pass, which computes twice as much as the
/// forward pass.
const BACKWARD: f64 = 2.0 / 3.0;
/// Images per second that one core decodes and augments at 640 px, from docs/benchmarks.md.
const LOADED_PER_CORE: f64 = 70.0;

/// The models, and images per second of training on one V100 as YOLOv5's README has them.
const MODELS: [(&str, f64); 5] =
    [("yolov5n", 411.0), ("yolov5s", 205.0), ("yolov5m", 103.0), ("yolov5l", 68.0), ("yolov5x", 51.0)];

/// A way to connect GPUs.
struct Link {
    gpus: usize,
    /// Bytes per second in each direction, at the narrowest place of the ring.
    rate: f64,
}

/// The columns of the tables: 8 GPUs over NVLink and PCIe 4.0, 64 over 100 and 25 Gbit/s.
const LINKS: [Link; 4] = [
    Link { gpus: 8, rate: 341.1e9 },
    Link { gpus: 8, rate: 31.5e9 },
    Link { gpus: 64, rate: 12.5e9 },
    Link { gpus: 64, rate: 3.125e9 },
];

/// Bytes of the gradients of a model for COCO, in fp32.
fn gradient_bytes(model: &str) -> f64 {
    let spec = ModelSpec::load(model, 80, None).unwrap();
    spec.summary().unwrap().parameters as f64 * 4.0
}

/// Seconds that a ring of GPUs takes to sum up so many bytes: each sends all of them nearly twice.
fn ring(bytes: f64, link: &Link) -> f64 {
    let gpus = link.gpus as f64;
    2.0 * (gpus - 1.0) / gpus * bytes / link.rate
}

/// The part of its speed that each GPU keeps.
fn efficiency(bytes: f64, images_per_second: f64, link: &Link) -> f64 {
    let step = BATCH as f64 / images_per_second;
    // The last bucket is complete only when the backward pass is over.
    let exposed = (ring(bytes, link) - BACKWARD * step).max(ring(bytes.min(BUCKET), link));
    let steps_per_exchange = accumulate(NOMINAL_BATCH, BATCH * link.gpus) as f64;
    step / (step + exposed / steps_per_exchange)
}

/// The table for GPUs that are so many times as fast as a V100.
fn table(faster: f64) -> String {
    let mut text =
        "| model | gradients, MB | step, ms | 8 GPUs, NVLink | 8 GPUs, PCIe 4.0 | 64 GPUs, 100 Gbit/s | \
                    64 GPUs, 25 Gbit/s | cores per GPU to load |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (model, published) in MODELS {
        let (bytes, rate) = (gradient_bytes(model), published * faster);
        let kept = LINKS.map(|link| format!("{:.1} %", 100.0 * efficiency(bytes, rate, &link)));
        text.push_str(&format!(
            "| {model} | {:.1} | {:.1} | {} | {:.1} |\n",
            bytes / 1e6,
            1000.0 * BATCH as f64 / rate,
            kept.join(" | "),
            rate / LOADED_PER_CORE
        ));
    }
    text
}

#[test]
fn the_tables_of_the_page_are_those_of_the_model() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scaling.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let mut current = page.clone();
    for (name, faster) in [("v100", 1.0), ("ten-times", 10.0)] {
        let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let begin = current.find(&start).unwrap() + start.len();
        let length = current[begin..].find(&end).unwrap();
        current.replace_range(begin..begin + length, &table(faster));
    }
    if std::env::var_os("YOLO_UPDATE_REFERENCE").is_some() {
        std::fs::write(&file, &current).unwrap();
        return;
    }
    assert!(page == current, "docs/scaling.md is out of date: run this test with YOLO_UPDATE_REFERENCE=1");
}

#[test]
fn a_ring_sends_the_bytes_nearly_twice() {
    let two = Link { gpus: 2, rate: 1e9 };
    assert!((ring(1e9, &two) - 1.0).abs() < 1e-9);
    let many = Link { gpus: 1000, ..two };
    assert!((ring(1e9, &many) - 1.998).abs() < 1e-9);
}

#[test]
fn what_the_backward_pass_hides_costs_nothing_but_the_last_bucket() {
    let link = Link { gpus: 8, rate: 1e9 };
    // A step of 1.6 s hides 1.07 s, and 100 MB take 0.175 s; the last 26.2 MB take 0.046 s.
    let kept = efficiency(100e6, 10.0, &link);
    assert!((kept - 1.6 / (1.6 + 0.045_875_2)).abs() < 1e-6, "{kept}");
    // 10 GB take 17.5 s, of which 16.43 s remain.
    let kept = efficiency(10e9, 10.0, &link);
    assert!((kept - 1.6 / (1.6 + 17.5 - 1.6 * BACKWARD)).abs() < 1e-6, "{kept}");
}

#[test]
fn small_batches_exchange_less_often() {
    // Two GPUs with 16 images each fill the nominal batch with every second step.
    let (two, four) = (Link { gpus: 2, rate: 1e9 }, Link { gpus: 4, rate: 1e9 });
    let lost = |link| 1.0 / efficiency(10e9, 10.0, link) - 1.0;
    let exposed = |link| (ring(10e9, link) - 1.6 * BACKWARD) / 1.6;
    assert!((lost(&two) - exposed(&two) / 2.0).abs() < 1e-9);
    assert!((lost(&four) - exposed(&four)).abs() < 1e-9);
}
