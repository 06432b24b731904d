//! The optimizer as plain values, in the layout of PyTorch's `Optimizer.state_dict()`, and back.
//! Parameters are known by their position in the concatenated groups, as there, so the checkpoint
//! of a run can be loaded into `torch.optim` and the other way round. A continued run takes the
//! next step with the same bits as one that was never stopped.

use tch::Tensor;
use torch_checkpoint::Value;

use super::groups::{GROUPS, Group};
use super::step::{BETA2, EPSILON, Moments, Optimizer, Rule};
use crate::error::TrainError;
use crate::tensor_io::{fill, tensor_data};

impl Optimizer {
    /// Everything that the next step depends on, besides weights and gradients: `state` with the
    /// memory of each parameter that has stepped, and `param_groups`.
    ///
    /// # Errors
    /// When a tensor cannot be read from the device.
    pub fn export(&self) -> Result<Value, TrainError> {
        let mut state = Vec::new();
        for index in 0..self.parameters.len() {
            if let Some(memory) = self.rule.export(index)? {
                state.push((Value::Int(index as i64), memory));
            }
        }
        let groups = self.groups.iter().map(|group| self.export_group(group)).collect();
        Ok(Value::dict([("state", Value::Dict(state)), ("param_groups", Value::List(groups))]))
    }

    /// The settings of a group under torch's names.
    fn export_group(&self, group: &Group) -> Value {
        let mut fields = vec![
            ("lr", Value::Float(group.lr)),
            ("initial_lr", Value::Float(group.initial_lr)),
            ("weight_decay", Value::Float(group.weight_decay)),
        ];
        match &self.rule {
            Rule::Sgd { .. } => fields.extend([
                ("momentum", Value::Float(group.momentum)),
                ("dampening", Value::Int(0)),
                ("nesterov", Value::Bool(true)),
            ]),
            Rule::Adam { decoupled, .. } => fields.extend([
                ("betas", Value::Tuple(vec![Value::Float(group.momentum), Value::Float(BETA2)])),
                ("eps", Value::Float(EPSILON)),
                ("amsgrad", Value::Bool(false)),
                ("capturable", Value::Bool(false)),
                ("decoupled_weight_decay", Value::Bool(*decoupled)),
            ]),
        }
        fields.extend([
            ("maximize", Value::Bool(false)),
            ("foreach", Value::None),
            ("differentiable", Value::Bool(false)),
            ("fused", Value::None),
            ("params", Value::List(group.range.clone().map(|index| Value::Int(index as i64)).collect())),
        ]);
        Value::dict(fields)
    }

    /// Continues from what [`Self::export`] or torch has saved of an optimizer of the same kind for
    /// the same model. Learning rates, momentum and weight decay are those of the file, as torch
    /// does it. After an error the optimizer is as it was.
    ///
    /// # Errors
    /// When something is missing or does not fit; the message names it.
    pub fn import(&mut self, saved: &Value) -> Result<(), TrainError> {
        let place = "the saved optimizer";
        let groups = self.import_groups(saved).map_err(|error| error.at(place))?;
        let rule = self.import_state(saved).map_err(|error| error.at(place))?;
        self.groups = groups;
        self.rule = rule;
        Ok(())
    }

    fn import_groups(&self, saved: &Value) -> Result<[Group; GROUPS], TrainError> {
        let list = field(saved, "param_groups")?
            .as_slice()
            .ok_or_else(|| TrainError::new("`param_groups` is not a list"))?;
        if list.len() != GROUPS {
            return Err(TrainError::new(format!("it has {} groups of parameters, not {GROUPS}", list.len())));
        }
        let mut groups = self.groups.clone();
        for (number, (group, saved)) in groups.iter_mut().zip(list).enumerate() {
            self.import_group(group, saved).map_err(|error| error.at(format!("group {number}")))?;
        }
        Ok(groups)
    }

    fn import_group(&self, group: &mut Group, saved: &Value) -> Result<(), TrainError> {
        let positions = field(saved, "params")?.as_slice().unwrap_or_default();
        if positions.len() != group.range.len() {
            return Err(TrainError::new(format!(
                "it has {} parameters, and the model {}",
                positions.len(),
                group.range.len()
            )));
        }
        let expected = group.range.clone().map(|index| index as i64);
        if !positions.iter().map(Value::as_i64).eq(expected.map(Some)) {
            return Err(TrainError::new(format!(
                "its parameters are not numbered {} to {}",
                group.range.start,
                group.range.end.saturating_sub(1)
            )));
        }
        group.lr = number(saved, "lr")?;
        group.weight_decay = number(saved, "weight_decay")?;
        // Only a scheduler of torch adds it, and steps do not depend on it.
        group.initial_lr = saved.get("initial_lr").and_then(Value::as_f64).unwrap_or(group.initial_lr);
        match &self.rule {
            Rule::Sgd { .. } => {
                group.momentum = number(saved, "momentum").map_err(|error| self.of_another_kind(error))?;
                expect(saved, "nesterov", Value::Bool(true))?;
                if number(saved, "dampening")? != 0.0 {
                    return Err(TrainError::new("`dampening` is not 0"));
                }
            }
            Rule::Adam { decoupled, .. } => {
                let betas = field(saved, "betas").map_err(|error| self.of_another_kind(error))?;
                let betas: Option<Vec<f64>> =
                    betas.as_slice().and_then(|pair| pair.iter().map(Value::as_f64).collect());
                match betas.as_deref() {
                    Some(&[beta1, BETA2]) => group.momentum = beta1,
                    other => {
                        return Err(TrainError::new(format!(
                            "`betas` are {other:?}, and the second must be {BETA2}"
                        )));
                    }
                }
                if number(saved, "eps")? != EPSILON {
                    return Err(TrainError::new(format!("`eps` is not {EPSILON}")));
                }
                expect(saved, "amsgrad", Value::Bool(false))?;
                // Older versions of torch save it neither for Adam nor for AdamW.
                if saved.get("decoupled_weight_decay").is_some_and(|flag| *flag != Value::Bool(*decoupled)) {
                    return Err(self.of_another_kind(TrainError::new("`decoupled_weight_decay` differs")));
                }
            }
        }
        Ok(())
    }

