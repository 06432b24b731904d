//! Fused optimizers and list operations against plain tch computations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor};
use tch_train::{
    Adam, AdamState, Sgd, amp_unscale, clip_grad_norm, foreach_ema, foreach_mul, foreach_zero, fused_adam,
    fused_adamw, fused_sgd,
};

const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);
const STEPS: i64 = 6;

fn tensors(seed: i64) -> Vec<Tensor> {
    // All threads of the process share one generator, and tests run in parallel.
    static GENERATOR: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = GENERATOR.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    tch::manual_seed(seed);
    vec![Tensor::randn([7, 3], FLOAT), Tensor::randn([5], FLOAT), Tensor::randn([2, 3, 3, 3], FLOAT)]
}

fn copies(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(Tensor::copy).collect()
}

fn difference(a: &[Tensor], b: &[Tensor]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs().max().double_value(&[])).fold(0.0, f64::max)
}

#[test]
fn sgd_follows_the_formula_over_several_steps() {
    for (momentum, nesterov, weight_decay) in [(0.937, true, 5e-4), (0.9, false, 0.0), (0.0, false, 1e-2)] {
        let sgd = Sgd { lr: 0.1, momentum, dampening: 0.0, weight_decay, nesterov };
        let parameters = tensors(1);
        let mut want = copies(&parameters);
        let buffers: Vec<Tensor> = parameters.iter().map(Tensor::zeros_like).collect();
        let mut want_buffers = copies(&buffers);
        for step in 0..STEPS {
            let gradients = tensors(100 + step);
            fused_sgd(&parameters, &gradients, &buffers, &sgd, false).unwrap();
            for ((w, buffer), gradient) in want.iter_mut().zip(&mut want_buffers).zip(&gradients) {
                let gradient = gradient + &*w * weight_decay;
                *buffer = &*buffer * momentum + &gradient;
                let direction = if nesterov { gradient + &*buffer * momentum } else { buffer.copy() };
                *w = &*w - direction * 0.1;
            }
        }
        assert!(difference(&parameters, &want) < 1e-5, "{}", difference(&parameters, &want));
        assert!(difference(&parameters, &tensors(1)) > 0.1);
        if momentum > 0.0 {
            assert!(difference(&buffers, &want_buffers) < 1e-5);
        }
    }
}

#[test]
fn sgd_without_momentum_needs_no_buffers() {
    let sgd = Sgd { lr: 0.5, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    let parameters = tensors(1);
    fused_sgd::<_, _, Tensor>(&parameters, &tensors(2), &[], &sgd, true).unwrap();
    let want: Vec<Tensor> = tensors(1).iter().zip(&tensors(2)).map(|(w, g)| w - g * 0.5).collect();
    assert!(difference(&parameters, &want) < 1e-6);
}

#[test]
fn both_adams_follow_the_formula_over_several_steps() {
    let adam = Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1 };
    for decoupled in [false, true] {
        let parameters = tensors(1);
        let state = AdamState::new(&parameters).unwrap();
        let mut want = copies(&parameters);
        let zeros = || parameters.iter().map(Tensor::zeros_like).collect::<Vec<_>>();
        let (mut first, mut second) = (zeros(), zeros());
        for step in 0..STEPS {
            let gradients = tensors(100 + step);
            let fused = if decoupled { fused_adamw } else { fused_adam };
            fused(&parameters, &gradients, &state, &adam).unwrap();
            let (bias1, bias2) = (1.0 - 0.9f64.powi(step as i32 + 1), 1.0 - 0.999f64.powi(step as i32 + 1));
            for i in 0..want.len() {
                let w = &want[i];
                let (w, gradient) = if decoupled {
                    (w * (1.0 - 0.01 * 0.1), gradients[i].copy())
                } else {
                    (w.copy(), &gradients[i] + w * 0.1)
                };
                first[i] = &first[i] * 0.9 + &gradient * 0.1;
                second[i] = &second[i] * 0.999 + &gradient * &gradient * 0.001;
                want[i] = w - (&first[i] / bias1) / ((&second[i] / bias2).sqrt() + 1e-8) * 0.01;
            }
        }
        assert!(difference(&parameters, &want) < 1e-5, "{}", difference(&parameters, &want));
        assert!(difference(&state.first_moments, &first) < 1e-6);
        assert_eq!(state.steps[2].double_value(&[]), STEPS as f64);
    }
}

#[test]
fn lists_that_do_not_match_are_refused() {
    let sgd = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    let parameters = tensors(1);
    let error = fused_sgd(&parameters, &tensors(2)[1..], &tensors(3), &sgd, false).unwrap_err();
    assert_eq!(error.to_string(), "SGD step: there are 3 tensors but 2 gradients");
    assert!(fused_sgd::<_, _, Tensor>(&parameters, &tensors(2), &[], &sgd, false).is_err());
    let error = foreach_zero(&[Tensor::new()]).unwrap_err();
    assert!(error.to_string().contains("tensor 0 is undefined"), "{error}");
    assert!(foreach_ema(&parameters, &parameters[..1], 0.5).is_err());
}

#[test]
fn clipping_scales_to_the_norm_and_never_up() {
    let gradients = tensors(4);
    let all = Tensor::cat(&gradients.iter().map(|g| g.reshape([-1])).collect::<Vec<_>>(), 0);
    let norm = all.square().sum(Kind::Double).sqrt().double_value(&[]);
    assert!(norm > 2.0);

    // A limit above the norm changes nothing, bit for bit.
    let loose = copies(&gradients);
    assert!((clip_grad_norm(&loose, norm * 2.0).unwrap().double_value(&[]) - norm).abs() < 1e-5);
    assert_eq!(difference(&loose, &gradients), 0.0);

    let tight = copies(&gradients);
    let _ = clip_grad_norm(&tight, 1.5).unwrap();
    let want: Vec<Tensor> = gradients.iter().map(|g| g * (1.5 / (norm + 1e-6))).collect();
    assert!(difference(&tight, &want) < 1e-6);
    assert_eq!(clip_grad_norm::<Tensor>(&[], 1.0).unwrap().double_value(&[]), 0.0);
}

#[test]
fn list_operations_work_in_place() {
    let (a, b) = (tensors(1), tensors(2));
    foreach_ema(&a, &b, 0.75).unwrap();
    let want: Vec<Tensor> = tensors(1).iter().zip(&b).map(|(a, b)| a * 0.75 + b * 0.25).collect();
    assert!(difference(&a, &want) < 1e-6);
    foreach_mul(&a, 2.0).unwrap();
    assert!(difference(&a, &want) > 0.1);
    foreach_zero(&a).unwrap();
    assert!(a.iter().all(|tensor| tensor.abs().max().double_value(&[]) == 0.0));
}

#[test]
fn unscaling_finds_what_is_not_finite() {
    let (found, inverse) = (Tensor::zeros([1], FLOAT), Tensor::full([1], 0.25, FLOAT));
    let gradients = [Tensor::full([3], 8.0, FLOAT), Tensor::from_slice(&[1f32, 2.0])];
    amp_unscale(&gradients, &found, &inverse).unwrap();
    assert_eq!((gradients[0].double_value(&[0]), found.double_value(&[0])), (2.0, 0.0));
    let gradients = [Tensor::from_slice(&[1f32, f32::INFINITY])];
    amp_unscale(&gradients, &found, &inverse).unwrap();
    assert_eq!(found.double_value(&[0]), 1.0);
}
