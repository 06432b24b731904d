//! [`Optimizer`]: learning rates and momentum as the schedule sets them, clipping, and the step.
//! Gradients are only ever changed in place, because in data-parallel training they are views into
//! the reducer's buckets.

mod groups;
mod rule;
mod state_dict;

use tch::Tensor;
use tch_train::{ScaledStep, clip_grad_norm, foreach_zero};
use yolo_plan::options::Optimizer as Algorithm;

use self::groups::{GROUPS, Group, Parameter, split};
use self::rule::Rule;
use crate::error::TrainError;
use crate::model::State;

/// SGD with Nesterov momentum, Adam or AdamW over the three groups of a model's parameters.
///
/// Frozen parameters belong to their groups too, so that positions in a checkpoint do not depend on
/// what is frozen. They are never changed.
#[derive(Debug)]
pub struct Optimizer {
    rule: Rule,
    /// The parameters of the first group, then the second, then the third.
    parameters: Vec<Parameter>,
    groups: [Group; GROUPS],
}

impl Optimizer {
    /// An optimizer before its first step. `weight_decay` is already scaled to the batch size; only
    /// the group of decaying weights uses it.
    ///
    /// # Errors
    /// When the momentum is not in 0..1, or is 0 for SGD, since Nesterov's rule needs one.
    pub fn new(
        algorithm: Algorithm,
        state: &State,
        lr0: f64,
        momentum: f64,
        weight_decay: f64,
    ) -> Result<Self, TrainError> {
        check_momentum(momentum)?;
        if algorithm == Algorithm::Sgd && momentum == 0.0 {
            return Err(TrainError::new("the momentum is 0, but SGD with Nesterov's rule needs one above 0")
                .with_hint("set `momentum` above 0 in the hyperparameters (`--hyp`); 0.937 is usual"));
        }
        let (parameters, groups) = split(state, lr0, momentum, weight_decay);
        let count = parameters.len();
        let rule = match algorithm {
            Algorithm::Sgd => Rule::sgd(count),
            Algorithm::Adam => Rule::adam(false, count),
            Algorithm::AdamW => Rule::adam(true, count),
        };
        Ok(Self { rule, parameters, groups })
    }

    /// Sets the learning rate of a group: 0 is biases, 1 decaying weights, 2 normalization weights.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn set_lr(&mut self, group: usize, lr: f64) -> Result<(), TrainError> {
        let found = self
            .groups
            .get_mut(group)
            .ok_or_else(|| TrainError::new(format!("the optimizer has groups 0 to 2, not {group}")))?;
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

    /// Sets the momentum of SGD. Does nothing for Adam and AdamW, whose decay of the first moment is
    /// not part of the warm-up (spec §6).
    ///
    /// # Errors
    /// When the momentum is not in 0..1, since steps would then grow without limit.
    pub fn set_momentum(&mut self, momentum: f64) -> Result<(), TrainError> {
        check_momentum(momentum)?;
        if matches!(self.rule, Rule::Sgd { .. }) {
            self.groups.iter_mut().for_each(|group| group.momentum = momentum);
        }
        Ok(())
    }

    /// Scales all gradients so that their common norm is at most `max_norm`. Returns the norm before,
    /// a scalar on the device; reading it waits for the device.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn clip_gradients(&self, max_norm: f64) -> Result<Tensor, TrainError> {
        Ok(clip_grad_norm(&self.gradients()?, max_norm)?)
    }

    /// Sets all gradients to zero, in place.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn zero_grad(&self) -> Result<(), TrainError> {
        Ok(foreach_zero(&self.gradients()?)?)
    }

    /// Changes every parameter that has a gradient.
    ///
    /// # Errors
    /// When libtorch fails, for example because a gradient is on another device.
    pub fn step(&mut self) -> Result<(), TrainError> {
        self.step_with(None)
    }

    /// [`Self::step`] on gradients of a scaled loss, which it unscales and clips. Changes nothing if one of them has
    /// overflowed; the host does not learn whether it did.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn step_scaled(&mut self, step: &ScaledStep) -> Result<(), TrainError> {
        self.step_with(Some(step))
    }

    fn step_with(&mut self, scaled: Option<&ScaledStep>) -> Result<(), TrainError> {
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
            self.rule.step(group, &active, &tensors, &gradients, scaled)?;
        }
        Ok(())
    }

    pub(super) fn gradients(&self) -> Result<Vec<Tensor>, TrainError> {
        self.parameters.iter().filter_map(|parameter| parameter.gradient().transpose()).collect()
    }
}

