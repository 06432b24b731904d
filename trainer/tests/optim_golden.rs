//! Whole training steps of yolov5n compared with YOLOv5: forward pass, loss, clipping, a step of SGD,
//! Adam or AdamW with the learning rates of the warm-up, and the moving average. Without the folder
//! of recorded numbers (`YOLO_GOLDEN`, or `shared/golden` next to the checkout) it is skipped.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use std::collections::HashMap;

use serde_json::Value;
use support::{golden, json, targets, tensors, yolov5n};
use tch::{Device, Kind, Tensor};
use yolo_plan::model::ModelSpec;
use yolo_plan::options::Optimizer as Algorithm;
use yolo_trainer::learner::{Ema, Optimizer};
use yolo_trainer::loss::{DetectionLoss, LossSettings};
use yolo_trainer::model::{Model, State};

/// Gradients are clipped to this norm (spec §6).
const MAX_NORM: f64 = 10.0;

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// A recorded case, and how far this implementation may be from it.
struct Case<'a> {
    name: &'a str,
    algorithm: Algorithm,
    /// Steps whose tensors are compared; losses are compared in all steps.
    steps: usize,
    /// After the first step: relative to the largest expected value of a tensor, and absolute.
    tolerance: (f64, f64),
    /// The factor by which the tolerance grows with each further step. On images of 64 pixels the
    /// last normalizations see 8 values per channel, so rounding errors grow at full learning rates:
    /// if the initial weights are off by 1e-7, the norm of the gradients is off by about 1e-5, 1e-3
    /// and 1e-2 in three steps.
    growth: f64,
    /// The mean difference of a tensor's values may be this fraction of the tolerance. A wrong rule
    /// moves all values, noise only those that depend on the smallest gradients.
    mean: f64,
    /// The tolerance of the losses in each step; by default 1e-6, which grows like the others.
    losses: &'a [f64],
}

/// Adam's updates are almost the signs of the gradients, so that after the first step noise in tiny
/// gradients moves weights: later steps compare only the losses.
const ADAM_LOSSES: [f64; 3] = [1e-6, 5e-4, 4e-3];

fn compare_tensors(
    (relative, absolute): (f64, f64),
    mean: f64,
    prefix: &str,
    state: &State,
    expected: &HashMap<String, Tensor>,
) -> usize {
    let mut compared = 0;
    for entry in state {
        let Some(expected) = expected.get(&format!("{prefix}{}", entry.name)) else {
            continue;
        };
        let expected = expected.to_kind(Kind::Double);
        let found = entry.tensor.detach().to_kind(Kind::Double);
        let scale = expected.abs().max().double_value(&[]);
        let differences = (found - expected).abs();
        let tolerance = absolute.max(relative * scale);
        let (most, average) =
            (differences.max().double_value(&[]), differences.mean(Kind::Double).double_value(&[]));
        println!(
            "{prefix}{}: at most {:.0e}, mean {:.0e} of the tolerance",
            entry.name,
            most / tolerance,
            average / tolerance
        );
        assert!(most <= tolerance, "{prefix}{}: {most} off, the largest value is {scale}", entry.name);
        assert!(average <= mean * tolerance, "{prefix}{}: {average} off in the mean", entry.name);
        compared += 1;
    }
    compared
}

fn compare_norms((relative, absolute): (f64, f64), what: &str, state: &State, expected: &Value) {
    let expected = expected.as_object().unwrap();
    assert!(!expected.is_empty());
    for (name, norm) in expected {
        let tensor = state.get(name).unwrap().detach().to_kind(Kind::Double);
        let (found, norm) = (tensor.norm().double_value(&[]), norm.as_f64().unwrap());
        // The norm of a difference is at most its largest element times the root of their number.
        let slack = absolute * (tensor.numel() as f64).sqrt();
        assert!((found - norm).abs() <= slack.max(relative * norm), "{what} {name}: {found} {norm}");
    }
}