    /// The error with what is behind it and what to do.
    fn of_another_kind(&self, error: TrainError) -> TrainError {
        let name = self.rule.name();
        error
            .at(format!("it is not of {name}"))
            .with_hint("continue with the optimizer that the run began with")
    }

    fn import_state(&self, saved: &Value) -> Result<Rule, TrainError> {
        let entries =
            field(saved, "state")?.as_entries().ok_or_else(|| TrainError::new("`state` is not a dict"))?;
        let mut rule = self.rule.forgotten(self.parameters.len());
        for (key, memory) in entries {
            let index = key.as_i64().and_then(|key| usize::try_from(key).ok());
            let found = index.and_then(|index| Some((index, self.parameters.get(index)?)));
            let Some((index, parameter)) = found else {
                return Err(TrainError::new(format!(
                    "`state` has the key {key:?}; the model's parameters are 0 to {}",
                    self.parameters.len().saturating_sub(1)
                )));
            };
            rule.import(index, &parameter.tensor, memory)
                .map_err(|error| error.at(format!("the state of {}", parameter.name)))?;
        }
        // Before the first step nothing has a memory; after it every parameter that learns does.
        if !entries.is_empty() {
            let forgotten = self
                .parameters
                .iter()
                .enumerate()
                .find(|(index, parameter)| parameter.tensor.requires_grad() && !rule.remembers(*index));
            if let Some((index, parameter)) = forgotten {
                return Err(TrainError::new(format!(
                    "`state` lacks the parameter {index}, {}",
                    parameter.name
                ))
                .with_hint("freeze the layers that were frozen when the run began (`--freeze`)"));
            }
        }
        Ok(rule)
    }
}

impl Rule {
    fn name(&self) -> &'static str {
        match self {
            Self::Sgd { .. } => "SGD",
            Self::Adam { decoupled: false, .. } => "Adam",
            Self::Adam { decoupled: true, .. } => "AdamW",
        }
    }

    /// The same rule without memory.
    fn forgotten(&self, count: usize) -> Self {
        match self {
            Self::Sgd { .. } => Self::sgd(count),
            Self::Adam { decoupled, .. } => Self::adam(*decoupled, count),
        }
    }

    fn remembers(&self, index: usize) -> bool {
        match self {
            Self::Sgd { buffers } => buffers[index].is_some(),
            Self::Adam { moments, .. } => moments[index].is_some(),
        }
    }

    fn export(&self, index: usize) -> Result<Option<Value>, TrainError> {
        let tensor = |tensor: &Tensor| tensor_data(tensor).map(Value::Tensor);
        match self {
            Self::Sgd { buffers } => buffers[index]
                .as_ref()
                .map(|buffer| Ok(Value::dict([("momentum_buffer", tensor(buffer)?)])))
                .transpose(),
            Self::Adam { moments, .. } => moments[index]
                .as_ref()
                .map(|moments| {
                    Ok(Value::dict([
                        ("step", tensor(&moments.steps)?),
                        ("exp_avg", tensor(&moments.first)?),
                        ("exp_avg_sq", tensor(&moments.second)?),
                    ]))
                })
                .transpose(),
        }
    }

    fn import(&mut self, index: usize, parameter: &Tensor, saved: &Value) -> Result<(), TrainError> {
        match self {
            Self::Sgd { buffers } => {
                let buffer = parameter.f_zeros_like()?;
                copy(saved, "momentum_buffer", &buffer)?;
                buffers[index] = Some(buffer);
            }
            Self::Adam { moments, .. } => {
                let memory = Moments::new(parameter)?;
                copy(saved, "exp_avg", &memory.first)?;
                copy(saved, "exp_avg_sq", &memory.second)?;
                match field(saved, "step")? {
                    Value::Tensor(_) => copy(saved, "step", &memory.steps)?,
                    // As torch saved it before version 1.12.
                    _ => drop(memory.steps.shallow_clone().f_fill_(number(saved, "step")?)?),
                }
                moments[index] = Some(memory);
            }
        }
        Ok(())
    }
}

fn field<'a>(saved: &'a Value, name: &str) -> Result<&'a Value, TrainError> {
    saved.get(name).ok_or_else(|| TrainError::new(format!("`{name}` is missing")))
}

fn number(saved: &Value, name: &str) -> Result<f64, TrainError> {
    field(saved, name)?.as_f64().ok_or_else(|| TrainError::new(format!("`{name}` is not a number")))
}

fn expect(saved: &Value, name: &str, expected: Value) -> Result<(), TrainError> {
    let found = field(saved, name)?;
    if *found == expected {
        return Ok(());
    }
    Err(TrainError::new(format!("`{name}` is {found:?}, and {expected:?} is needed")))
}

fn copy(saved: &Value, name: &str, target: &Tensor) -> Result<(), TrainError> {
    let tensor = field(saved, name)?
        .as_tensor()
        .ok_or_else(|| TrainError::new(format!("`{name}` is not a tensor")))?;
    fill(target, tensor).map_err(|error| error.at(format!("`{name}`")))
}
