//! Defaults: YOLOv5's (spec §12), and those of the built-in data set, which is so small that
//! YOLOv5's defaults learn slowly on it.

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

/// YOLOv5's defaults.
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

/// The defaults of `--data shapes`: a run takes three minutes on two cores.
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

/// The options of a training run with the defaults of its data set applied, before any is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveOptions<'a> {
    /// The argument of `--weights`; empty for random weights.
    pub weights: &'a str,
    /// The argument of `--cfg`; empty if the weights describe the model.
    pub cfg: &'a str,
    /// Images per step over all ranks.
    pub batch: i64,
    /// Pixels, before rounding.
    pub image_size: usize,
    /// Epochs.
    pub epochs: usize,
}

impl<'a> EffectiveOptions<'a> {
    /// The options, with defaults for those that are absent.
    pub fn of(options: &'a TrainOptions) -> Self {
        let defaults = of(options.data.as_deref().unwrap_or(DATA));
        let cfg = match options.cfg.as_deref() {
            Some(cfg) => cfg,
            None if options.weights.as_deref().is_some_and(|weights| !weights.is_empty()) => "",
            None => defaults.cfg,
        };
        Self {
            // The default weights of a data set also go with another model of its kind.
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
