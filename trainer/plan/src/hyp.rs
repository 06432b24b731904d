//! Hyper-parameters: YOLOv5's yaml files (spec §5) as one typed value, the built-in presets, and
//! the reading of a user's own file.

use serde::{Deserialize, Serialize};

/// The hyper-parameters of a run, named as in YOLOv5's yaml.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the key of the same name, spec §5")]
pub struct HyperParameters {
    pub lr0: f64,
    pub lrf: f64,
    pub momentum: f64,
    pub weight_decay: f64,
    pub warmup_epochs: f64,
    pub warmup_momentum: f64,
    pub warmup_bias_lr: f64,
    #[serde(rename = "box")]
    pub box_gain: f64,
    pub cls: f64,
    pub cls_pw: f64,
    pub obj: f64,
    pub obj_pw: f64,
    pub iou_t: f64,
    pub anchor_t: f64,
    pub fl_gamma: f64,
    pub hsv_h: f64,
    pub hsv_s: f64,
    pub hsv_v: f64,
    pub degrees: f64,
    pub translate: f64,
    pub scale: f64,
    pub shear: f64,
    pub perspective: f64,
    pub flipud: f64,
    pub fliplr: f64,
    pub mosaic: f64,
    pub mixup: f64,
    pub copy_paste: f64,
    /// Anchors a level, overriding the model's; `None` keeps the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchors: Option<f64>,
}
