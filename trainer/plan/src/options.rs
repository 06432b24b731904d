//! What a user may say of a run, before anything is decided: the options of `yolo train` and
//! `yolo val`, `None` where nothing was said. The names are those of YOLOv5 (spec §12); the
//! defaults are applied in [`crate::run`], since a built-in data set brings some of its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The optimizers of YOLOv5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "standard terms")]
pub enum Optimizer {
    #[default]
    #[serde(rename = "SGD")]
    Sgd,
    Adam,
    AdamW,
}

/// Where decoded images are kept between epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Cache {
    Ram,
    Disk,
}

/// The options of `yolo train`. `None` and `false` mean that the user said nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, spec §12")]
pub struct TrainOptions {
    pub weights: Option<String>,
    pub cfg: Option<String>,
    pub data: Option<String>,
    pub hyp: Option<String>,
    pub epochs: Option<usize>,
    /// The total over all ranks.
    pub batch_size: Option<i64>,
    /// The nominal batch size to which gradients are accumulated (64).
    pub nbs: Option<usize>,
    pub imgsz: Option<usize>,
    pub device: Option<String>,
    /// Ranks on the CPU.
    pub nproc_per_node: Option<usize>,
    pub workers: Option<usize>,
    pub optimizer: Option<Optimizer>,
    pub sync_bn: bool,
    pub seed: Option<u64>,
    pub project: Option<PathBuf>,
    pub name: Option<String>,
    pub exist_ok: bool,
    pub nosave: bool,
    pub noval: bool,
    pub noautoanchor: bool,
    pub noplots: bool,
    pub freeze: Vec<usize>,
    pub cos_lr: bool,
    pub label_smoothing: Option<f64>,
    pub patience: Option<usize>,
    pub save_period: Option<i64>,
    pub single_cls: bool,
    pub rect: bool,
    pub cache: Option<Cache>,
}

/// The options of `yolo val` (spec §12).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, spec §12")]
pub struct ValOptions {
    pub data: Option<String>,
    pub weights: Vec<String>,
    pub batch_size: Option<usize>,
    pub imgsz: Option<usize>,
    pub conf_thres: Option<f64>,
    pub iou_thres: Option<f64>,
    pub max_det: Option<usize>,
    /// `train`, `val`, `test`, `speed` or `study`.
    pub task: Option<String>,
    pub device: Option<String>,
    pub workers: Option<usize>,
    pub single_cls: bool,
    pub augment: bool,
    pub verbose: bool,
    pub save_txt: bool,
    pub save_hybrid: bool,
    pub save_conf: bool,
    pub save_json: bool,
    pub project: Option<PathBuf>,
    pub name: Option<String>,
    pub exist_ok: bool,
    pub half: bool,
    pub dnn: bool,
}
