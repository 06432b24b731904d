//! The ten built-in models, `yolov5n` to `yolov5x` and `yolov5n6` to `yolov5x6`. They are one
//! design in five sizes with three or four detection levels, so they are generated from the
//! channels and repeats of each level, the two multiples and the anchors.

use serde_json::{Value, json};

/// Name, depth multiple, width multiple (golden `i_model_configs.json`).
const SIZES: [(&str, f64, f64); 5] =
    [("n", 0.33, 0.25), ("s", 0.33, 0.5), ("m", 0.67, 0.75), ("l", 1.0, 1.0), ("x", 1.33, 1.25)];

/// Channels and repeats of the stages after the stem, from stride 4, for three levels.
const STAGES_P5: [(i64, i64); 4] = [(128, 3), (256, 6), (512, 9), (1024, 3)];
/// The same for four levels, up to stride 64.
const STAGES_P6: [(i64, i64); 5] = [(128, 3), (256, 6), (512, 9), (768, 3), (1024, 3)];

/// Anchors in pixels for three levels, strides 8, 16, 32 (fitted to COCO at 640 px).
const ANCHORS_P5: [[i64; 6]; 3] =
    [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]];
/// Anchors in pixels for four levels, strides 8 to 64 (fitted to COCO at 1280 px).
const ANCHORS_P6: [[i64; 6]; 4] = [
    [19, 27, 44, 40, 38, 94],
    [96, 68, 86, 152, 180, 137],
    [140, 301, 303, 264, 238, 542],
    [436, 615, 739, 380, 925, 792],
];

/// The names of the built-in models, smallest first.
pub fn names() -> Vec<String> {
    ["", "6"].iter().flat_map(|level| SIZES.map(|(size, ..)| format!("yolov5{size}{level}"))).collect()
}

/// The yaml of a built-in model, or `None` if there is none of this name.
pub(crate) fn yaml(name: &str) -> Option<Value> {
    let size = name.strip_prefix("yolov5")?;
    let (size, six) = match size.strip_suffix('6') {
        Some(size) => (size, true),
        None => (size, false),
    };
    let &(_, depth, width) = SIZES.iter().find(|(known, ..)| *known == size)?;
    let (stages, anchors) =
        if six { (&STAGES_P6[..], json!(ANCHORS_P6)) } else { (&STAGES_P5[..], json!(ANCHORS_P5)) };
    Some(json!({
        "nc": 80,
        "depth_multiple": depth,
        "width_multiple": width,
        "anchors": anchors,
        "backbone": backbone(stages),
        "head": head(stages),
    }))
}

/// Each stage halves the map with a convolution and then applies a C3.
fn backbone(stages: &[(i64, i64)]) -> Vec<Value> {
    let mut rows = vec![json!([-1, 1, "Conv", [64, 6, 2, 2]])];
    for &(channels, repeats) in stages {
        rows.push(json!([-1, 1, "Conv", [channels, 3, 2]]));
        rows.push(json!([-1, repeats, "C3", [channels]]));
    }
    let deepest = stages.last().map_or(0, |stage| stage.0);
    rows.push(json!([-1, 1, "SPPF", [deepest, 5]]));
    rows
}

/// Upsamples to stride 8, then downsamples again with a detection level at each step.
fn head(stages: &[(i64, i64)]) -> Vec<Value> {
    let first = 2 * stages.len() + 2; // The index of the head's first row.
    let mut rows = Vec::new();
    let mut laterals = Vec::new();
    for stage in (1..stages.len() - 1).rev() {
        let channels = stages[stage].0;
        laterals.push(first + rows.len());
        rows.push(json!([-1, 1, "Conv", [channels, 1, 1]]));
        rows.push(json!([-1, 1, "nn.Upsample", [null, 2, "nearest"]]));
        rows.push(json!([[-1, 2 * stage + 2], 1, "Concat", [1]]));
        rows.push(json!([-1, 3, "C3", [channels, false]]));
    }
    let mut levels = vec![first + rows.len() - 1];
    for (stage, lateral) in (2..stages.len()).zip(laterals.into_iter().rev()) {
        rows.push(json!([-1, 1, "Conv", [stages[stage - 1].0, 3, 2]]));
        rows.push(json!([[-1, lateral], 1, "Concat", [1]]));
        rows.push(json!([-1, 3, "C3", [stages[stage].0, false]]));
        levels.push(first + rows.len() - 1);
    }
    rows.push(json!([levels, 1, "Detect", ["nc", "anchors"]]));
    rows
}
