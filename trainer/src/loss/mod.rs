//! The detection loss (spec §3–4): box, objectness and class loss of the raw heads of a batch.
//! Targets are assigned on the CPU; the matched predictions of all levels are gathered into one
//! tensor, on which box and class loss are computed. A step therefore launches few kernels, and the
//! host never waits for the device.

pub mod assign;
mod assigned;
mod class_loss;
mod cross_entropy;
mod iou;
mod matched;
mod objectness_loss;
mod settings;

use tch::{Device, Kind, Tensor};

pub use assign::Target;
pub use iou::complete_iou;
pub use settings::LossSettings;

use crate::error::TrainError;
use assign::AnchorSize;
pub(crate) use assigned::{Assigned, Assigner};
use class_loss::ClassLoss;
use matched::{BOX_COLUMNS, Matched};
use objectness_loss::ObjectnessLoss;

/// The loss of one model.
#[derive(Debug)]
pub struct DetectionLoss {
    assigner: Assigner,
    classes: i64,
    settings: LossSettings,
    objectness: ObjectnessLoss,
    class: ClassLoss,
}

/// The loss of a batch.
#[derive(Debug)]
pub struct LossOutput {
    /// The sum of the three parts times the number of images: a scalar to call backward on.
    pub total: Tensor,
    /// Box, objectness and class loss after their gains, not multiplied by the number of images: (3),
    /// without gradient.
    pub items: Tensor,
}

impl DetectionLoss {
    /// The loss of a model with these anchors, (levels, anchors, 2) in cells of their level, and
    /// this many classes. Heads must be on `device`.
    ///
    /// # Errors
    /// When the anchors have another shape, or there are more than five levels.
    pub fn new(
        anchors: &Tensor,
        classes: usize,
        settings: LossSettings,
        device: Device,
    ) -> Result<Self, TrainError> {
        let &[levels, per_level, 2] = anchors.size().as_slice() else {
            let shape = anchors.size();
            return Err(TrainError::new(format!("anchors have shape {shape:?}, not (levels, anchors, 2)")));
        };
        let flat = Vec::<f32>::try_from(anchors.f_to_kind(Kind::Float)?.f_reshape([-1])?)?;
        let sizes: Vec<AnchorSize> = flat.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let anchors = sizes.chunks(per_level as usize).map(<[AnchorSize]>::to_vec).collect();
        Ok(Self {
            assigner: Assigner { anchors, threshold: settings.anchor_threshold as f32 },
            classes: classes as i64,
            objectness: ObjectnessLoss::new(levels as usize, &settings, device)?,
            class: ClassLoss::new(classes as i64, &settings, device)?,
            settings,
        })
    }

    /// The loss of raw heads, one (batch, anchors, rows, columns, 5 + classes) per level, for the
    /// targets of the batch.
    ///
    /// # Errors
    /// When the heads do not fit the model, when a target names an image outside the batch or a
    /// class that the model does not have, or when a tensor operation fails.
    pub fn compute(&self, heads: &[Tensor], targets: &[Target]) -> Result<LossOutput, TrainError> {
        self.compute_assigned(heads, targets, None)
    }

    /// What assigns targets, for [`Self::compute_assigned`].
    pub(crate) fn assigner(&self) -> &Assigner {
        &self.assigner
    }

    /// As [`Self::compute`], with what these targets were assigned to meanwhile. It is made here if there is none, or if
    /// it was made for heads of other sizes.
    pub(crate) fn compute_assigned(
        &self,
        heads: &[Tensor],
        targets: &[Target],
        assigned: Option<Assigned>,
    ) -> Result<LossOutput, TrainError> {
        let (batch, grids) = self.check_heads(heads)?;
        self.check_targets(targets, batch)?;
        let device = heads[0].device();
        let assigned = assigned
            .filter(|assigned| assigned.grids == grids)
            .unwrap_or_else(|| self.assigner.assign(targets, grids));
        let matched = Matched::on(device, assigned)?;

        let zero = || Tensor::f_zeros([], (Kind::Float, device));
        let (box_loss, class_loss, overlaps) = if matched.is_empty() {
            (zero()?, zero()?, None)
        } else {
            let predictions = gather(heads, &matched)?;
            let overlap = overlap(&predictions, &matched)?;
            let distance = overlap.f_neg()?.f_add_scalar(1.0)?;
            let box_loss = distance.f_mul(&matched.weights()?.f_select(1, 0)?)?.f_sum(Kind::Float)?;
            let class_loss =
                if self.classes > 1 { self.class.compute(&predictions, &matched)? } else { zero()? };
            (box_loss, class_loss, Some(overlap.f_detach()?.f_clamp_min(0)?))
        };
        let objectness_loss = self.objectness.compute(heads, &matched, overlaps.as_ref())?;

        let parts = [
            box_loss.f_mul_scalar(self.settings.box_gain)?,
            objectness_loss.f_mul_scalar(self.settings.objectness_gain)?,
            class_loss.f_mul_scalar(self.settings.class_gain)?,
        ];
        let items = Tensor::f_stack(&parts, 0)?;
        let total = items.f_sum(Kind::Float)?.f_mul_scalar(batch as f64 * self.settings.total_gain)?;
        Ok(LossOutput { total, items: items.f_detach()? })
    }

