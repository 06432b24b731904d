//! The constants of the loss. Training scales the gains to the model and the image size (spec §4).

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
    /// Label-smoothing epsilon; 0 for hard targets.
    pub label_smoothing: f64,
    /// Exponent of the focal loss; 0 for none.
    pub focal_gamma: f64,
    /// The factor from which on an anchor is too large or too small for a target.
    pub anchor_threshold: f64,
}

impl LossSettings {
    /// The settings of a run: the gains are scaled to the number of levels and classes and to the
    /// image size in pixels (spec §4).
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
    /// The class targets of a match and of all other classes, after label smoothing (spec §4).
    pub(super) fn class_targets(&self) -> (f64, f64) {
        (1.0 - 0.5 * self.label_smoothing, 0.5 * self.label_smoothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_targets_equal_those_of_yolov5() {
        // `smooth_bce` of `h_schedules.json`.
        for (label_smoothing, expected) in [(0.0, (1.0, 0.0)), (0.1, (0.95, 0.05)), (0.2, (0.9, 0.1))] {
            let hyp = HyperParameters::load("scratch-low").unwrap();
            let (positive, negative) =
                LossSettings::scaled(&hyp, 3, 80, 640, label_smoothing).class_targets();
            assert!((positive - expected.0).abs() < 1e-12, "{positive}");
            assert!((negative - expected.1).abs() < 1e-12, "{negative}");
        }
    }
}