fn run(case: &Case<'_>) {
    let Some(initial) = golden("a_yolov5n_init.safetensors") else { return };
    let root = json(&golden("c_optim_ema.json").unwrap());
    let numbers_of_case = &root[case.name];
    let expected = tensors(&golden("c_optim_ema.safetensors").unwrap());
    let input = tensors(&golden("a_yolov5n_io.safetensors").unwrap());
    let targets = targets(&tensors(&golden("b_loss_d_build_targets.safetensors").unwrap())["targets"]);

    let model = yolov5n(&initial);
    let hyp = |name: &str| numbers_of_case["hyp"][name].as_f64().unwrap();
    let settings = LossSettings {
        box_gain: hyp("box"),
        objectness_gain: hyp("obj"),
        class_gain: hyp("cls"),
        ..LossSettings::NEUTRAL
    };
    let loss = DetectionLoss::new(model.anchors().unwrap(), 80, settings, Device::Cpu).unwrap();
    let mut optimizer =
        Optimizer::new(case.algorithm, model.state(), hyp("lr0"), hyp("momentum"), hyp("weight_decay"))
            .unwrap();
    let mut average = Ema::new(&model).unwrap();
    let mut compared = 0;
    let mut updates_compared = 0;
    for (number, step) in numbers_of_case["steps"].as_array().unwrap().iter().enumerate() {
        // The noise that the steps before this one have left.
        let noise = case.growth.powi(i32::try_from(average.updates()).unwrap());
        for (group, lr) in numbers(&step["lr"]).into_iter().enumerate() {
            optimizer.set_lr(group, lr).unwrap();
        }
        // The record has -1 for groups without momentum.
        optimizer.set_momentum(step["momentum"][0].as_f64().unwrap().max(0.0)).unwrap();
        let heads = model.forward_train(&input["x64"]).unwrap();
        let output = loss.compute(&heads, &targets).unwrap();
        output.total.backward();
        let items = Vec::<f64>::try_from(output.items.to_kind(Kind::Double)).unwrap();
        for (found, expected) in items.iter().zip(numbers(&step["items"])) {
            let tolerance = case.losses.get(number).copied().unwrap_or(1e-6 * noise);
            let off = (found - expected).abs();
            println!("{}, step {number}: loss off by {off:.1e}", case.name);
            assert!(off < tolerance, "{}, step {number}: {found} {expected}", case.name);
        }
        if step["stepped"] == Value::Bool(true) {
            let norm = optimizer.clip_gradients(MAX_NORM).unwrap().double_value(&[]);
            let expected = step["total_grad_norm_before_clip"].as_f64().unwrap();
            let off = (norm / expected - 1.0).abs();
            println!("{}, step {number}: norm off by {off:.1e}", case.name);
            if number < case.steps {
                assert!(off < 1e-4 * noise, "{}: {norm} {expected}", case.name);
            }
            optimizer.step().unwrap();
            optimizer.zero_grad().unwrap();
            average.update(model.state()).unwrap();
        }
        assert_eq!(average.updates(), step["ema_updates"].as_u64().unwrap());
        if number >= case.steps {
            continue;
        }
        updates_compared = average.updates();
        let (relative, absolute) = case.tolerance;
        let tolerance = (relative * noise, absolute * noise);
        let prefix = format!("{}.ni{}.", case.name, step["ni"]);
        compared += compare_tensors(tolerance, case.mean, &prefix, model.state(), &expected);
        compared += compare_tensors(
            tolerance,
            case.mean,
            &format!("{prefix}ema."),
            average.model().state(),
            &expected,
        );
        compare_norms(tolerance, "weight", model.state(), &step["weight_norms"]);
        compare_norms(tolerance, "average", average.model().state(), &step["ema_norms"]);
    }
    // Seven tensors and their averages are recorded after each optimizer step.
    assert_eq!(compared as u64, 14 * updates_compared);
}

#[test]
fn sgd_in_the_first_steps_of_the_warm_up() {
    run(&Case {
        name: "sgd_warmup",
        algorithm: Algorithm::Sgd,
        steps: 3,
        tolerance: (1e-4, 2e-6),
        growth: 3.0,
        mean: 0.3,
        losses: &[],
    });
}

#[test]
fn sgd_in_the_middle_of_the_warm_up() {
    run(&Case {
        name: "sgd_midwarmup_accum1",
        algorithm: Algorithm::Sgd,
        steps: 3,
        tolerance: (1e-4, 2e-6),
        growth: 15.0,
        mean: 0.3,
        losses: &[],
    });
}