    /// The batch size and the grids `[rows, columns]` of heads that fit the model.
    fn check_heads(&self, heads: &[Tensor]) -> Result<(i64, Vec<[i64; 2]>), TrainError> {
        let shapes: Vec<Vec<i64>> = heads.iter().map(Tensor::size).collect();
        let fits = |shape: &Vec<i64>, anchors: &Vec<AnchorSize>| {
            shape.len() == 5
                && shape[0] == shapes[0][0]
                && shape[1] == anchors.len() as i64
                && shape[4] == BOX_COLUMNS + self.classes
        };
        let anchors = &self.assigner.anchors;
        let levels = anchors.len();
        if shapes.len() != levels || !shapes.iter().zip(anchors).all(|(s, a)| fits(s, a)) {
            return Err(TrainError::new(format!(
                "heads of shapes {shapes:?} do not fit a loss with {levels} levels, {} anchors per level and {} classes",
                anchors.first().map_or(0, Vec::len),
                self.classes,
            )));
        }
        Ok((shapes[0][0], shapes.iter().map(|shape| [shape[2], shape[3]]).collect()))
    }

    /// Invariant: every index that reaches the device is checked here. A wrong one would read out of
    /// bounds on a GPU, which ends the process.
    pub(crate) fn check_targets(&self, targets: &[Target], batch: i64) -> Result<(), TrainError> {
        for target in targets {
            let (image, class) = (target[0], target[1]);
            if !(0.0..batch as f32).contains(&image) {
                return Err(TrainError::new(format!(
                    "a target belongs to image {image} of a batch of {batch}"
                )));
            }
            if self.classes > 1 && !(0.0..self.classes as f32).contains(&class) {
                return Err(TrainError::new(format!(
                    "a target has class {class}, but the model has classes 0 to {}",
                    self.classes - 1
                )));
            }
        }
        Ok(())
    }
}

/// The matched predictions of all levels in one tensor, (n, 5 + classes), widened to 32 bits because
/// a mean in half precision would lose digits.
fn gather(heads: &[Tensor], matched: &Matched) -> Result<Tensor, TrainError> {
    let mut parts = Vec::with_capacity(heads.len());
    for (head, &level) in heads.iter().zip(matched.levels()) {
        if level.count > 0 {
            parts.push(matched.gather(head, level)?);
        }
    }
    Ok(Tensor::f_cat(&parts, 0)?.f_to_kind(Kind::Float)?)
}

/// Complete IoU of the decoded predictions with their targets: (n).
fn overlap(predictions: &Tensor, matched: &Matched) -> Result<Tensor, TrainError> {
    let doubled = predictions.f_narrow(1, 0, 4)?.f_sigmoid()?.f_mul_scalar(2.0)?;
    let center = doubled.f_narrow(1, 0, 2)?.f_sub_scalar(0.5)?;
    let size = doubled.f_narrow(1, 2, 2)?.f_square()?.f_mul(&matched.anchor_sizes()?)?;
    Ok(complete_iou(&center, &size, &matched.target_centers()?, &matched.target_sizes()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_were_assigned_elsewhere_give_the_same_loss() {
        let (device, float) = (Device::Cpu, Kind::Float);
        let anchors = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 1.5, 2.0, 2.0, 4.0, 4.0]).view([2, 2, 2]);
        let loss = DetectionLoss::new(&anchors, 3, LossSettings::NEUTRAL, device).unwrap();
        let heads = [8, 4].map(|side| Tensor::ones([2, 2, side, side, 8], (float, device)));
        let targets = [[0.0, 1.0, 0.3, 0.4, 0.2, 0.3], [1.0, 2.0, 0.6, 0.7, 0.5, 0.5]];
        let want = loss.compute(&heads, &targets).unwrap().items;
        // The second is for images of another size, and is not used.
        for grids in [[[8, 8], [4, 4]], [[16, 16], [8, 8]]] {
            let assigned = loss.assigner().assign(&targets, grids.to_vec());
            let got = loss.compute_assigned(&heads, &targets, Some(assigned)).unwrap().items;
            assert_eq!(got, want);
        }
        assert!(want.min().double_value(&[]) > 0.0, "{want}");
    }
}
