//! How a step changes parameters: SGD with Nesterov momentum, Adam or AdamW, with the buffers that
//! they keep for each parameter. Each group is one fused call into libtorch.

use tch::Tensor;
use tch_train::{
    Adam, AdamState, ScaledStep, Sgd, fused_adam, fused_adam_scaled, fused_adamw, fused_sgd, fused_sgd_scaled,
};

use super::groups::Group;
use crate::error::TrainError;

/// Decay of Adam's second moment (spec §6).
pub(super) const BETA2: f64 = 0.999;
/// Added to the root of Adam's second moment; the default of `torch.optim`.
pub(super) const EPSILON: f64 = 1e-8;

/// The update rule, with the buffers of each parameter: `None` until its first step.
#[derive(Debug)]
pub(super) enum Rule {
    Sgd { buffers: Vec<Option<Tensor>> },
    Adam { decoupled: bool, moments: Vec<Option<Moments>> },
}

/// Adam's buffers of a parameter.
#[derive(Debug)]
pub(super) struct Moments {
    pub(super) first: Tensor,
    pub(super) second: Tensor,
    /// Steps taken, a float32 scalar on the parameter's device.
    pub(super) steps: Tensor,
}

impl Moments {
    /// The buffers before the first step.
    pub(super) fn new(parameter: &Tensor) -> Result<Self, TrainError> {
        let mut fresh = AdamState::new(&[parameter])?;
        match (fresh.first_moments.pop(), fresh.second_moments.pop(), fresh.steps.pop()) {
            (Some(first), Some(second), Some(steps)) => Ok(Self { first, second, steps }),
            _ => Err(TrainError::new("libtorch returned no Adam state for a parameter")),
        }
    }
}

impl Rule {
    /// SGD for `count` parameters, before its first step.
    pub(super) fn sgd(count: usize) -> Self {
        Self::Sgd { buffers: (0..count).map(|_| None).collect() }
    }

    /// Adam, or AdamW if weight decay is `decoupled`, before its first step.
    pub(super) fn adam(decoupled: bool, count: usize) -> Self {
        Self::Adam { decoupled, moments: (0..count).map(|_| None).collect() }
    }

    /// Steps the parameters at the positions `active`. Gradients of a scaled loss need what its scaler made for
    /// the step.
    pub(super) fn step(
        &mut self,
        group: &Group,
        active: &[usize],
        tensors: &[&Tensor],
        gradients: &[Tensor],
        scaled: Option<&ScaledStep>,
    ) -> Result<(), TrainError> {
        let Group { lr, momentum, weight_decay, .. } = *group;
        match self {
            Self::Sgd { buffers } => {
                // torch starts a buffer as the gradient. Starting from zeros gives the same first
                // step, since momentum · 0 + gradient is the gradient.
                let with_momentum = momentum != 0.0;
                let mut own = Vec::with_capacity(active.len());
                if with_momentum {
                    for (&index, tensor) in active.iter().zip(tensors) {
                        own.push(filled(&mut buffers[index], || Ok(tensor.f_zeros_like()?))?.shallow_clone());
                    }
                }
                let sgd = Sgd { lr, momentum, dampening: 0.0, weight_decay, nesterov: with_momentum };
                match scaled {
                    None => fused_sgd(tensors, gradients, &own, &sgd, false)?,
                    Some(step) => fused_sgd_scaled(tensors, gradients, &own, &sgd, step)?,
                }
            }
            Self::Adam { decoupled, moments } => {
                let count = active.len();
                let mut own = AdamState {
                    first_moments: Vec::with_capacity(count),
                    second_moments: Vec::with_capacity(count),
                    steps: Vec::with_capacity(count),
                };
                for (&index, tensor) in active.iter().zip(tensors) {
                    let memory = filled(&mut moments[index], || Moments::new(tensor))?;
                    own.first_moments.push(memory.first.shallow_clone());
                    own.second_moments.push(memory.second.shallow_clone());
                    own.steps.push(memory.steps.shallow_clone());
                }
                let adam = Adam { lr, beta1: momentum, beta2: BETA2, eps: EPSILON, weight_decay };
                match scaled {
                    None if *decoupled => fused_adamw(tensors, gradients, &own, &adam)?,
                    None => fused_adam(tensors, gradients, &own, &adam)?,
                    Some(step) => fused_adam_scaled(tensors, gradients, &own, &adam, *decoupled, step)?,
                }
            }
        }
        Ok(())
    }
}

/// The content of `place`, which is made first if it is empty.
fn filled<T>(
    place: &mut Option<T>,
    make: impl FnOnce() -> Result<T, TrainError>,
) -> Result<&mut T, TrainError> {
    match place {
        Some(held) => Ok(held),
        None => Ok(place.insert(make()?)),
    }
}
