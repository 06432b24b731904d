//! Binary cross-entropy on logits, for objectness and class loss: with a weight on positive targets
//! and, if gamma is above zero, focal modulation (spec §4).

use tch::{Device, Reduction, TchError, Tensor};

/// The weight α of positive targets in the focal loss (spec §4).
const FOCAL_ALPHA: f64 = 0.25;

/// Binary cross-entropy of logits with targets in [0, 1].
#[derive(Debug)]
pub(super) struct BinaryCrossEntropy {
    /// Multiplies the term of positive targets; `None` if it is 1.
    positive_weight: Option<Tensor>,
    /// The exponent γ of the focal modulation; `None` without it.
    focal_gamma: Option<f64>,
}

impl BinaryCrossEntropy {
    /// A loss with this weight on positive targets; focal if `gamma` is above zero.
    pub(super) fn new(positive_weight: f64, gamma: f64, device: Device) -> Result<Self, TchError> {
        #[expect(clippy::float_cmp, reason = "exactly 1 is the neutral value of the option")]
        let neutral = positive_weight == 1.0;
        let positive_weight = if neutral {
            None
        } else {
            Some(Tensor::f_from_slice(&[positive_weight as f32])?.f_to_device(device)?)
        };
        Ok(Self { positive_weight, focal_gamma: (gamma > 0.0).then_some(gamma) })
    }

    /// The mean over all elements.
    pub(super) fn mean(&self, logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
        match self.focal_gamma {
            None => self.plain(logits, targets, None, Reduction::Mean),
            Some(gamma) => self.focal(logits, targets, gamma)?.f_mean(tch::Kind::Float),
        }
    }

    /// The sum over all elements, each times its weight (broadcast to the logits' shape).
    pub(super) fn weighted_sum(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        weights: &Tensor,
    ) -> Result<Tensor, TchError> {
        match self.focal_gamma {
            None => self.plain(logits, targets, Some(weights), Reduction::Sum),
            Some(gamma) => self.focal(logits, targets, gamma)?.f_mul(weights)?.f_sum(tch::Kind::Float),
        }
    }

    fn plain(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        weights: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor, TchError> {
        logits.f_binary_cross_entropy_with_logits(targets, weights, self.positive_weight.as_ref(), reduction)
    }

    /// Element-wise: t·α + (1−t)(1−α), times (1 − p_t)^γ, times the cross-entropy.
    fn focal(&self, logits: &Tensor, targets: &Tensor, gamma: f64) -> Result<Tensor, TchError> {
        let loss = self.plain(logits, targets, None, Reduction::None)?;
        let negative = targets.f_neg()?.f_add_scalar(1.0)?;
        let alpha = targets.f_mul_scalar(FOCAL_ALPHA)?.f_add(&negative.f_mul_scalar(1.0 - FOCAL_ALPHA)?)?;
        let probability = logits.f_sigmoid()?;
        let complement = probability.f_neg()?.f_add_scalar(1.0)?;
        let agreement = targets.f_mul(&probability)?.f_add(&negative.f_mul(&complement)?)?;
        let modulation = agreement.f_neg()?.f_add_scalar(1.0)?.f_pow_tensor_scalar(gamma)?;
        loss.f_mul(&alpha)?.f_mul(&modulation)
    }
}
