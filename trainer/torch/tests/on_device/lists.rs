//! Operations on lists of tensors: zeroing, scaling, moving averages, clipping and unscaling.

use tch::{Device, Kind, Tensor};
use tch_train::{
    Adam, AdamState, Sgd, amp_unscale, clip_grad_norm, foreach_ema, foreach_mul, foreach_zero, fused_adamw,
    fused_sgd,
};

use crate::compare::{agree, all_agree, device, doubles, many, placed};

/// Rounding of float32 in one or two operations.
const BOUND: f64 = 3e-7;

/// Rounding of a sum of a million squares in float32.
const NORM_BOUND: f64 = 1e-5;

#[test]
fn tensors_become_zero() {
    let tensors = placed(&many(1));
    foreach_zero(&tensors).unwrap();
    let want: Vec<Tensor> = doubles(&many(1)).iter().map(Tensor::zeros_like).collect();
    all_agree("zero", &tensors, &want, 0.0);
}

#[test]
fn tensors_are_scaled() {
    let tensors = placed(&many(2));
    foreach_mul(&tensors, 0.3).unwrap();
    let want: Vec<Tensor> = doubles(&many(2)).iter().map(|tensor| tensor * 0.3).collect();
    all_agree("scaled tensor", &tensors, &want, BOUND);
}

#[test]
fn averages_move_towards_the_values() {
    let (averages, values) = (placed(&many(3)), placed(&many(4)));
    let (mut want, value) = (doubles(&many(3)), doubles(&many(4)));
    for decay in [0.9, 0.25, 0.9999] {
        foreach_ema(&averages, &values, decay).unwrap();
        for (want, value) in want.iter_mut().zip(&value) {
            *want = &*want * decay + value * (1.0 - decay);
        }
    }
    all_agree("moving average", &averages, &want, 3.0 * BOUND);
    all_agree("value", &values, &value, 0.0);
}

#[test]
fn gradients_are_clipped_to_a_common_norm() {
    let want = doubles(&many(5));
    let squares: Vec<Tensor> = want.iter().map(|tensor| tensor.square().sum(Kind::Double)).collect();
    let want_norm = Tensor::stack(&squares, 0).sum(Kind::Double).sqrt();
    let norm = want_norm.double_value(&[]);
    assert!(norm > 100.0, "{norm}");

    let tight = placed(&many(5));
    let reported = clip_grad_norm(&tight, 10.0).unwrap();
    agree("norm before clipping", &reported, &want_norm, NORM_BOUND);
    let clipped: Vec<Tensor> = want.iter().map(|tensor| tensor * (10.0 / (norm + 1e-6))).collect();
    // The largest value is below 1, so the bound is absolute: it must be scaled as well.
    all_agree("clipped gradient", &tight, &clipped, NORM_BOUND * 10.0 / norm);

    let loose = placed(&many(5));
    let _norm = clip_grad_norm(&loose, norm * 2.0).unwrap();
    all_agree("gradient below the limit", &loose, &want, 0.0);
}

#[test]
fn unscaling_reports_what_is_not_finite() {
    let number = |value: f64| Tensor::full([1], value, (Kind::Float, device()));
    let (found, inverse) = (number(0.0), number(1.0 / 1024.0));
    let gradients = placed(&many(6));
    amp_unscale(&gradients, &found, &inverse).unwrap();
    let want: Vec<Tensor> = doubles(&many(6)).iter().map(|tensor| tensor / 1024.0).collect();
    // The factor is a power of two, so nothing is rounded.
    all_agree("unscaled gradient", &gradients, &want, 0.0);
    let flag = |value: f64| Tensor::from_slice(&[value]);
    agree("flag after finite gradients", &found, &flag(0.0), 0.0);

    for (bad, index) in [(f64::INFINITY, 127), (f64::NAN, 6), (f64::NEG_INFINITY, 2)] {
        let (found, gradients) = (number(0.0), placed(&many(6)));
        let last = gradients[index].reshape([-1]).narrow(0, gradients[index].numel() as i64 - 1, 1);
        drop(last.shallow_clone().fill_(bad));
        amp_unscale(&gradients, &found, &inverse).unwrap();
        agree(&format!("flag after {bad} in gradient {index}"), &found, &flag(1.0), 0.0);
    }
}

#[test]
fn the_tensors_of_a_list_may_be_on_several_devices() {
    // Every second one is on the CPU.
    let spread = |seed: i64| -> Vec<Tensor> {
        let apart = |(index, tensor): (usize, Tensor)| {
            if index % 2 == 0 { tensor } else { tensor.to_device(Device::Cpu) }
        };
        placed(&many(seed)).into_iter().enumerate().map(apart).collect()
    };
    let here = |tensors: &[Tensor]| -> Vec<Tensor> {
        tensors.iter().map(|tensor| tensor.to_device(device())).collect()
    };
    let (own, one) = (spread(7), placed(&many(7)));
    let norms = [clip_grad_norm(&own, 10.0).unwrap(), clip_grad_norm(&one, 10.0).unwrap()];
    agree("norm", &norms[0], &doubles(&norms[1..])[0].to_device(Device::Cpu), NORM_BOUND);
    let want =
        |tensors: &[Tensor]| doubles(&tensors.iter().map(|t| t.to_device(Device::Cpu)).collect::<Vec<_>>());
    all_agree("clipped gradient", &here(&own), &want(&one), NORM_BOUND);

    let (values, other) = (spread(8), placed(&many(8)));
    foreach_ema(&own, &values, 0.3).unwrap();
    foreach_ema(&one, &other, 0.3).unwrap();
    foreach_mul(&own, 0.7).unwrap();
    foreach_mul(&one, 0.7).unwrap();
    all_agree("average", &here(&own), &want(&one), NORM_BOUND);

    let sgd = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 5e-4, nesterov: true };
    let zeros = |tensors: &[Tensor]| -> Vec<Tensor> { tensors.iter().map(Tensor::zeros_like).collect() };
    fused_sgd(&own, &values, &zeros(&own), &sgd, false).unwrap();
    fused_sgd(&one, &other, &zeros(&one), &sgd, false).unwrap();
    all_agree("parameter after SGD", &here(&own), &want(&one), NORM_BOUND);

    let adam = Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1 };
    fused_adamw(&own, &values, &AdamState::new(&own).unwrap(), &adam).unwrap();
    fused_adamw(&one, &other, &AdamState::new(&one).unwrap(), &adam).unwrap();
    all_agree("parameter after AdamW", &here(&own), &want(&one), NORM_BOUND);

    foreach_zero(&own).unwrap();
    assert!(own.iter().all(|tensor| tensor.abs().max().double_value(&[]) == 0.0));
}
