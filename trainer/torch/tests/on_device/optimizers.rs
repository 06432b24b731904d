//! The fused optimizers over several steps, with two groups of parameters that have settings of their
//! own.

use tch::{Device, Kind, Tensor};
use tch_train::{Adam, AdamState, Sgd, fused_adam, fused_adamw, fused_sgd};

use crate::compare::{agree, all_agree, doubles, many, placed};

const STEPS: i64 = 6;

/// Rounding of float32 over the steps.
const BOUND: f64 = 2e-6;

/// Where the second group starts.
const SPLIT: usize = 50;

/// What a buffer holds before its first step, which must not read it.
const GARBAGE: f64 = 7.0;

const NESTEROV: [Sgd; 2] = [
    Sgd { lr: 0.1, momentum: 0.937, dampening: 0.0, weight_decay: 5e-4, nesterov: true },
    Sgd { lr: 0.02, momentum: 0.8, dampening: 0.0, weight_decay: 0.0, nesterov: true },
];
const MOMENTUM: [Sgd; 2] = [
    Sgd { lr: 0.05, momentum: 0.9, dampening: 0.1, weight_decay: 0.0, nesterov: false },
    Sgd { lr: 0.1, momentum: 0.5, dampening: 0.0, weight_decay: 1e-2, nesterov: false },
];
const PLAIN: [Sgd; 2] = [
    Sgd { lr: 0.1, momentum: 0.0, dampening: 0.0, weight_decay: 1e-2, nesterov: false },
    Sgd { lr: 0.3, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false },
];
const ADAM: [Adam; 2] = [
    Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1 },
    Adam { lr: 0.003, beta1: 0.8, beta2: 0.99, eps: 1e-6, weight_decay: 0.0 },
];

/// A step of SGD in double precision. `buffer` is `None` before the first step.
fn sgd_step(weight: &mut Tensor, buffer: &mut Option<Tensor>, gradient: &Tensor, sgd: &Sgd) {
    let gradient = gradient + &*weight * sgd.weight_decay;
    let next = match buffer.take() {
        Some(buffer) => buffer * sgd.momentum + &gradient * (1.0 - sgd.dampening),
        None => gradient.copy(),
    };
    let direction = if sgd.nesterov { gradient + &next * sgd.momentum } else { next.copy() };
    *weight = &*weight - direction * sgd.lr;
    *buffer = (sgd.momentum != 0.0).then_some(next);
}

/// Six steps of two groups, on the device and in double precision.
fn compare_sgd(name: &str, groups: [Sgd; 2]) {
    let start = many(1);
    let (weights, mut want) = (placed(&start), doubles(&start));
    let buffers = placed(&start);
    buffers.iter().for_each(|buffer| drop(buffer.shallow_clone().fill_(GARBAGE)));
    let mut want_buffers: Vec<Option<Tensor>> = start.iter().map(|_| None).collect();
    for step in 0..STEPS {
        let drawn = many(100 + step);
        let gradients = placed(&drawn);
        for (range, sgd) in [0..SPLIT, SPLIT..start.len()].into_iter().zip(&groups) {
            let own: &[Tensor] = if sgd.momentum == 0.0 { &[] } else { &buffers[range.clone()] };
            fused_sgd(&weights[range.clone()], &gradients[range.clone()], own, sgd, step == 0).unwrap();
            for index in range {
                let gradient = drawn[index].to_kind(Kind::Double);
                sgd_step(&mut want[index], &mut want_buffers[index], &gradient, sgd);
            }
        }
    }
    all_agree(&format!("{name}, weight"), &weights, &want, BOUND);
    for (index, want) in want_buffers.iter().enumerate() {
        if let Some(want) = want {
            agree(&format!("{name}, momentum {index}"), &buffers[index], want, BOUND);
        }
    }
}

#[test]
fn sgd_with_nesterov_momentum() {
    compare_sgd("SGD with Nesterov momentum", NESTEROV);
}

#[test]
fn sgd_with_momentum_and_dampening() {
    compare_sgd("SGD with momentum", MOMENTUM);
}

#[test]
fn sgd_without_momentum() {
    compare_sgd("SGD without momentum", PLAIN);
}

/// The state of Adam for one parameter in double precision.
struct Moments {
    first: Tensor,
    second: Tensor,
}

/// Step number `step`, counted from 1, of Adam or, with `decoupled` weight decay, of AdamW.
fn adam_step(
    weight: &mut Tensor,
    moments: &mut Moments,
    gradient: &Tensor,
    adam: &Adam,
    decoupled: bool,
    step: i32,
) {
    let gradient = if decoupled { gradient.copy() } else { gradient + &*weight * adam.weight_decay };
    if decoupled {
        *weight = &*weight * (1.0 - adam.lr * adam.weight_decay);
    }
    moments.first = &moments.first * adam.beta1 + &gradient * (1.0 - adam.beta1);
    moments.second = &moments.second * adam.beta2 + gradient.square() * (1.0 - adam.beta2);
    let first = &moments.first / (1.0 - adam.beta1.powi(step));
    let second = &moments.second / (1.0 - adam.beta2.powi(step));
    *weight = &*weight - first / (second.sqrt() + adam.eps) * adam.lr;
}

fn compare_adam(name: &str, decoupled: bool) {
    let start = many(2);
    let (weights, mut want) = (placed(&start), doubles(&start));
    let ranges = [0..SPLIT, SPLIT..start.len()];
    let states = ranges.clone().map(|range| AdamState::new(&weights[range]).unwrap());
    let zeros = || want.iter().map(Tensor::zeros_like);
    let mut want_moments: Vec<Moments> =
        zeros().zip(zeros()).map(|(first, second)| Moments { first, second }).collect();
    for step in 0..STEPS {
        let drawn = many(200 + step);
        let gradients = placed(&drawn);
        for ((range, adam), state) in ranges.clone().into_iter().zip(&ADAM).zip(&states) {
            let fused = if decoupled { fused_adamw } else { fused_adam };
            fused(&weights[range.clone()], &gradients[range.clone()], state, adam).unwrap();
            for index in range {
                let gradient = drawn[index].to_kind(Kind::Double);
                let number = step as i32 + 1;
                adam_step(&mut want[index], &mut want_moments[index], &gradient, adam, decoupled, number);
            }
        }
    }
    all_agree(&format!("{name}, weight"), &weights, &want, BOUND);
    for (range, state) in ranges.into_iter().zip(&states) {
        for (place, index) in range.enumerate() {
            let of = |what: &str| format!("{name}, {what} {index}");
            let want = &want_moments[index];
            agree(&of("first moment"), &state.first_moments[place], &want.first, BOUND);
            agree(&of("second moment"), &state.second_moments[place], &want.second, BOUND);
            let steps = Tensor::full([], STEPS, (Kind::Double, Device::Cpu));
            agree(&of("number of steps"), &state.steps[place], &steps, 0.0);
        }
    }
}

#[test]
fn adam() {
    compare_adam("Adam", false);
}

#[test]
fn adamw() {
    compare_adam("AdamW", true);
}
