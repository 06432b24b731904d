//! The class loss (spec §4): cross-entropy of the class scores of all assignments.

use tch::{Device, TchError, Tensor};

use super::BOX_COLUMNS;
use super::cross_entropy::BinaryCrossEntropy;
use super::matched::Matched;
use super::settings::LossSettings;

/// The class loss of one model.
#[derive(Debug)]
pub(super) struct ClassLoss {
    cross_entropy: BinaryCrossEntropy,
    classes: i64,
    /// The targets of the labeled class and of all other classes.
    targets: (f64, f64),
}

impl ClassLoss {
    pub(super) fn new(classes: i64, settings: &LossSettings, device: Device) -> Result<Self, TchError> {
        Ok(Self {
            cross_entropy: BinaryCrossEntropy::new(
                settings.class_positive_weight,
                settings.focal_gamma,
                device,
            )?,
            classes,
            targets: smoothed(settings.label_smoothing),
        })
    }

    /// Mean over the classes, then over each level's assignments, summed over the levels.
    pub(super) fn compute(&self, predictions: &Tensor, matched: &Matched) -> Result<Tensor, TchError> {
        let (positive, negative) = self.targets;
        let logits = predictions.f_narrow(1, BOX_COLUMNS, self.classes)?;
        let mut targets = logits.f_detach()?.f_full_like(negative)?;
        let _ = targets.f_scatter_value_(1, &matched.classes()?, positive)?;
        let weights = matched.weights()?.f_div_scalar(self.classes)?;
        self.cross_entropy.weighted_sum(&logits, &targets, &weights)
    }
}

/// The targets of the labeled class and of all other classes, after label smoothing (spec §4).
fn smoothed(epsilon: f64) -> (f64, f64) {
    (1.0 - 0.5 * epsilon, 0.5 * epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_targets_equal_those_of_yolov5() {
        // `smooth_bce` of `h_schedules.json`.
        for (epsilon, expected) in [(0.0, (1.0, 0.0)), (0.1, (0.95, 0.05)), (0.2, (0.9, 0.1))] {
            let (positive, negative) = smoothed(epsilon);
            assert!((positive - expected.0).abs() < 1e-12, "{positive}");
            assert!((negative - expected.1).abs() < 1e-12, "{negative}");
        }
    }
}
