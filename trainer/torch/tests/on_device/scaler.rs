//! The loss scale: a step on scaled gradients is that on unscaled ones, a step that overflows changes nothing,
//! and the host waits for neither.

use tch::{Kind, Tensor};
use tch_train::{
    Adam, AdamState, GradScaler, ScalerSettings, ScalerState, Sgd, clip_grad_norm, fused_adam_scaled,
    fused_adamw, fused_sgd, fused_sgd_scaled,
};

use crate::compare::{agree, all_agree, device, doubles, many, placed};
use crate::host_waits::waits_in;

const RULE: Sgd = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.01, nesterov: true };
const ADAM: Adam = Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1 };

/// The norm of the clipped gradients. Those of [`many`] have a larger one.
const MAX_NORM: f64 = 10.0;

/// Rounding of float32.
const BOUND: f64 = 2e-6;

fn scaler() -> GradScaler {
    GradScaler::new(device(), ScalerSettings { growth_interval: 2, ..ScalerSettings::default() }).unwrap()
}

/// The gradients of a loss that was multiplied by the scale.
fn scaled(seed: i64, scaler: &GradScaler) -> Vec<Tensor> {
    let scale = scaler.state().unwrap().scale;
    placed(&many(seed).iter().map(|gradient| gradient * scale).collect::<Vec<_>>())
}

fn zeros() -> Vec<Tensor> {
    placed(&many(1).iter().map(Tensor::zeros_like).collect::<Vec<_>>())
}

#[test]
fn steps_on_scaled_gradients_are_steps_on_clipped_ones() {
    let mut scaler = scaler();
    let (weights, buffers, plain, plain_buffers) = (placed(&many(1)), zeros(), placed(&many(1)), zeros());
    let (adam_weights, adam_plain) = (placed(&many(1)), placed(&many(1)));
    let (moments, plain_moments) = (AdamState::new(&weights).unwrap(), AdamState::new(&weights).unwrap());
    for seed in 10..15 {
        let (one, other) = (scaled(seed, &scaler), scaled(seed, &scaler));
        let (norm, step) = scaler.clip(&one, MAX_NORM).unwrap();
        fused_sgd_scaled(&weights, &one, &buffers, &RULE, &step).unwrap();
        fused_adam_scaled(&adam_weights, &other, &moments, &ADAM, true, &step).unwrap();
        scaler.update(&step).unwrap();

        let gradients = placed(&many(seed));
        let plain_norm = clip_grad_norm(&gradients, MAX_NORM).unwrap();
        agree("norm", &norm, &plain_norm.to_device(tch::Device::Cpu).to_kind(Kind::Double), BOUND);
        fused_sgd(&plain, &gradients, &plain_buffers, &RULE, false).unwrap();
        fused_adamw(&adam_plain, &gradients, &plain_moments, &ADAM).unwrap();
    }
    all_agree("weight", &weights, &on_cpu(&plain), BOUND);
    all_agree("momentum", &buffers, &on_cpu(&plain_buffers), BOUND);
    all_agree("weight of AdamW", &adam_weights, &on_cpu(&adam_plain), BOUND);
    assert_eq!(scaler.state().unwrap(), ScalerState { scale: 4.0 * 65536.0, growth_tracker: 1 });
}

#[test]
fn a_step_that_overflows_changes_nothing_and_halves_the_scale() {
    let mut scaler = scaler();
    let (weights, buffers) = (placed(&many(1)), zeros());
    let moments = AdamState::new(&weights).unwrap();
    for bad in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let gradients = scaled(2, &scaler);
        let mut last = gradients[gradients.len() - 1].reshape([-1]).narrow(0, 3, 1);
        let _ = last.fill_(bad);
        let (norm, step) = scaler.clip(&gradients, MAX_NORM).unwrap();
        assert!(!norm.double_value(&[]).is_finite(), "{bad}");
        fused_sgd_scaled(&weights, &gradients, &buffers, &RULE, &step).unwrap();
        fused_adam_scaled(&weights, &gradients, &moments, &ADAM, false, &step).unwrap();
        scaler.update(&step).unwrap();
    }
    all_agree("weight", &weights, &doubles(&many(1)), 0.0);
    all_agree("momentum", &buffers, &on_cpu(&zeros()), 0.0);
    for lists in [&moments.first_moments, &moments.second_moments, &moments.steps] {
        let zeros: Vec<Tensor> = on_cpu(lists).iter().map(Tensor::zeros_like).collect();
        all_agree("state of Adam", lists, &zeros, 0.0);
    }
    assert_eq!(scaler.state().unwrap(), ScalerState { scale: 65536.0 / 8.0, growth_tracker: 0 });
}

#[test]
fn nothing_of_it_waits_for_the_device() {
    let (weights, buffers, gradients) = (placed(&many(1)), zeros(), placed(&many(2)));
    let loss = gradients[0].sum(Kind::Float);
    let waits = waits_in(|| {
        let mut scaler = scaler();
        let _loss = scaler.scale(&loss).unwrap();
        let (_norm, step) = scaler.clip(&gradients, MAX_NORM).unwrap();
        fused_sgd_scaled(&weights, &gradients, &buffers, &RULE, &step).unwrap();
        scaler.update(&step).unwrap();
    });
    assert_eq!(waits, 0);
}

/// Copies on the CPU in double precision.
fn on_cpu(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.to_device(tch::Device::Cpu).to_kind(Kind::Double)).collect()
}
