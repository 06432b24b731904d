//! Batch normalization with SiLU compared with the separate operations in double precision: results, gradients and
//! running statistics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor, no_grad};
use tch_train::{batch_norm_silu, can_batch_norm_silu, set_num_threads, to_channels_last};

const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);
const MOMENTUM: f64 = 0.03;
const EPS: f64 = 1e-3;

/// Everything that a pass forward and backward computes.
#[derive(Debug)]
struct Pass {
    output: Tensor,
    /// Of input, weight and bias.
    gradients: [Tensor; 3],
    /// Running mean and variance.
    running: [Tensor; 2],
}

struct Case {
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    /// The gradient of the output.
    gradient: Tensor,
}

impl Case {
    /// Channels with means far from 0, as convolutions give them.
    fn new(shape: [i64; 4]) -> Self {
        tch::manual_seed(7);
        let channel = [1, shape[1], 1, 1];
        let input = Tensor::randn(shape, FLOAT) * (Tensor::rand(channel, FLOAT) * 3.0 + 0.1)
            + Tensor::randn(channel, FLOAT) * 4.0;
        Self {
            input: to_channels_last(&input).unwrap(),
            weight: Tensor::rand([shape[1]], FLOAT) * 2.0 - 0.5,
            bias: Tensor::randn([shape[1]], FLOAT),
            gradient: Tensor::randn(shape, FLOAT),
        }
    }

    fn pass(&self, kind: Kind, function: impl Fn([&Tensor; 5]) -> Tensor) -> Pass {
        let leaf = |tensor: &Tensor| tensor.to_kind(kind).copy().set_requires_grad(true);
        let inputs = [&self.input, &self.weight, &self.bias].map(leaf);
        let channels = self.weight.size()[0];
        let running =
            [Tensor::zeros([channels], (kind, Device::Cpu)), Tensor::ones([channels], (kind, Device::Cpu))];
        let [input, weight, bias] = inputs.each_ref();
        let output = function([input, weight, bias, &running[0], &running[1]]);
        (&output * self.gradient.to_kind(kind)).sum(kind).backward();
        Pass { output: output.detach(), gradients: inputs.map(|input| input.grad()), running }
    }

    fn fused(&self) -> Pass {
        self.pass(Kind::Float, |[input, weight, bias, mean, var]| {
            batch_norm_silu(input, [weight, bias], [mean, var], MOMENTUM, EPS).unwrap()
        })
    }

    /// The largest gradient of the input in double precision when mean and variance are constants. The two means
    /// that belong to the gradient are subtracted from these values; of few pixels almost nothing remains, so
    /// rounding is judged by what was subtracted.
    fn largest_before_subtraction(&self) -> f64 {
        let exact = self.input.to_kind(Kind::Double);
        let mean = exact.mean_dim(&[0_i64, 2, 3][..], false, Kind::Double);
        let var = exact.var_dim(&[0_i64, 2, 3][..], false, false);
        let pass = self.pass(Kind::Double, |[input, weight, bias, _, _]| {
            input
                .batch_norm(Some(weight), Some(bias), Some(&mean), Some(&var), false, MOMENTUM, EPS, true)
                .silu()
        });
        largest(&pass.gradients[0])
    }

    fn separate(&self, kind: Kind) -> Pass {
        self.pass(kind, |[input, weight, bias, mean, var]| {
            input
                .batch_norm(Some(weight), Some(bias), Some(mean), Some(var), true, MOMENTUM, EPS, true)
                .silu()
        })
    }
}

