//! Every module that a model's yaml may name, compared with YOLOv5 (PyPI yolov5 7.0.14). Each case
//! is a model of three rows: a convolution, the module, and Detect. Both sides compute the weights
//! by the same formula, so the two committed files hold only the yamls, the names of the tensors and
//! the results: the module's output in both modes, norms of gradients, layers, parameters, strides.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use serde_json::{Value, json};
use support::{alone, committed, json, relative, tensors};
use tch::{Device, Kind, Tensor, no_grad};
use yolo_plan::model::ModelSpec;
use yolo_trainer::model::Model;

/// Seeds of the formula. The seed of a weight is its index among the tensors; these are larger.
const IMAGES: u32 = 999;
const OUTER: u32 = 777;

/// The `index`-th number of a series, from -1 to 1: a hash of whole numbers, which is the same in any
/// language.
fn number(seed: u32, index: u32) -> f64 {
    let mut x =
        index.wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503)).wrapping_add(12_345);
    x ^= x >> 15;
    x = x.wrapping_mul(2_246_822_519);
    x ^= x >> 13;
    f64::from(x >> 8) / f64::from(1 << 23) - 1.0
}

/// A tensor of the series, with `of` applied to each number.
fn series(seed: u32, shape: &[i64], of: impl Fn(f64) -> f64) -> Tensor {
    let count = shape.iter().product::<i64>() as u32;
    let values: Vec<f32> = (0..count).map(|index| of(number(seed, index)) as f32).collect();
    Tensor::from_slice(&values).reshape(shape)
}

/// Fills the tensors of a model by the rules that the record was made with.
fn fill(model: &Model) {
    for (seed, entry) in (0..).zip(model.state()) {
        let (name, shape) = (entry.name.as_str(), entry.tensor.size());
        if name.ends_with("num_batches_tracked") || name.ends_with("anchors") {
            continue;
        }
        let values = if name.ends_with("running_mean") || name.ends_with("bias") {
            series(seed, &shape, |x| 0.2 * x)
        } else if shape.len() == 1 {
            series(seed, &shape, |x| 1.0 + 0.5 * x)
        } else {
            let fan_in: i64 = shape[1..].iter().product();
            series(seed, &shape, |x| x * (3.0 / fan_in as f64).sqrt())
        };
        no_grad(|| entry.tensor.shallow_clone().copy_(&values));
    }
}

fn names_and_shapes(model: &Model) -> Value {
    model.state().iter().map(|entry| json!([entry.name, entry.tensor.size()])).collect()
}

fn images() -> Tensor {
    series(IMAGES, &[2, 3, 8, 16], |x| x)
}

/// The output of row 1, the module, in a pass that shows the output of every row.
fn of_the_module(pass: impl FnOnce(&mut dyn FnMut(usize, &Tensor))) -> Tensor {
    let mut output = None;
    pass(&mut |index, tensor| {
        if index == 1 {
            output = Some(tensor.shallow_clone());
        }
    });
    output.unwrap()
}

/// How a case differs from the record, one sentence per difference.
fn differences(want: &Value, outputs: impl Fn(&str) -> Option<Tensor>) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    let spec = ModelSpec::from_yaml_value(&want["yaml"], 2, None).unwrap();
    let model = Model::new(&spec, Device::Cpu).unwrap();
    let keys = names_and_shapes(&model);
    check(keys == want["keys"], format!("the tensors are {keys}"));
    // YOLOv5 keeps its strides in single precision.
    let strides: Vec<f32> = model.strides().iter().map(|&stride| stride as f32).collect();
    check(json!(strides) == want["strides"], format!("the strides are {strides:?}"));
    let summary = model.summary().unwrap();
    let counts = (json!(summary.layers), json!(summary.parameters));
    let expected = (want["layers"].clone(), want["parameters"].clone());
    check(counts == expected, format!("layers and parameters are {counts:?}, not {expected:?}"));

    fill(&model);
    if let Some(want) = outputs("eval") {
        let output = of_the_module(|seen| {
            no_grad(|| model.forward_eval_with(&images(), seen).map(drop)).unwrap();
        });
        let off = relative(&output, &want);
        check(off < 1e-5, format!("the output in evaluation is off by {off:e}"));
    }
    let output = of_the_module(|seen| {
        model.forward_train_with(&images(), seen).map(drop).unwrap();
    });
    let off = relative(&output.detach(), &outputs("train").unwrap());
    check(off < 1e-5, format!("the output in training is off by {off:e}"));

    // Each value has its own weight, so that gradients show if an in-place operation spoils something.
    (&output * series(OUTER, &output.size(), |x| x)).sum(Kind::Float).backward();
    for (name, norm) in want["gradient_norms"].as_object().unwrap() {
        let gradient = model.state().get(name).unwrap().grad();
        let norm = norm.as_f64().unwrap();
        let got =
            if gradient.defined() { gradient.to_kind(Kind::Double).norm().double_value(&[]) } else { 0.0 };
        check(
            (got - norm).abs() < 1e-4 * norm + 1e-4,
            format!("the gradient of {name} is {got}, not {norm}"),
        );
    }
    found
}

#[test]
fn every_module_of_the_grammar() {
    let _alone = alone();
    let cases = json(&committed("modules.json"));
    let outputs = tensors(&committed("modules.safetensors"));
    let cases = cases.as_object().unwrap();
    assert!(cases.len() > 40);
    let found: Vec<String> = cases
        .iter()
        .flat_map(|(name, want)| {
            let output = |mode: &str| outputs.get(&format!("{name}.{mode}")).map(Tensor::shallow_clone);
            differences(want, output).into_iter().map(move |what| format!("{name}: {what}"))
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn fusing_changes_no_output() {
    let _alone = alone();
    for (name, case) in json(&committed("modules.json")).as_object().unwrap() {
        let spec = ModelSpec::from_yaml_value(&case["yaml"], 2, None).unwrap();
        let model = Model::new(&spec, Device::Cpu).unwrap();
        fill(&model);
        let decoded = |model: &Model| no_grad(|| model.forward_eval(&images())).unwrap().0;
        let fused = model.fuse().unwrap();
        assert!(fused.state().len() < model.state().len(), "{name}: normalizations are gone");
        let off = relative(&decoded(&fused), &decoded(&model));
        assert!(off < 1e-5, "{name}: off by {off:e}");
        // The description counts what was built.
        let counted: usize = fused.state().parameters().map(|entry| entry.tensor.numel()).sum();
        assert_eq!(spec.fused_summary().unwrap().parameters, counted as u64, "{name}");
    }
}
