//! An optimizer step with all that belongs to it, in plain tch operations and double precision: clipping,
//! SGD, Adam or AdamW over three groups of parameters, and the moving average.

use tch::{Kind, Tensor, no_grad};
use yolo_plan::options::Optimizer as Algorithm;
use yolo_trainer::model::{Model, Role};

use crate::compare::double;
use crate::models::in_double;

/// Gradients are clipped to this norm.
const MAX_NORM: f64 = 10.0;

/// Decay of Adam's second moment, and what is added to its root.
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// The settings of a step.
pub(crate) struct Rates {
    /// Learning rates of biases, decaying weights and normalization weights.
    pub(crate) lr: [f64; 3],
    /// Of SGD, or the decay of Adam's first moment.
    pub(crate) momentum: f64,
    pub(crate) weight_decay: f64,
}

/// What the optimizer keeps of a parameter: SGD only the first, its momentum.
pub(crate) struct Memory {
    pub(crate) name: String,
    pub(crate) first: Tensor,
    pub(crate) second: Tensor,
}

/// A model in double precision that learns.
pub(crate) struct Exact {
    pub(crate) model: Model,
    /// In the order of the model's parameters.
    pub(crate) memory: Vec<Memory>,
    /// The average of every tensor of floating-point numbers, in the order of the model.
    pub(crate) average: Vec<Tensor>,
    algorithm: Algorithm,
    updates: u64,
    steps: i32,
}

impl Exact {
    /// A copy of `model` before its first step, whose average has had `updates` updates.
    pub(crate) fn new(model: &Model, algorithm: Algorithm, updates: u64) -> Self {
        let model = in_double(model);
        let memory = model.state().parameters().map(|entry| {
            let zeros = || double(&entry.tensor).zeros_like();
            Memory { name: entry.name.clone(), first: zeros(), second: zeros() }
        });
        let memory = memory.collect();
        let floating = model.state().iter().filter(|entry| entry.tensor.is_floating_point());
        let average = floating.map(|entry| double(&entry.tensor).copy()).collect();
        Self { model, memory, average, algorithm, updates, steps: 0 }
    }

    /// Clips the gradients, steps, sets them to zero and moves the average. Returns the norm of the
    /// gradients before clipping.
    pub(crate) fn update(&mut self, rates: &Rates) -> Tensor {
        self.steps += 1;
        no_grad(|| {
            let gradients: Vec<Tensor> =
                self.model.state().parameters().map(|entry| entry.tensor.grad()).collect();
            let squares: Vec<Tensor> =
                gradients.iter().map(|gradient| gradient.square().sum(Kind::Double)).collect();
            let norm = Tensor::stack(&squares, 0).sum(Kind::Double).sqrt();
            let factor = (MAX_NORM / (norm.double_value(&[]) + 1e-6)).min(1.0);
            let entries = self.model.state().parameters().zip(&mut self.memory);
            for ((entry, memory), mut gradient) in entries.zip(gradients) {
                let (lr, decay) = match entry.role {
                    Role::Bias => (rates.lr[0], 0.0),
                    Role::Weight => (rates.lr[1], rates.weight_decay),
                    Role::NormWeight | Role::Buffer => (rates.lr[2], 0.0),
                };
                let clipped = &gradient * factor;
                let direction = match self.algorithm {
                    Algorithm::Sgd => {
                        let clipped = clipped + &entry.tensor * decay;
                        memory.first = &memory.first * rates.momentum + &clipped;
                        clipped + &memory.first * rates.momentum
                    }
                    Algorithm::Adam => {
                        let clipped = clipped + &entry.tensor * decay;
                        memory.adam(&clipped, rates.momentum, self.steps)
                    }
                    Algorithm::AdamW => {
                        memory.adam(&clipped, rates.momentum, self.steps) + &entry.tensor * decay
                    }
                };
                let stepped = &entry.tensor - direction * lr;
                entry.tensor.shallow_clone().copy_(&stepped);
                let _ = gradient.zero_();
            }
            self.updates += 1;
            let decay = 0.9999 * (1.0 - (-(self.updates as f64) / 2000.0).exp());
            let floating = self.model.state().iter().filter(|entry| entry.tensor.is_floating_point());
            for (average, entry) in self.average.iter_mut().zip(floating) {
                *average = &*average * decay + &entry.tensor * (1.0 - decay);
            }
            norm
        })
    }
}

impl Memory {
    /// Updates both moments. Returns the direction of step number `step`, counted from 1.
    fn adam(&mut self, gradient: &Tensor, beta1: f64, step: i32) -> Tensor {
        self.first = &self.first * beta1 + gradient * (1.0 - beta1);
        self.second = &self.second * BETA2 + gradient.square() * (1.0 - BETA2);
        let second = &self.second / (1.0 - BETA2.powi(step));
        &self.first / (1.0 - beta1.powi(step)) / (second.sqrt() + EPSILON)
    }
}
