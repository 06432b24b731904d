//! channels_last: convolutions give the results of the contiguous layout, and an optimizer steps
//! parameters in it.

use tch::{Kind, Tensor};
use tch_train::{Sgd, foreach_zero, fused_sgd, is_channels_last, set_channels_last, to_channels_last};

use crate::compare::{agree, device, random};

/// Rounding of float32; TF32 would be off by 5e-4.
const BOUND: f64 = 5e-5;

/// The shapes of an input and a weight, then stride, padding and groups.
type Case = (&'static str, [i64; 4], [i64; 4], i64, i64, i64);

const CASES: [Case; 5] = [
    ("first layer", [2, 3, 26, 22], [8, 3, 6, 6], 2, 2, 1),
    ("3x3", [3, 16, 13, 9], [24, 16, 3, 3], 1, 1, 1),
    ("1x1 with odd channels", [2, 5, 7, 11], [13, 5, 1, 1], 1, 0, 1),
    ("two groups", [2, 8, 9, 9], [6, 4, 3, 3], 2, 1, 2),
    ("depthwise", [2, 12, 10, 14], [12, 1, 3, 3], 1, 1, 12),
];

/// The output of a convolution with a bias, and the gradients of input, weight and bias.
fn convolve(case: &Case, tensors: &[Tensor; 3], direction: &Tensor) -> [Tensor; 4] {
    let &(_, _, _, stride, padding, groups) = case;
    let [input, weight, bias] = tensors;
    let output = input.conv2d(weight, Some(bias), [stride; 2], [padding; 2], [1, 1], groups);
    let sum = (&output * direction).sum(output.kind());
    let mut gradients = Tensor::run_backward(&[sum], tensors, false, false).into_iter();
    [output, gradients.next().unwrap(), gradients.next().unwrap(), gradients.next().unwrap()]
}

#[test]
fn convolutions_give_the_same_in_both_layouts() {
    for case in &CASES {
        let &(name, input, weight, ..) = case;
        let tensors = [random(1, &input), random(2, &weight), random(3, &weight[..1])];
        let doubles = tensors.each_ref().map(|tensor| tensor.to_kind(Kind::Double).set_requires_grad(true));
        let size = {
            let &(_, _, _, stride, padding, groups) = case;
            doubles[0]
                .conv2d(&doubles[1], Some(&doubles[2]), [stride; 2], [padding; 2], [1, 1], groups)
                .size()
        };
        let direction = random(4, &size);
        let want = convolve(case, &doubles, &direction.to_kind(Kind::Double));
        let direction = direction.to_device(device());

        let own =
            || tensors.each_ref().map(|tensor| tensor.to_device(device()).copy().set_requires_grad(true));
        let contiguous = convolve(case, &own(), &direction);
        let [input, weight, bias] = own();
        set_channels_last(&weight).unwrap();
        let input = to_channels_last(&input).unwrap().detach().set_requires_grad(true);
        assert!(is_channels_last(&weight).unwrap() && weight.is_leaf() && weight.requires_grad(), "{name}");
        assert!(is_channels_last(&input).unwrap(), "{name}");
        let last = convolve(case, &[input, weight, bias], &direction);

        for (index, what) in
            ["output", "gradient of the input", "of the weight", "of the bias"].iter().enumerate()
        {
            agree(&format!("{name}, contiguous, {what}"), &contiguous[index], &want[index], BOUND);
            agree(&format!("{name}, channels_last, {what}"), &last[index], &want[index], BOUND);
        }
        // Depthwise convolutions have kernels of their own, some of which know only one layout.
        if case.5 == 1 {
            assert!(is_channels_last(&last[0]).unwrap(), "{name}: the output is not channels_last");
        }
    }
}

#[test]
fn an_optimizer_steps_parameters_in_channels_last() {
    let sgd = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 1e-3, nesterov: true };
    let (input, direction) = (random(1, &[2, 6, 9, 7]), random(2, &[2, 5, 9, 7]));
    let gradient_of = |weight: &Tensor, input: &Tensor, direction: &Tensor| {
        (input.conv2d(weight, None::<Tensor>, [1, 1], [1, 1], [1, 1], 1) * direction)
            .mean(input.kind())
            .backward();
        weight.grad()
    };
    let (input_double, direction_double) = (input.to_kind(Kind::Double), direction.to_kind(Kind::Double));
    let mut want = random(3, &[5, 6, 3, 3]).to_kind(Kind::Double);
    let mut want_buffer = want.zeros_like();

    let input = to_channels_last(&input.to_device(device())).unwrap();
    let direction = direction.to_device(device());
    let weight = random(3, &[5, 6, 3, 3]).to_device(device()).copy().set_requires_grad(true);
    set_channels_last(&weight).unwrap();
    let buffer = weight.detach().zeros_like();
    for _ in 0..4 {
        let gradient = gradient_of(&weight, &input, &direction);
        fused_sgd(&[&weight], &[&gradient], &[&buffer], &sgd, false).unwrap();
        foreach_zero(&[&gradient]).unwrap();

        let leaf = want.detach().set_requires_grad(true);
        let gradient = gradient_of(&leaf, &input_double, &direction_double) + &want * 1e-3;
        want_buffer = want_buffer * 0.9 + &gradient;
        want -= (gradient + &want_buffer * 0.9) * 0.1;
    }
    assert!(is_channels_last(&weight).unwrap());
    agree("weight after 4 steps", &weight, &want, BOUND);
    agree("momentum after 4 steps", &buffer, &want_buffer, BOUND);
}
