//! The precision of products: float32 keeps its digits, and autocast computes in the kind that it was
//! given, with results that differ from double precision by no more than that kind's rounding.

use tch::{Kind, Reduction, Tensor};
use tch_train::{Autocast, autocast};

use crate::compare::{agree, device, difference, random};

/// float32 rounds to about 1e-7, TF32 to 5e-4. Some convolution algorithms lose two digits.
const FLOAT_BOUND: f64 = 5e-5;

/// The kinds of autocast, each with the rounding error of a number of that kind.
const LOW: [(Kind, f64); 2] = [(Kind::BFloat16, 1.0 / 256.0), (Kind::Half, 1.0 / 2048.0)];

/// A product of tensors: of an input and a weight.
struct Product {
    name: &'static str,
    input: Tensor,
    weight: Tensor,
    compute: fn(&Tensor, &Tensor) -> Tensor,
}

fn convolution(input: &Tensor, weight: &Tensor) -> Tensor {
    input.conv2d(weight, None::<Tensor>, [1, 1], [1, 1], [1, 1], 1)
}

/// Products with sides that are not multiples of 8, and of 64.
fn products() -> [Product; 4] {
    let product = |name, input: &[i64], weight: &[i64], compute| Product {
        name,
        input: random(1, input),
        weight: random(2, weight),
        compute,
    };
    [
        product("odd matrix product", &[33, 65], &[65, 17], Tensor::matmul),
        product("even matrix product", &[64, 256], &[256, 64], Tensor::matmul),
        product("odd convolution", &[2, 5, 13, 11], &[7, 5, 3, 3], convolution),
        product("even convolution", &[2, 64, 16, 16], &[64, 64, 3, 3], convolution),
    ]
}

/// A result, and its gradients with respect to input and weight.
struct Results {
    output: Tensor,
    gradients: Vec<Tensor>,
}

/// Computes a product and its gradients, with `around` wrapped around the forward pass.
fn run(
    product: &Product,
    inputs: [Tensor; 2],
    around: impl FnOnce(&dyn Fn() -> Tensor) -> Tensor,
) -> Results {
    let [input, weight] = inputs.map(|tensor| tensor.set_requires_grad(true));
    let output = around(&|| (product.compute)(&input, &weight));
    // The direction in which the gradient is taken.
    let direction = random(3, &output.size()).to_device(output.device());
    let sum = (output.to_kind(input.kind()) * direction.to_kind(input.kind())).sum(input.kind());
    let gradients = Tensor::run_backward(&[sum], &[&input, &weight], false, false);
    Results { output, gradients }
}

/// A product in double precision on the CPU.
fn in_double(product: &Product) -> Results {
    let inputs = [&product.input, &product.weight].map(|tensor| tensor.to_kind(Kind::Double));
    run(product, inputs, |forward| forward())
}

/// Copies of the inputs on the device.
fn inputs(product: &Product) -> [Tensor; 2] {
    [&product.input, &product.weight].map(|tensor| tensor.to_device(device()).copy())
}

#[test]
fn products_keep_the_digits_of_float32() {
    for product in products() {
        let (got, want) = (run(&product, inputs(&product), |forward| forward()), in_double(&product));
        assert_eq!(got.output.kind(), Kind::Float, "{}", product.name);
        agree(product.name, &got.output, &want.output, FLOAT_BOUND);
        for (of, (got, want)) in ["input", "weight"].iter().zip(got.gradients.iter().zip(&want.gradients)) {
            agree(&format!("{}, gradient of the {of}", product.name), got, want, FLOAT_BOUND);
        }
    }
}

#[test]
fn autocast_computes_products_in_its_kind() {
    for (kind, rounding) in LOW {
        for product in products() {
            let name = format!("{} in {kind:?}", product.name);
            let got = run(&product, inputs(&product), |forward| autocast(device(), kind, forward).unwrap());
            let want = in_double(&product);
            assert_eq!(got.output.kind(), kind, "{name}");
            agree(&name, &got.output, &want.output, 4.0 * rounding);
            let (off, scale) = difference(&name, &got.output, &want.output);
            assert!(off > 0.01 * rounding * scale, "{name} has too many digits: off by {off:e} of {scale}");
            for (of, (got, want)) in ["input", "weight"].iter().zip(got.gradients.iter().zip(&want.gradients))
            {
                let name = format!("{name}, gradient of the {of}");
                assert_eq!(got.kind(), Kind::Float, "{name}");
                agree(&name, got, want, 8.0 * rounding);
            }
        }
    }
}

#[test]
fn autocast_keeps_losses_in_float32_and_can_be_turned_off() {
    let (left, right) = (random(4, &[16, 24]), random(5, &[24, 16]));
    let want = left.to_kind(Kind::Double).matmul(&right.to_kind(Kind::Double));
    let want_loss = want.square().mean(Kind::Double);
    let (left, right) = (left.to_device(device()), right.to_device(device()));
    for (kind, rounding) in LOW {
        let (inside, loss, disabled) = autocast(device(), kind, || {
            let inside = left.matmul(&right);
            let loss = inside.mse_loss(&inside.zeros_like(), Reduction::Mean);
            let _off = Autocast::disable(device()).unwrap();
            (inside, loss, left.matmul(&right))
        })
        .unwrap();
        assert_eq!((inside.kind(), loss.kind(), disabled.kind()), (kind, Kind::Float, Kind::Float));
        agree(&format!("loss of a product in {kind:?}"), &loss, &want_loss, 4.0 * rounding);
        agree(&format!("product with {kind:?} turned off"), &disabled, &want, FLOAT_BOUND);
        assert_eq!(left.matmul(&right).kind(), Kind::Float, "autocast to {kind:?} has not ended");
    }
}
