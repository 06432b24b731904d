//! The optimizer: learning rates and momentum as the schedule sets them, clipping, and the step
//! itself in one fused call a group. Gradients are only ever changed in place, since under
//! data-parallel training they are views into the buckets that are sent between ranks.

use tch::Tensor;
use tch_train::{Adam, AdamState, Sgd, clip_grad_norm, foreach_zero, fused_adam, fused_adamw, fused_sgd};
use yolo_plan::options::Optimizer as Kind;

use super::groups::{GROUPS, Group, Parameter, split};
use crate::error::TrainError;
use crate::model::State;

/// Decay of Adam's second moment (spec §6).
pub(super) const BETA2: f64 = 0.999;
/// What Adam adds to the root of the second moment: the default of `torch.optim`.
pub(super) const EPSILON: f64 = 1e-8;

/// SGD with Nesterov's momentum, Adam or AdamW over the three groups of a model's parameters.
///
/// Frozen parameters are members of their groups, so that positions in a checkpoint do not depend
/// on what is frozen, but they are never changed.
#[derive(Debug)]
pub struct Optimizer {
    pub(super) rule: Rule,
    /// Group after group.
    pub(super) parameters: Vec<Parameter>,
    pub(super) groups: [Group; GROUPS],
}

/// How a step is done, with the memory of each parameter: `None` until its first step.
#[derive(Debug)]
pub(super) enum Rule {
    Sgd { buffers: Vec<Option<Tensor>> },
    Adam { decoupled: bool, moments: Vec<Option<Moments>> },
}

/// What Adam remembers of a parameter.
#[derive(Debug)]
pub(super) struct Moments {
    pub(super) first: Tensor,
    pub(super) second: Tensor,
    /// Steps taken, a float32 scalar beside the parameter.
    pub(super) steps: Tensor,
}

impl Moments {
    /// The memory before the first step.
    pub(super) fn new(parameter: &Tensor) -> Result<Self, TrainError> {
        let mut fresh = AdamState::new(&[parameter])?;
        match (fresh.first_moments.pop(), fresh.second_moments.pop(), fresh.steps.pop()) {
            (Some(first), Some(second), Some(steps)) => Ok(Self { first, second, steps }),
            _ => Err(TrainError::new("libtorch made no state for a parameter of Adam")),
        }
    }
}

impl Optimizer {
    /// An optimizer that has not stepped yet. `weight_decay` is that of the run, already scaled to
    /// its batch size; only the group of other weights decays.
    ///
    /// # Errors
    /// When the momentum is not in 0..1, or 0 for SGD, since Nesterov's rule needs one.
    pub fn new(
        kind: Kind,
        state: &State,
        lr0: f64,
        momentum: f64,
        weight_decay: f64,
    ) -> Result<Self, TrainError> {
        check_momentum(momentum)?;
        if kind == Kind::Sgd && momentum == 0.0 {
            return Err(TrainError::new(
                "SGD steps with Nesterov's rule, which needs a momentum above 0, and it is 0",
            )
            .with_hint("set `momentum` above 0 in the hyper-parameters (`--hyp`); 0.937 is usual"));
        }
        let (parameters, groups) = split(state, lr0, momentum, weight_decay);
        let count = parameters.len();
        let rule = match kind {
            Kind::Sgd => Rule::sgd(count),
            Kind::Adam => Rule::adam(false, count),
            Kind::AdamW => Rule::adam(true, count),
        };
        Ok(Self { rule, parameters, groups })
    }

