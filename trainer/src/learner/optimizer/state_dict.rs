//! The optimizer as plain values, in the layout of PyTorch's `Optimizer.state_dict()`, and back.
//! As there, a parameter is known by its position in the concatenated groups, so that `torch.optim`
//! loads our checkpoints and we load its. A restored optimizer takes the same next step, bit for
//! bit.

use tch::Tensor;
use torch_checkpoint::Value;

use super::Optimizer;
use super::groups::{GROUPS, Group};
use super::rule::{BETA2, EPSILON, Moments, Rule};
use crate::error::TrainError;
use crate::tensor_io::{fill, tensor_data};

impl Optimizer {
    /// Everything that the next step depends on besides weights and gradients: `state` with the
    /// buffers of each parameter that has stepped, and `param_groups`.
    ///
    /// # Errors
    /// When a tensor cannot be read from the device.
    pub fn state_dict(&self) -> Result<Value, TrainError> {
        let mut state = Vec::new();
        for index in 0..self.parameters.len() {
            if let Some(memory) = self.rule.state_of(index)? {
                state.push((Value::Int(index as i64), memory));
            }
        }
        let groups = self.groups.iter().map(|group| self.group_dict(group)).collect();
        Ok(Value::dict([("state", Value::Dict(state)), ("param_groups", Value::List(groups))]))
    }

    /// The settings of a group, under torch's names.
    fn group_dict(&self, group: &Group) -> Value {
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

    /// Restores what [`Self::state_dict`] or torch saved of an optimizer of the same kind for the same
    /// model. As in torch, learning rates, momentum and weight decay become those of the file. After
    /// an error the optimizer is unchanged.
    ///
    /// # Errors
    /// When an entry is missing or does not fit; the message names it.
    pub fn load_state_dict(&mut self, saved: &Value) -> Result<(), TrainError> {
        let place = "the saved optimizer";
        let groups = self.read_groups(saved).map_err(|error| error.at(place))?;
        let rule = self.read_state(saved).map_err(|error| error.at(place))?;
        self.groups = groups;
        self.rule = rule;
        Ok(())
    }

    fn read_groups(&self, saved: &Value) -> Result<[Group; GROUPS], TrainError> {
        let list = field(saved, "param_groups")?
            .as_slice()
            .ok_or_else(|| TrainError::new("`param_groups` is not a list"))?;
        if list.len() != GROUPS {
            return Err(TrainError::new(format!("it has {} parameter groups, not {GROUPS}", list.len())));
        }
        let mut groups = self.groups.clone();
        for (number, (group, saved)) in groups.iter_mut().zip(list).enumerate() {
            self.read_group(group, saved).map_err(|error| error.at(format!("group {number}")))?;
        }
        Ok(groups)
    }

    fn read_group(&self, group: &mut Group, saved: &Value) -> Result<(), TrainError> {
        let positions = field(saved, "params")?.as_slice().unwrap_or_default();
        if positions.len() != group.range.len() {
            return Err(TrainError::new(format!(
                "it has {} parameters, but the model has {}",
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
        // Only torch's schedulers add it, and steps do not depend on it.
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
                            "`betas` is {other:?}, but the second must be {BETA2}"
                        )));
                    }
                }
                if number(saved, "eps")? != EPSILON {
                    return Err(TrainError::new(format!("`eps` is not {EPSILON}")));
                }
                expect(saved, "amsgrad", Value::Bool(false))?;
                // Older versions of torch do not save it.
                if saved.get("decoupled_weight_decay").is_some_and(|flag| *flag != Value::Bool(*decoupled)) {
                    return Err(self.of_another_kind(TrainError::new("`decoupled_weight_decay` differs")));
                }
            }
        }
        Ok(())
    }

    /// Adds to the error that the saved optimizer is of another kind.
    fn of_another_kind(&self, error: TrainError) -> TrainError {
        let name = self.rule.name();
        error.at(format!("it is not {name}")).with_hint("resume with the optimizer that the run started with")
    }

    fn read_state(&self, saved: &Value) -> Result<Rule, TrainError> {
        let entries =
            field(saved, "state")?.as_entries().ok_or_else(|| TrainError::new("`state` is not a dict"))?;
        let mut rule = self.rule.fresh(self.parameters.len());
        for (key, memory) in entries {
            let index = key.as_i64().and_then(|key| usize::try_from(key).ok());
            let found = index.and_then(|index| Some((index, self.parameters.get(index)?)));
            let Some((index, parameter)) = found else {
                return Err(TrainError::new(format!(
                    "`state` has the key {key:?}, but the model's parameters are 0 to {}",
                    self.parameters.len().saturating_sub(1)
                )));
            };
            rule.restore(index, &parameter.tensor, memory)
                .map_err(|error| error.at(format!("the state of {}", parameter.name)))?;
        }
        // Before the first step no parameter has buffers; after it, every trained one has.
        if !entries.is_empty() {
            let incomplete = self
                .parameters
                .iter()
                .enumerate()
                .find(|(index, parameter)| parameter.tensor.requires_grad() && !rule.has_state(*index));
            if let Some((index, parameter)) = incomplete {
                return Err(TrainError::new(format!(
                    "`state` lacks the parameter {index}, {}",
                    parameter.name
                ))
                .with_hint("freeze the same layers as when the run started (`--freeze`)"));
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

    /// The same rule before its first step.
    fn fresh(&self, count: usize) -> Self {
        match self {
            Self::Sgd { .. } => Self::sgd(count),
            Self::Adam { decoupled, .. } => Self::adam(*decoupled, count),
        }
    }

    fn has_state(&self, index: usize) -> bool {
        match self {
            Self::Sgd { buffers } => buffers[index].is_some(),
            Self::Adam { moments, .. } => moments[index].is_some(),
        }
    }

    fn state_of(&self, index: usize) -> Result<Option<Value>, TrainError> {
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

    fn restore(&mut self, index: usize, parameter: &Tensor, saved: &Value) -> Result<(), TrainError> {
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
                    // torch saved a number before version 1.12.
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
    Err(TrainError::new(format!("`{name}` is {found:?}, but {expected:?} is needed")))
}

fn copy(saved: &Value, name: &str, target: &Tensor) -> Result<(), TrainError> {
    let tensor = field(saved, name)?
        .as_tensor()
        .ok_or_else(|| TrainError::new(format!("`{name}` is not a tensor")))?;
    fill(target, tensor).map_err(|error| error.at(format!("`{name}`")))
}