impl Pass {
    fn named(&self) -> [(&'static str, &Tensor); 6] {
        let [input, weight, bias] = &self.gradients;
        [
            ("the output", &self.output),
            ("the gradient of the input", input),
            ("the gradient of the weight", weight),
            ("the gradient of the bias", bias),
            ("the running mean", &self.running[0]),
            ("the running variance", &self.running[1]),
        ]
    }
}

fn largest(tensor: &Tensor) -> f64 {
    tensor.abs().max().double_value(&[])
}

/// With few and many channels and pixels, that fill the loops and that do not.
const SHAPES: [[i64; 4]; 10] = [
    [2, 1, 3, 5],
    [1, 3, 1, 2],
    [2, 8, 1, 1],
    [8, 16, 40, 40],
    [1, 24, 33, 17],
    [3, 48, 21, 19],
    [2, 64, 20, 20],
    [2, 100, 7, 9],
    [4, 256, 10, 10],
    [1, 1280, 4, 4],
];

/// Differences are relative to the largest value. Over 60 seeds and two sets of instructions, those above 3e-5 were at
/// most 1.3 times those of the separate operations; other processors round in another order, so both bounds leave room.
#[test]
fn results_are_about_as_exact_as_those_of_separate_operations() {
    for shape in SHAPES {
        let case = Case::new(shape);
        let (fused, exact, separate) =
            (case.fused(), case.separate(Kind::Double), case.separate(Kind::Float));
        for (((name, found), (_, exact)), (_, other)) in
            fused.named().into_iter().zip(exact.named()).zip(separate.named())
        {
            let scale = match name {
                "the gradient of the input" => largest(exact).max(case.largest_before_subtraction()),
                _ => largest(exact),
            };
            let off = |tensor: &Tensor| largest(&(tensor.to_kind(Kind::Double) - exact)) / scale;
            let (own, theirs) = (off(found), off(other));
            assert!(own < 3e-5_f64.max(4.0 * theirs), "{name} of {shape:?}: {own:e}, separately {theirs:e}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let case = Case::new([8, 24, 40, 40]);
    let before = tch::get_num_threads();
    let passes = [1, 2, 3, 2].map(|threads| {
        set_num_threads(threads).unwrap();
        // False if the shim was compiled without OpenMP.
        assert!(can_batch_norm_silu(&case.input), "{threads} threads are not used");
        case.fused()
    });
    set_num_threads(usize::try_from(before).unwrap()).unwrap();
    for pass in &passes[1..] {
        for ((name, one), (_, other)) in passes[0].named().into_iter().zip(pass.named()) {
            assert!(one.equal(other), "{name} depends on the number of threads");
        }
    }
}

#[test]
fn values_far_out_saturate_and_nan_stays() {
    let values = [-3e38_f32, -1e4, -87.5, -1.0, 0.0, 1.0, 87.5, 1e4, 3e38, f32::NAN];
    let input = Tensor::from_slice(&values).view([1, 1, 1, 10]);
    let one = Tensor::ones([1], FLOAT);
    // A statistic that is not finite makes all values NaN, as in separate operations.
    let output = |input: &Tensor| {
        let (zero, mean, var) =
            (Tensor::zeros([1], FLOAT), Tensor::zeros([1], FLOAT), Tensor::ones([1], FLOAT));
        batch_norm_silu(input, [&one, &zero], [&mean, &var], MOMENTUM, EPS).unwrap()
    };
    assert!(output(&input).isnan().all().int64_value(&[]) == 1);
    // Scaled so that the normalized values are as far out as they can be.
    let weight = Tensor::from_slice(&[1e30_f32]);
    let input = Tensor::from_slice(&[-1.0_f32, 1.0]).view([1, 1, 1, 2]);
    let (zero, mean, var) = (Tensor::zeros([1], FLOAT), Tensor::zeros([1], FLOAT), Tensor::ones([1], FLOAT));
    let found = batch_norm_silu(&input, [&weight, &zero], [&mean, &var], MOMENTUM, EPS).unwrap();
    let found: Vec<f32> = Vec::try_from(found.reshape([-1])).unwrap();
    assert!(found[0].abs() < 1e-6 && (found[1] / 1e30 - 1.0).abs() < 1e-3, "{found:?}");
}

#[test]
fn a_pass_without_gradients_updates_the_statistics() {
    let case = Case::new([2, 8, 4, 4]);
    let (mean, var) = (Tensor::zeros([8], FLOAT), Tensor::ones([8], FLOAT));
    let output = no_grad(|| {
        batch_norm_silu(&case.input, [&case.weight, &case.bias], [&mean, &var], MOMENTUM, EPS).unwrap()
    });
    assert!(!output.requires_grad());
    assert_eq!(mean, case.fused().running[0]);
    // Any layout is taken.
    let contiguous = case.input.contiguous();
    let again =
        batch_norm_silu(&contiguous, [&case.weight, &case.bias], [&mean, &var], MOMENTUM, EPS).unwrap();
    assert_eq!(again, output);
}

#[test]
fn what_it_cannot_take_is_refused() {
    let ones = Tensor::ones([3], FLOAT);
    let refused = |input: &Tensor, weight: &Tensor| {
        batch_norm_silu(input, [weight, &ones], [&ones, &ones], MOMENTUM, EPS).unwrap_err().to_string()
    };
    let input = Tensor::ones([2, 3, 4, 4], FLOAT);
    assert!(can_batch_norm_silu(&input));
    let half = input.to_kind(Kind::BFloat16);
    assert!(!can_batch_norm_silu(&half) && !can_batch_norm_silu(&Tensor::ones([2, 3], FLOAT)));
    assert!(refused(&half, &ones).contains("in float32 on the CPU"));
    assert!(refused(&input, &Tensor::ones([2], FLOAT)).contains("weight must be 3 float32 numbers"));
    let one = Tensor::ones([1, 3, 1, 1], FLOAT);
    assert!(refused(&one, &ones).contains("more than 1 value per channel"));
}