    /// Sets the learning rate of a group: 0 biases, 1 other weights, 2 weights of normalisations.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn set_lr(&mut self, group: usize, lr: f64) -> Result<(), TrainError> {
        let found = self.groups.get_mut(group).ok_or_else(|| {
            TrainError::new(format!("the optimizer has groups 0 to 2, and no group {group}"))
        })?;
        found.lr = lr;
        Ok(())
    }

    /// The learning rates of the groups.
    pub fn learning_rates(&self) -> [f64; 3] {
        self.groups.each_ref().map(|group| group.lr)
    }

    /// The names of the parameters of each group, in the order of a checkpoint.
    pub fn group_names(&self) -> [Vec<&str>; 3] {
        self.groups.each_ref().map(|group| {
            self.parameters[group.range.clone()].iter().map(|parameter| parameter.name.as_str()).collect()
        })
    }

    /// Sets the momentum of SGD. It does nothing for Adam and AdamW, whose decay of the first moment
    /// is not part of the warm-up (spec §6).
    ///
    /// # Errors
    /// When the momentum is not in 0..1, with which steps would grow without end.
    pub fn set_momentum(&mut self, momentum: f64) -> Result<(), TrainError> {
        check_momentum(momentum)?;
        if matches!(self.rule, Rule::Sgd { .. }) {
            self.groups.iter_mut().for_each(|group| group.momentum = momentum);
        }
        Ok(())
    }

    /// Scales all gradients together so that their norm is at most `max_norm`. The norm before, a
    /// scalar on the device: reading it waits for the device.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn clip_gradients(&self, max_norm: f64) -> Result<Tensor, TrainError> {
        Ok(clip_grad_norm(&self.gradients()?, max_norm)?)
    }

    /// Sets all gradients to zero, in place.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn zero_grad(&self) -> Result<(), TrainError> {
        Ok(foreach_zero(&self.gradients()?)?)
    }

    /// Changes every parameter that has a gradient.
    ///
    /// # Errors
    /// When libtorch refuses, for example when a gradient lies on another device.
    pub fn step(&mut self) -> Result<(), TrainError> {
        for group in &self.groups {
            let mut active = Vec::with_capacity(group.range.len());
            let mut gradients = Vec::with_capacity(group.range.len());
            for index in group.range.clone() {
                if let Some(gradient) = self.parameters[index].gradient()? {
                    active.push(index);
                    gradients.push(gradient);
                }
            }
            let tensors: Vec<&Tensor> = active.iter().map(|&index| &self.parameters[index].tensor).collect();
            self.rule.step(group, &active, &tensors, &gradients)?;
        }
        Ok(())
    }

    fn gradients(&self) -> Result<Vec<Tensor>, TrainError> {
        self.parameters.iter().filter_map(|parameter| parameter.gradient().transpose()).collect()
    }
}

impl Rule {
    /// SGD of `count` parameters that has not stepped yet.
    pub(super) fn sgd(count: usize) -> Self {
        Self::Sgd { buffers: (0..count).map(|_| None).collect() }
    }

    /// Adam, or with `decoupled` weight decay AdamW, that has not stepped yet.
    pub(super) fn adam(decoupled: bool, count: usize) -> Self {
        Self::Adam { decoupled, moments: (0..count).map(|_| None).collect() }
    }

    /// Steps the parameters at the positions `active`.
    fn step(
        &mut self,
        group: &Group,
        active: &[usize],
        tensors: &[&Tensor],
        gradients: &[Tensor],
    ) -> Result<(), TrainError> {
        let Group { lr, momentum, weight_decay, .. } = *group;
        match self {
            Self::Sgd { buffers } => {
                // Torch starts a buffer as the gradient; from zeros the first step is the same,
                // since momentum · 0 + gradient is the gradient.
                let with_momentum = momentum != 0.0;
                let mut own = Vec::with_capacity(active.len());
                if with_momentum {
                    for (&index, tensor) in active.iter().zip(tensors) {
                        own.push(filled(&mut buffers[index], || Ok(tensor.f_zeros_like()?))?.shallow_clone());
                    }
                }
                let sgd = Sgd { lr, momentum, dampening: 0.0, weight_decay, nesterov: with_momentum };
                fused_sgd(tensors, gradients, &own, &sgd, false)?;
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
                if *decoupled {
                    fused_adamw(tensors, gradients, &own, &adam)?;
                } else {
                    fused_adam(tensors, gradients, &own, &adam)?;
                }
            }
        }
        Ok(())
    }
}

/// Fails unless steps of this momentum come to rest.
fn check_momentum(momentum: f64) -> Result<(), TrainError> {
    if (0.0..1.0).contains(&momentum) {
        return Ok(());
    }
    Err(TrainError::new(format!("the momentum is {momentum}; it must be from 0 to below 1"))
        .with_hint("correct `momentum` and `warmup_momentum` in the hyper-parameters (`--hyp`)"))
}

/// What a place holds, made first when it is empty.
fn filled<T>(
    place: &mut Option<T>,
    make: impl FnOnce() -> Result<T, TrainError>,
) -> Result<&mut T, TrainError> {
    match place {
        Some(held) => Ok(held),
        None => Ok(place.insert(make()?)),
    }
}
