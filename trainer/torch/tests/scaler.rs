//! The loss scale against `torch.amp.GradScaler` of PyTorch: seven steps, two of which overflow, with clipping
//! and each optimizer. The expected numbers are PyTorch's, with a growth interval of 2.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor};
use tch_train::{
    Adam, AdamState, GradScaler, ScaledStep, ScalerSettings, ScalerState, Sgd, fused_adam_scaled,
    fused_sgd_scaled,
};

const INF: f32 = f32::INFINITY;

/// The gradients of each step without the scale: of three parameters, and of one in a tensor of its own. The
/// second step is clipped.
const GRADIENTS: [[f32; 4]; 7] = [
    [0.5, -1.0, 2.0, 0.25],
    [30.0, 0.0, -40.0, 3.0],
    [1.0, INF, 0.0, 1.0],
    [0.5, 0.5, 0.5, -2.0],
    [1.0, f32::NAN, 0.0, 1.0],
    [-0.25, 1.5, 4.0, 0.75],
    [0.125, -0.5, 0.0, 1.0],
];

/// The norm of each before clipping.
const NORMS: [f64; 7] = [2.3048861, 50.08992, f64::INFINITY, 2.1794496, f64::NAN, 4.3445368, 1.125];

/// The scale and the good steps in a row after each step. Two good steps double the scale, an overflow
/// halves it.
const SCALES: [(f64, i64); 7] =
    [(65536.0, 1), (131072.0, 0), (65536.0, 0), (65536.0, 1), (32768.0, 0), (32768.0, 1), (65536.0, 0)];

/// Whether each step changes anything.
const TAKEN: [bool; 7] = [true, true, false, true, false, true, true];

/// The parameters after each step.
const SGD: [[f64; 4]; 7] = [
    [0.9031000, -1.8062000, 2.6143000, 0.4515500],
    [-0.2778794, -1.7201482, 3.9621742, 0.3162417],
    [-0.2778794, -1.7201482, 3.9621742, 0.3162417],
    [-0.8953895, -1.7360590, 4.3563781, 0.6281729],
    [-0.8953895, -1.7360590, 4.3563781, 0.6281729],
    [-1.3571974, -1.9886281, 3.9914505, 0.5855020],
    [-1.8173016, -1.9837246, 4.0193529, 0.4240511],
];
const ADAM: [[f64; 4]; 7] = [
    [0.9000000, -1.9000000, 2.9000001, 0.4000000],
    [0.8201798, -1.8316191, 2.9555492, 0.3053690],
    [0.8201798, -1.8316191, 2.9555492, 0.3053690],
    [0.7533209, -1.8111264, 2.9942865, 0.3433006],
    [0.7533209, -1.8111264, 2.9942865, 0.3433006],
    [0.7009311, -1.8472270, 2.9971967, 0.3529250],
    [0.6554679, -1.8619781, 2.9994779, 0.3379603],
];
const ADAMW: [[f64; 4]; 7] = [
    [0.8990000, -1.8980000, 2.8970001, 0.3995000],
    [0.8183733, -1.8290962, 2.9500182, 0.3046242],
    [0.8183733, -1.8290962, 2.9500182, 0.3046242],
    [0.7508388, -1.8095405, 2.9863365, 0.3425554],
    [0.7508388, -1.8095405, 2.9863365, 0.3425554],
    [0.6978944, -1.8456761, 2.9869058, 0.3521779],
    [0.6519594, -1.8607160, 2.9869242, 0.3371930],
];

const RULE: Sgd = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.01, nesterov: true };
const ADAM_RULE: Adam = Adam { lr: 0.1, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 };

/// Two parameters of these values.
fn split(values: [f32; 4]) -> [Tensor; 2] {
    [Tensor::from_slice(&values[..3]), Tensor::from_slice(&values[3..])]
}

fn values(tensors: &[Tensor]) -> Vec<f64> {
    Vec::try_from(Tensor::cat(tensors, 0).to_kind(Kind::Double)).unwrap()
}

/// The bits of all tensors, in which even the sign of zero counts.
fn bits(tensors: &[&Tensor]) -> Vec<u32> {
    tensors
        .iter()
        .flat_map(|tensor| Vec::<f32>::try_from(tensor.reshape([-1])).unwrap())
        .map(f32::to_bits)
        .collect()
}

fn scaler() -> GradScaler {
    GradScaler::new(Device::Cpu, ScalerSettings { growth_interval: 2, ..ScalerSettings::default() }).unwrap()
}