#[test]
fn sgd_over_accumulated_batches() {
    run(&Case {
        name: "sgd_accum2",
        algorithm: Algorithm::Sgd,
        steps: 4,
        tolerance: (1e-4, 2e-6),
        growth: 15.0,
        mean: 0.3,
        losses: &[],
    });
}

#[test]
fn the_first_step_of_adam() {
    run(&Case {
        name: "adam",
        algorithm: Algorithm::Adam,
        steps: 1,
        tolerance: (0.0, 1e-3),
        growth: 1.0,
        mean: 1e-3,
        losses: &ADAM_LOSSES,
    });
}

#[test]
fn the_first_step_of_adamw() {
    run(&Case {
        name: "adamw",
        algorithm: Algorithm::AdamW,
        steps: 1,
        tolerance: (0.0, 1e-3),
        growth: 1.0,
        mean: 1e-3,
        losses: &ADAM_LOSSES,
    });
}

#[test]
fn groups_hold_the_same_parameters_in_the_same_order() {
    let Some(file) = golden("c_optim_ema.json") else { return };
    let root = json(&file);
    let model = Model::new(&ModelSpec::load("yolov5n", 80, None).unwrap(), Device::Cpu).unwrap();
    let optimizer = Optimizer::new(Algorithm::Sgd, model.state(), 0.01, 0.937, 5e-4).unwrap();
    let expected = root["sgd_warmup"]["groups"].as_array().unwrap();
    let groups = optimizer.group_names();
    assert_eq!(groups.each_ref().map(Vec::len), [60, 60, 57]);
    for (number, (group, expected)) in groups.iter().zip(expected).enumerate() {
        let expected: Vec<&str> =
            expected["params"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(*group, expected, "group {number}");
    }
}

#[test]
fn a_restored_average_continues_bit_by_bit() {
    let spec = ModelSpec::load("yolov5n", 3, None).unwrap();
    let model = Model::new(&spec, Device::Cpu).unwrap();
    let mut average = Ema::new(&model).unwrap();
    let counter = "model.0.bn.num_batches_tracked";
    let before = model.state().get("model.0.conv.weight").unwrap().copy();
    let count = model.state().get(counter).unwrap().int64_value(&[]);
    let shift = || {
        tch::no_grad(|| {
            for entry in model.state() {
                let _ = entry.tensor.shallow_clone().g_add_scalar_(1);
            }
        });
    };
    shift();
    average.update(model.state()).unwrap();
    // The average has its own memory, follows floating-point tensors and leaves counters alone.
    let averaged = |average: &Ema, name: &str| average.model().state().get(name).unwrap().copy();
    assert_eq!(averaged(&average, counter).int64_value(&[]), count);
    assert_eq!(model.state().get(counter).unwrap().int64_value(&[]), count + 1);
    let moved = (averaged(&average, "model.0.conv.weight") - before).mean(Kind::Double).double_value(&[]);
    assert!((moved - (1.0 - 0.000499825033328626)).abs() < 1e-6, "{moved}");
    assert!(average.model().state().iter().all(|entry| !entry.tensor.requires_grad()));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("average.pt");
    let saved = average.model().state().to_value(false).unwrap();
    let root = torch_checkpoint::Value::dict([("model", saved)]);
    torch_checkpoint::write_pt(&path, &root).unwrap();
    let mut file = torch_checkpoint::read(&path).unwrap();
    let mut restored = Ema::new(&model).unwrap();
    restored.restore(&file, average.updates()).unwrap();
    shift();
    average.update(model.state()).unwrap();
    restored.update(model.state()).unwrap();
    assert_eq!(restored.updates(), 2);
    for (ours, theirs) in average.model().state().iter().zip(restored.model().state()) {
        assert!(ours.tensor.equal(&theirs.tensor), "{}", ours.name);
    }

    file.tensors.shift_remove(counter);
    let error = restored.restore(&file, 1).unwrap_err();
    assert_eq!(error.to_string(), format!("the saved moving average lacks the tensor {counter}"));
}
