//! The constants of the loss. Training scales the gains to the model and the image size (spec §4).

use yolo_plan::batch::QUAD;
use yolo_plan::run::TrainTask;
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
    /// Label-smoothing epsilon; 0 for hard targets.
    pub label_smoothing: f64,
    /// Exponent of the focal loss; 0 for none.
    pub focal_gamma: f64,
    /// The factor from which on an anchor is too large or too small for a target.
    pub anchor_threshold: f64,
    /// Factor of the total, but not of its three parts: 4 with `--quad`, where one image is made of four.
    pub total_gain: f64,
}

impl LossSettings {
    /// No gain, weight or option changes the loss. Anchors fit targets up to four times as large or
    /// small, which is the default.
    pub const NEUTRAL: Self = Self {
        box_gain: 1.0,
        objectness_gain: 1.0,
        class_gain: 1.0,
        objectness_positive_weight: 1.0,
        class_positive_weight: 1.0,
        label_smoothing: 0.0,
        focal_gamma: 0.0,
        anchor_threshold: 4.0,
        total_gain: 1.0,
    };

    /// The settings of a run whose model has this many levels. The gains are scaled to the number of
    /// levels and classes and to the image size (spec §4).
    pub fn of_task(task: &TrainTask, levels: usize) -> Self {
        let mut hyp = task.hyp.clone();
        scale_gains(&mut hyp, levels, task.data.names.len(), task.image_size);
        Self {
            box_gain: hyp.box_gain,
            objectness_gain: hyp.obj,
            class_gain: hyp.cls,
            objectness_positive_weight: hyp.obj_pw,
            class_positive_weight: hyp.cls_pw,
            label_smoothing: task.label_smoothing,
            focal_gamma: hyp.fl_gamma,
            anchor_threshold: hyp.anchor_t,
            total_gain: if task.quad { QUAD as f64 } else { 1.0 },
        }
    }
}
