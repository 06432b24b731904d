//! What holds when the user says nothing: YOLOv5's defaults (spec §12), and those that the
//! built-in data set brings, since YOLOv5's learn slowly on a set so small.

use crate::hyp::HyperParameters;
use crate::options::{Optimizer, TrainOptions};

/// The defaults of one data set.
pub(crate) struct Defaults {
    pub(crate) weights: &'static str,
    pub(crate) cfg: &'static str,
    pub(crate) hyp: fn() -> HyperParameters,
    pub(crate) optimizer: Optimizer,
    pub(crate) epochs: usize,
    pub(crate) batch: i64,
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

/// What counts for a training run: the options that were said, else the defaults of its data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counting<'a> {
    /// The word of `--weights`; empty: none.
    pub weights: &'a str,
    /// The word of `--cfg`; empty: the model is that of the weights.
    pub cfg: &'a str,
    /// Images a step over all ranks, as it was said.
    pub batch: i64,
    /// Pixels, before they are rounded.
    pub image_size: usize,
    /// Epochs.
    pub epochs: usize,
}

impl<'a> Counting<'a> {
    /// The options that count.
    pub fn of(options: &'a TrainOptions) -> Self {
        let defaults = of(options.data.as_deref().unwrap_or(DATA));
        let cfg = match options.cfg.as_deref() {
            Some(cfg) => cfg,
            None if options.weights.as_deref().is_some_and(|word| !word.is_empty()) => "",
            None => defaults.cfg,
        };
        Self {
            // Whoever asks for a model of the built-in set's kind means it without weights.
            weights: options.weights.as_deref().unwrap_or(defaults.weights),
            cfg,
            batch: options.batch_size.unwrap_or(defaults.batch),
            image_size: options.imgsz.unwrap_or(defaults.image_size),
            epochs: options.epochs.unwrap_or(defaults.epochs),
        }
    }
}

/// YOLOv5's default data set.
pub(crate) const DATA: &str = "data/coco128.yaml";

/// The defaults that go with `--data`.
pub(crate) fn of(data: &str) -> &'static Defaults {
    if data == "shapes" { &SHAPES } else { &YOLOV5 }
}
