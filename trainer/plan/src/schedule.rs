//! Learning rate, momentum and accumulation over a run, as pure functions of the step (spec §6).
//! The trainer applies what they return to the optimizer.

use crate::hyp::HyperParameters;

/// The shortest warmup, in steps (spec §6).
const MIN_WARMUP_STEPS: f64 = 100.0;

/// Batches whose gradients are summed into one optimizer step: `max(round(nbs / batch), 1)`.
pub fn accumulate(nominal_batch: usize, batch: usize) -> usize {
    ((nominal_batch as f64 / batch as f64).round_ties_even() as usize).max(1)
}

/// The weight decay, scaled by the ratio of the accumulated batch to the nominal batch.
pub fn scaled_weight_decay(weight_decay: f64, nominal_batch: usize, batch: usize) -> f64 {
    weight_decay * (batch * accumulate(nominal_batch, batch)) as f64 / nominal_batch as f64
}

/// Scales the loss gains, which hyperparameter files state for 3 detection levels, 80 classes and
/// 640 px, to this model and image size (spec §4).
pub fn scale_gains(hyp: &mut HyperParameters, levels: usize, classes: usize, image_size: usize) {
    let by_level = 3.0 / levels as f64;
    hyp.box_gain *= by_level;
    hyp.cls *= classes as f64 / 80.0 * by_level;
    hyp.obj *= (image_size as f64 / 640.0).powi(2) * by_level;
}

/// The decay of the exponential moving average (EMA) after `updates` updates (spec §6).
pub fn ema_decay(updates: u64) -> f64 {
    0.9999 * (1.0 - (-(updates as f64) / 2000.0).exp())
}

/// The schedule of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Epochs of the run.
    pub epochs: usize,
    /// Batches per epoch.
    pub batches: usize,
    /// Images per batch over all ranks.
    pub batch: usize,
    /// The nominal batch size, up to which gradients are accumulated.
    pub nominal_batch: usize,
    /// Whether the learning rate falls along a cosine instead of a line.
    pub cosine: bool,
    lr0: f64,
    lrf: f64,
    momentum: f64,
    warmup_momentum: f64,
    warmup_bias_lr: f64,
    warmup_epochs: f64,
}

/// The settings of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepSettings {
    /// Batches to accumulate before the optimizer steps.
    pub accumulate: usize,
    /// Learning rate of the biases (group 0).
    pub lr_bias: f64,
    /// Learning rate of the weights (groups 1 and 2).
    pub lr_other: f64,
    /// Momentum, for optimizers that have it (not Adam).
    pub momentum: f64,
}

impl Schedule {
    /// The schedule of a run with these hyperparameters.
    pub fn new(
        hyp: &HyperParameters,
        epochs: usize,
        batches: usize,
        batch: usize,
        nominal_batch: usize,
        cosine: bool,
    ) -> Self {
        Self {
            epochs,
            batches,
            batch,
            nominal_batch,
            cosine,
            lr0: hyp.lr0,
            lrf: hyp.lrf,
            momentum: hyp.momentum,
            warmup_momentum: hyp.warmup_momentum,
            warmup_bias_lr: hyp.warmup_bias_lr,
            warmup_epochs: hyp.warmup_epochs,
        }
    }

    /// The factor on `lr0` in an epoch, counted from 0.
    pub fn factor(&self, epoch: usize) -> f64 {
        let done = epoch as f64 / self.epochs as f64;
        if self.cosine {
            (1.0 - (done * std::f64::consts::PI).cos()) / 2.0 * (self.lrf - 1.0) + 1.0
        } else {
            (1.0 - done) * (1.0 - self.lrf) + self.lrf
        }
    }

    /// The last step of the warmup, counted from 0.
    pub fn warmup_steps(&self) -> usize {
        (self.warmup_epochs * self.batches as f64).round_ties_even().max(MIN_WARMUP_STEPS) as usize
    }

    /// The settings of step `step`, counted from 0 over all epochs, in epoch `epoch`.
    pub fn at(&self, step: usize, epoch: usize) -> StepSettings {
        let lr = self.lr0 * self.factor(epoch);
        let warmup = self.warmup_steps();
        if step > warmup {
            let accumulate = accumulate(self.nominal_batch, self.batch);
            return StepSettings { accumulate, lr_bias: lr, lr_other: lr, momentum: self.momentum };
        }
        let rise = |from: f64, to: f64| from + (to - from) * (step as f64 / warmup as f64);
        let target = self.nominal_batch as f64 / self.batch as f64;
        StepSettings {
            accumulate: (rise(1.0, target).round_ties_even() as usize).max(1),
            lr_bias: rise(self.warmup_bias_lr, lr),
            lr_other: rise(0.0, lr),
            momentum: rise(self.warmup_momentum, self.momentum),
        }
    }
}

/// The smallest multiple of `stride` that is at least `size`, or `floor` if that is larger (spec §6).
pub fn round_image_size(size: usize, stride: usize, floor: usize) -> usize {
    size.div_ceil(stride).saturating_mul(stride).max(floor)
}