/// Fails unless steps with this momentum converge.
fn check_momentum(momentum: f64) -> Result<(), TrainError> {
    if (0.0..1.0).contains(&momentum) {
        return Ok(());
    }
    Err(TrainError::new(format!("the momentum is {momentum}; it must be from 0 to below 1"))
        .with_hint("correct `momentum` and `warmup_momentum` in the hyperparameters (`--hyp`)"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;
    use tch::{Device, Kind, no_grad};
    use torch_checkpoint::Value;

    use super::*;
    use crate::model::Role;

    const ALGORITHMS: [(&str, Algorithm); 3] =
        [("SGD", Algorithm::Sgd), ("Adam", Algorithm::Adam), ("AdamW", Algorithm::AdamW)];

    const TENSORS: [(&str, Role); 4] = [
        ("conv.weight", Role::Weight),
        ("bn.weight", Role::NormWeight),
        ("bn.bias", Role::Bias),
        ("head.bias", Role::Bias),
    ];

    /// The results of `torch.optim` on the same weights and gradients.
    fn golden() -> Json {
        serde_json::from_str(include_str!("../../../tests/golden/optim.json")).unwrap()
    }

    fn floats(list: &Json) -> Vec<f32> {
        list.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect()
    }

    fn tensor(golden: &Json, values: &Json, name: &str) -> Tensor {
        let shape: Vec<i64> =
            golden["shapes"][name].as_array().unwrap().iter().map(|side| side.as_i64().unwrap()).collect();
        Tensor::from_slice(&floats(&values[name])).reshape(shape)
    }

    fn start(golden: &Json) -> State {
        let mut state = State::default();
        for (name, role) in TENSORS {
            let tensor = tensor(golden, &golden["start"], name).set_requires_grad(true);
            state.register(name.to_owned(), tensor, role).unwrap();
        }
        let counter = Tensor::zeros([], (Kind::Int64, Device::Cpu));
        state.register("bn.num_batches_tracked".to_owned(), counter, Role::Buffer).unwrap();
        state
    }

    fn optimizer(golden: &Json, algorithm: Algorithm, state: &State) -> Optimizer {
        let number = |name: &str| golden[name].as_f64().unwrap();
        Optimizer::new(algorithm, state, number("lr0"), number("momentum"), number("weight_decay")).unwrap()
    }

    /// Gives every trained parameter the gradients of a step, through a backward pass.
    fn backward(golden: &Json, state: &State, step: usize) {
        for entry in state.parameters().filter(|entry| entry.tensor.requires_grad()) {
            let gradient = tensor(golden, &golden["gradients"][step], &entry.name);
            (&entry.tensor * gradient).sum(Kind::Float).backward();
        }
    }

    /// One training step; returns the norm of the gradients before clipping.
    fn train(golden: &Json, optimizer: &mut Optimizer, state: &State, step: usize) -> f64 {
        backward(golden, state, step);
        for (group, lr) in golden["learning_rates"][step].as_array().unwrap().iter().enumerate() {
            optimizer.set_lr(group, lr.as_f64().unwrap()).unwrap();
        }
        optimizer.set_momentum(golden["momenta"][step].as_f64().unwrap()).unwrap();
        let norm = optimizer.clip_gradients(golden["max_norm"].as_f64().unwrap()).unwrap();
        optimizer.step().unwrap();
        optimizer.zero_grad().unwrap();
        norm.double_value(&[])
    }

    fn weights(state: &State) -> Vec<Vec<f32>> {
        state.parameters().map(|entry| Vec::try_from(entry.tensor.detach().reshape([-1])).unwrap()).collect()
    }

    #[test]
    fn steps_equal_those_of_torch() {
        let golden = golden();
        for (name, algorithm) in ALGORITHMS {
            let state = start(&golden);
            let mut optimizer = optimizer(&golden, algorithm, &state);
            for (step, expected) in golden["cases"][name].as_array().unwrap().iter().enumerate() {
                let norm = train(&golden, &mut optimizer, &state, step);
                assert!(
                    (norm - expected["norm"].as_f64().unwrap()).abs() < 1e-5,
                    "{name}, step {step}: {norm}"
                );
                for (entry, found) in state.parameters().zip(weights(&state)) {
                    let expected = floats(&expected["weights"][&entry.name]);
                    for (found, expected) in found.iter().zip(&expected) {
                        // A few float32 roundings: fused kernels order the operations differently.
                        let difference = (found - expected).abs();
                        assert!(difference < 2e-6, "{name}, step {step}, {}: {found} {expected}", entry.name);
                    }
                }
            }
        }
    }

    #[test]
    fn the_memory_layout_does_not_change_a_step() {
        let golden = golden();
        for (name, algorithm) in ALGORITHMS {
            let (plain, channels_last) = (start(&golden), start(&golden));
            tch_train::set_channels_last(channels_last.get("conv.weight").unwrap()).unwrap();
            let mut optimizers = [&plain, &channels_last].map(|state| optimizer(&golden, algorithm, state));
            for step in 0..4 {
                train(&golden, &mut optimizers[0], &plain, step);
                train(&golden, &mut optimizers[1], &channels_last, step);
            }
            for (plain, other) in
                weights(&plain).iter().flatten().zip(weights(&channels_last).iter().flatten())
            {
                assert!((plain - other).abs() < 1e-6, "{name}: {plain} {other}");
            }
        }
    }

    #[test]
    fn a_frozen_parameter_never_moves_and_the_others_do() {
        let golden = golden();
        for (name, algorithm) in ALGORITHMS {
            for (frozen, _) in TENSORS {
                let state = start(&golden);
                let _ = state.get(frozen).unwrap().set_requires_grad(false);
                let before = weights(&state);
                let mut optimizer = optimizer(&golden, algorithm, &state);
                for step in 0..4 {
                    train(&golden, &mut optimizer, &state, step);
                }
                for ((entry, before), after) in state.parameters().zip(before).zip(weights(&state)) {
                    assert_eq!(before == after, entry.name == frozen, "{name}: {} with {frozen}", entry.name);
                }
                // Positions in a checkpoint do not depend on what is frozen.
                let saved = optimizer.state_dict().unwrap();
                assert_eq!(saved.get("state").unwrap().as_entries().unwrap().len(), TENSORS.len() - 1);
                optimizer.load_state_dict(&saved).unwrap();
            }
        }
    }

    #[test]
    fn a_saved_run_goes_on_with_the_same_bits() {
        let golden = golden();
        let folder = tempfile::tempdir().unwrap();
        for (name, algorithm) in ALGORITHMS {
            for saved_after in 0..4 {
                let state = start(&golden);
                let mut first = optimizer(&golden, algorithm, &state);
                for step in 0..saved_after {
                    train(&golden, &mut first, &state, step);
                }
                let path = folder.path().join(format!("{name}{saved_after}.pt"));
                let model = state.to_value(false).unwrap();
                let root = Value::dict([("model", model), ("optimizer", first.state_dict().unwrap())]);
                torch_checkpoint::write_pt(&path, &root).unwrap();

                let read = torch_checkpoint::read(&path).unwrap();
                let continued = start(&golden);
                no_grad(|| {
                    for (ours, theirs) in continued.iter().zip(&state) {
                        ours.tensor.shallow_clone().copy_(&theirs.tensor);
                    }
                });
                let mut second = optimizer(&golden, algorithm, &continued);
                second.load_state_dict(read.root.get("optimizer").unwrap()).unwrap();
                assert_eq!(second.learning_rates(), first.learning_rates());
                assert_eq!(second.groups, first.groups);
                for step in saved_after..4 {
                    train(&golden, &mut first, &state, step);
                    train(&golden, &mut second, &continued, step);
                }
                assert_eq!(weights(&state), weights(&continued), "{name} saved after {saved_after}");
                assert_eq!(first.state_dict().unwrap(), second.state_dict().unwrap());
            }
        }
    }

    #[test]
    fn gradients_are_set_to_zero_in_place() {
        let golden = golden();
        let state = start(&golden);
        let optimizer = optimizer(&golden, Algorithm::Sgd, &state);
        optimizer.zero_grad().unwrap();
        backward(&golden, &state, 1);
        let gradient = state.get("conv.weight").unwrap().grad();
        assert!(gradient.abs().sum(Kind::Float).double_value(&[]) > 0.0);
        optimizer.zero_grad().unwrap();
        assert_eq!(gradient.abs().sum(Kind::Float).double_value(&[]), 0.0);
        assert_eq!(gradient.data_ptr(), state.get("conv.weight").unwrap().grad().data_ptr());
    }

    /// The exported value with one entry, named by its path, replaced or (with `None`) removed.
    fn changed(value: &Value, path: &[Value], replacement: Option<Value>) -> Value {
        let (first, rest) = path.split_first().unwrap();
        let replace = |value: &Value| match rest {
            [] => replacement.clone(),
            rest => Some(changed(value, rest, replacement.clone())),
        };
        match value {
            Value::Dict(entries) => Value::Dict(
                entries
                    .iter()
                    .filter_map(|(key, value)| {
                        let value = if key == first { replace(value) } else { Some(value.clone()) };
                        Some((key.clone(), value?))
                    })
                    .collect(),
            ),
            Value::List(items) => {
                Value::List(
                    (0..)
                        .zip(items)
                        .filter_map(|(index, item)| {
                            if *first == Value::Int(index) { replace(item) } else { Some(item.clone()) }
                        })
                        .collect(),
                )
            }
            other => panic!("{other:?} has no entries"),
        }
    }

    #[test]
    fn errors_name_the_entry_and_change_nothing() {
        let golden = golden();
        let word = |text: &str| Value::Str(text.to_owned());
        let check = |algorithm, path: &[Value], replacement: Option<Value>, message: &str| {
            let state = start(&golden);
            let mut optimizer = optimizer(&golden, algorithm, &state);
            train(&golden, &mut optimizer, &state, 1);
            let saved = optimizer.state_dict().unwrap();
            let error = optimizer.load_state_dict(&changed(&saved, path, replacement)).unwrap_err();
            assert_eq!(error.to_string(), format!("the saved optimizer: {message}"));
            assert_eq!(optimizer.state_dict().unwrap(), saved);
        };
        let groups = || word("param_groups");
        let of_group = |name: &str| vec![groups(), Value::Int(1), word(name)];
        let (sgd, adam, adamw) = (Algorithm::Sgd, Algorithm::Adam, Algorithm::AdamW);
        check(sgd, &[groups()], None, "`param_groups` is missing");
        check(sgd, &[groups(), Value::Int(2)], None, "it has 2 parameter groups, not 3");
        check(sgd, &of_group("lr"), None, "group 1: `lr` is missing");
        check(
            sgd,
            &of_group("params"),
            Some(Value::List(vec![])),
            "group 1: it has 0 parameters, but the model has 1",
        );
        check(sgd, &of_group("momentum"), None, "group 1: it is not SGD: `momentum` is missing");
        check(
            adam,
            &of_group("decoupled_weight_decay"),
            Some(Value::Bool(true)),
            "group 1: it is not Adam: `decoupled_weight_decay` differs",
        );
        check(sgd, &[word("state")], None, "`state` is missing");
        check(sgd, &[word("state"), Value::Int(2)], None, "`state` lacks the parameter 2, conv.weight");
        let memory = |index, name: &str| vec![word("state"), Value::Int(index), word(name)];
        check(sgd, &memory(0, "momentum_buffer"), None, "the state of bn.bias: `momentum_buffer` is missing");
        check(adamw, &memory(1, "exp_avg_sq"), None, "the state of head.bias: `exp_avg_sq` is missing");
        check(adamw, &memory(1, "step"), Some(word("two")), "the state of head.bias: `step` is not a number");
        let short = torch_checkpoint::TensorData::from_f32(vec![1], &[0.0]);
        check(
            adam,
            &memory(1, "exp_avg"),
            Some(Value::Tensor(short)),
            "the state of head.bias: `exp_avg`: its shape is [1], not [3]",
        );
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let golden = golden();
        let state = start(&golden);
        assert!(Optimizer::new(Algorithm::Sgd, &state, 0.01, 0.0, 0.0).is_err());
        assert!(Optimizer::new(Algorithm::Adam, &state, 0.01, 1.5, 0.0).is_err());
        let mut optimizer = optimizer(&golden, Algorithm::Sgd, &state);
        assert!(optimizer.set_momentum(f64::NAN).is_err());
        assert_eq!(
            optimizer.set_lr(3, 0.1).unwrap_err().to_string(),
            "the optimizer has groups 0 to 2, not 3"
        );
    }
}
