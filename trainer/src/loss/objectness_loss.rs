//! The objectness loss (spec §4): cross-entropy of the objectness of all cells and anchors.

use tch::{Device, Kind, Tensor};

use super::BOX_COLUMNS;
use super::cross_entropy::BinaryCrossEntropy;
use super::matched::Matched;
use super::settings::LossSettings;
use crate::error::TrainError;

/// Weight of each level's objectness loss, finest level first, for models with three levels.
const BALANCE_3: [f64; 3] = [4.0, 1.0, 0.4];
/// The same for models with any other number of levels (spec §4).
const BALANCE: [f64; 5] = [4.0, 1.0, 0.25, 0.06, 0.02];

/// The objectness loss of one model.
#[derive(Debug)]
pub(super) struct ObjectnessLoss {
    cross_entropy: BinaryCrossEntropy,
    balance: &'static [f64],
}

impl ObjectnessLoss {
    /// The loss of a model with this many levels, at most five.
    pub(super) fn new(levels: usize, settings: &LossSettings, device: Device) -> Result<Self, TrainError> {
        if levels > BALANCE.len() {
            return Err(TrainError::new(format!(
                "the model has {levels} detection levels, but the loss supports at most {}",
                BALANCE.len()
            )));
        }
        let cross_entropy =
            BinaryCrossEntropy::new(settings.objectness_positive_weight, settings.focal_gamma, device)?;
        Ok(Self { cross_entropy, balance: if levels == 3 { &BALANCE_3 } else { &BALANCE } })
    }

    /// Mean over all cells and anchors of a level, weighted by level. The target of a matched one is
    /// its overlap with the labeled box, that of every other one zero.
    pub(super) fn compute(
        &self,
        heads: &[Tensor],
        matched: &Matched,
        overlaps: Option<&Tensor>,
    ) -> Result<Tensor, TrainError> {
        let mut sum: Option<Tensor> = None;
        for ((head, &level), &balance) in heads.iter().zip(matched.levels()).zip(self.balance) {
            let logits = head.f_select(4, BOX_COLUMNS - 1)?.f_to_kind(Kind::Float)?;
            let mut targets = Tensor::f_zeros(logits.size(), (Kind::Float, logits.device()))?;
            if let Some(overlaps) = overlaps.filter(|_| level.count > 0) {
                matched.write(&mut targets, overlaps, level)?;
            }
            let loss = self.cross_entropy.mean(&logits, &targets)?.f_mul_scalar(balance)?;
            sum = Some(match sum {
                Some(sum) => sum.f_add(&loss)?,
                None => loss,
            });
        }
        sum.ok_or_else(|| TrainError::new("the model has no detection level"))
    }
}
