//! The three parameter groups (spec §6): biases, weights that decay, and weights of normalization
//! layers. Their order is part of the checkpoint's layout, in which a parameter is known by its
//! position in the concatenated groups.

use std::ops::Range;

use tch::Tensor;

use crate::error::TrainError;
use crate::model::{Entry, Role, State};

/// Number of groups.
pub(super) const GROUPS: usize = 3;

/// A parameter, shared with the model.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) tensor: Tensor,
}

impl Parameter {
    fn new(entry: &Entry) -> Self {
        Self { name: entry.name.clone(), tensor: entry.tensor.shallow_clone() }
    }

    /// The gradient; `None` for a frozen parameter and before the first backward pass.
    pub(super) fn gradient(&self) -> Result<Option<Tensor>, TrainError> {
        if !self.tensor.requires_grad() {
            return Ok(None);
        }
        let gradient = self.tensor.f_grad()?;
        Ok(gradient.defined().then_some(gradient))
    }
}

/// The settings of a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Its parameters in the concatenated list.
    pub(super) range: Range<usize>,
    pub(super) lr: f64,
    /// The learning rate before any schedule.
    pub(super) initial_lr: f64,
    /// Momentum of SGD, or the decay of the first moment of Adam.
    pub(super) momentum: f64,
    pub(super) weight_decay: f64,
}

/// The parameters of a model by group, in registration order within each group.
pub(super) fn split(
    state: &State,
    lr0: f64,
    momentum: f64,
    weight_decay: f64,
) -> (Vec<Parameter>, [Group; GROUPS]) {
    let mut parameters: Vec<Parameter> = Vec::new();
    let groups = [(Role::Bias, 0.0), (Role::Weight, weight_decay), (Role::NormWeight, 0.0)];
    let groups = groups.map(|(role, weight_decay)| {
        let start = parameters.len();
        parameters.extend(state.parameters().filter(|entry| entry.role == role).map(Parameter::new));
        Group { range: start..parameters.len(), lr: lr0, initial_lr: lr0, momentum, weight_decay }
    });
    (parameters, groups)
}
