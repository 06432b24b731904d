//! The constants of the loss, with the gains scaled to the model and the image size as training
//! does at its start (spec §4).

use yolo_plan::hyp::HyperParameters;
use yolo_plan::schedule::scale_gains;

/// The constants of the detection loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossSettings {
    /// Gain of the box loss.
    pub box_gain: f64,
    /// Gain of the objectness loss.
    pub objectness_gain: f64,
    /// Gain of the class loss.
    pub class_gain: f64,
    /// Weight of positive targets in the objectness loss (`obj_pw`).
    pub objectness_positive_weight: f64,
    /// Weight of positive targets in the class loss (`cls_pw`).
    pub class_positive_weight: f64,
    /// How far class targets stay from 0 and 1, 0 for hard targets.
    pub label_smoothing: f64,
    /// Exponent of the focal loss, 0 for none.
    pub focal_gamma: f64,
    /// The factor at which an anchor is too large or too small for a target.
    pub anchor_threshold: f64,
}

impl LossSettings {
    /// The settings of a run: gains are scaled to the number of levels and classes and to the
    /// image size in pixels; everything else is taken as it is (spec §4).
    pub fn scaled(
        hyp: &HyperParameters,
        levels: usize,
        classes: usize,
        image_size: usize,
        label_smoothing: f64,
    ) -> Self {
        let mut hyp = hyp.clone();
        scale_gains(&mut hyp, levels, classes, image_size);
        Self {
            box_gain: hyp.box_gain,
            objectness_gain: hyp.obj,
            class_gain: hyp.cls,
            objectness_positive_weight: hyp.obj_pw,
            class_positive_weight: hyp.cls_pw,
            label_smoothing,
            focal_gamma: hyp.fl_gamma,
            anchor_threshold: hyp.anchor_t,
        }
    }
}