/// Takes the steps with `take` and compares with PyTorch. `state` is what an optimizer keeps.
fn compare(
    name: &str,
    expected: [[f64; 4]; 7],
    state: &[&Tensor],
    take: impl Fn(&[Tensor; 2], &[Tensor; 2], &ScaledStep),
) {
    let parameters = split([1.0, -2.0, 3.0, 0.5]);
    let mut scaler = scaler();
    for (step, want) in expected.into_iter().enumerate() {
        let what = format!("{name}, step {step}");
        let before = scaler.state().unwrap().scale;
        // The derivative of g·w times the scale is what a backward pass of the scaled loss gives.
        let gradients = split(GRADIENTS[step].map(|value| value * before as f32));
        let (norm, scaled) = scaler.clip(&gradients, 10.0).unwrap();
        let (norm, expected) = (norm.double_value(&[]), NORMS[step]);
        let same = norm == expected || norm.is_nan() && expected.is_nan();
        assert!(same || (norm - expected).abs() < 1e-5, "{what}: {norm}");

        let all: Vec<&Tensor> = parameters.iter().chain(state.iter().copied()).collect();
        let unchanged = bits(&all);
        take(&parameters, &gradients, &scaled);
        scaler.update(&scaled).unwrap();
        assert_eq!(bits(&all) != unchanged, TAKEN[step], "{what}");
        for (got, want) in values(&parameters).iter().zip(want) {
            assert!((got - want).abs() < 2e-6, "{what}: {got}, not {want}");
        }
        let ScalerState { scale, growth_tracker } = scaler.state().unwrap();
        assert_eq!((scale, growth_tracker), SCALES[step], "{what}");
    }
}

#[test]
fn sgd_skips_steps_that_overflow() {
    let buffers = split([0.0; 4]);
    let state: Vec<&Tensor> = buffers.iter().collect();
    compare("SGD", SGD, &state, |parameters, gradients, step| {
        fused_sgd_scaled(parameters, gradients, &buffers, &RULE, step).unwrap();
    });
}

#[test]
fn both_adams_skip_steps_that_overflow_and_do_not_count_them() {
    for (name, expected, decoupled) in [("Adam", ADAM, false), ("AdamW", ADAMW, true)] {
        let moments = AdamState::new(&split([0.0; 4])).unwrap();
        let lists = [&moments.first_moments, &moments.second_moments, &moments.steps];
        let state: Vec<&Tensor> = lists.into_iter().flatten().collect();
        compare(name, expected, &state, |parameters, gradients, step| {
            fused_adam_scaled(parameters, gradients, &moments, &ADAM_RULE, decoupled, step).unwrap();
        });
        assert!(moments.steps.iter().all(|steps| steps.double_value(&[]) == 5.0), "{name}");
    }
}

#[test]
fn the_loss_is_multiplied_by_the_scale() {
    let scaler = GradScaler::new(Device::Cpu, ScalerSettings::default()).unwrap();
    let loss = scaler.scale(&Tensor::from(1.5f32)).unwrap();
    assert_eq!((loss.double_value(&[]), loss.kind()), (1.5 * 65536.0, Kind::Float));
}

#[test]
fn a_restored_scale_grows_as_if_the_run_had_not_stopped() {
    let finite = || Tensor::from_slice(&[1.0f32]);
    let step = |scaler: &mut GradScaler| {
        let (_norm, step) = scaler.clip(&[finite()], 10.0).unwrap();
        scaler.update(&step).unwrap();
        scaler.state().unwrap()
    };
    let mut first = scaler();
    let saved = step(&mut first);
    assert_eq!(saved, ScalerState { scale: 65536.0, growth_tracker: 1 });
    let mut second = scaler();
    second.restore(saved).unwrap();
    assert_eq!(step(&mut second), step(&mut first));
    assert_eq!(second.state().unwrap(), ScalerState { scale: 131_072.0, growth_tracker: 0 });
}

#[test]
fn what_is_no_scale_is_refused() {
    for scale in [0.0, -2.0, f64::INFINITY, f64::NAN] {
        let error = scaler().restore(ScalerState { scale, growth_tracker: 0 }).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("restoring the loss scale: the scale {scale} is not a finite number above 0")
        );
    }
    let error = scaler().clip::<Tensor>(&[], 10.0).unwrap_err().to_string();
    assert_eq!(error, "clipping scaled gradients: there are no gradients");
}
