//! What holds when the user says nothing: YOLOv5's defaults (spec §12), and those that the
//! built-in data set brings, since YOLOv5's learn slowly on a set so small.

use crate::hyp::HyperParameters;
use crate::options::Optimizer;

/// The defaults of one data set.
pub(crate) struct Defaults {
    pub(crate) weights: &'static str,
    pub(crate) cfg: &'static str,
    pub(crate) hyp: fn() -> HyperParameters,
    pub(crate) optimizer: Optimizer,
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
    pub(crate) nbs: usize,
    pub(crate) image_size: usize,
}

/// YOLOv5's own.
const YOLOV5: Defaults = Defaults {
    weights: "yolov5s.pt",
    cfg: "",
    hyp: HyperParameters::low,
    optimizer: Optimizer::Sgd,
    epochs: 100,
    batch: 16,
    nbs: 64,
    image_size: 640,
};

/// Those of `--data shapes`: small enough for two cores and five minutes.
const SHAPES: Defaults = Defaults {
    weights: "",
    cfg: "yolov5n",
    hyp: HyperParameters::shapes,
    optimizer: Optimizer::AdamW,
    epochs: 20,
    batch: 16,
    nbs: 16,
    image_size: 160,
};

/// YOLOv5's default data set.
pub(crate) const DATA: &str = "data/coco128.yaml";

/// The defaults that go with `--data`.
pub(crate) fn of(data: &str) -> &'static Defaults {
    if data == "shapes" { &SHAPES } else { &YOLOV5 }
}
