//! The `last.pt` of a run of YOLOv5 itself: what is read from it, and the step that follows. `generate_yolov5_run.py` made
//! the files and the steps in Python.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use support::{alone, committed, relative, tensors};
use tch::{Device, Kind};
use yolo_plan::options::Optimizer as Algorithm;
use yolo_trainer::checkpoint::{Resume, read_resume};
use yolo_trainer::learner::{Ema, Optimizer};
use yolo_trainer::model::Model;

/// What a file holds, and the model that it describes.
fn resumed_from(file: &str) -> (Resume, Model) {
    let resume = read_resume(&committed(&format!("{file}.pt")), None).unwrap();
    let model = Model::from_weights(&resume.model, Some(2), None, Device::Cpu).unwrap();
    let transfer = model.transfer(&resume.model, false).unwrap();
    assert_eq!(transfer.matched, transfer.total, "{}", transfer.summary());
    (resume, model)
}

fn resumed() -> (Resume, Model) {
    resumed_from("yolov5_run")
}

/// The optimizer of a run is continued as in Python: its state for each parameter, under the names of the checkpoint
/// and of the recording, and the weights after the next step. Returns the optimizer after that step.
#[track_caller]
fn assert_next_step(file: &str, algorithm: Algorithm, state: &[(&str, &str)]) -> Optimizer {
    let (resume, model) = resumed_from(file);
    let recorded = tensors(&committed(&format!("{file}.safetensors")));
    let mut optimizer = Optimizer::new(algorithm, model.state(), 0.01, 0.937, 0.0005).unwrap();
    optimizer.load_state_dict(&resume.optimizer).unwrap();
    let saved = optimizer.state_dict().unwrap();
    let memories = saved.get("state").unwrap().as_entries().unwrap();
    let names: Vec<String> = optimizer.group_names().concat().into_iter().map(str::to_owned).collect();
    assert_eq!(memories.len(), names.len());
    for (name, (_, memory)) in names.iter().zip(memories) {
        for (key, word) in state {
            let found = memory.get(key).unwrap().as_tensor().unwrap().to_f32();
            let expected: Vec<f32> =
                Vec::try_from(recorded[&format!("{word}.{name}")].reshape([-1])).unwrap();
            assert_eq!(found, expected, "{key} of {name}");
        }
        // SGD does not count its steps.
        let steps = memory.get("step").map(|steps| steps.as_tensor().unwrap().to_f32());
        assert_eq!(steps, (algorithm != Algorithm::Sgd).then(|| vec![3.0]), "{name}");
    }
    for entry in model.state().parameters() {
        let gradient = &recorded[&format!("gradient.{}", entry.name)];
        (&entry.tensor * gradient).sum(Kind::Float).backward();
    }
    optimizer.step().unwrap();
    for entry in model.state().parameters() {
        let off = relative(&entry.tensor.detach(), &recorded[&format!("after.{}", entry.name)]);
        assert!(off < 1e-6, "{file}: {} is off by {off:e}", entry.name);
    }
    optimizer
}

fn optimizer(model: &Model) -> Optimizer {
    Optimizer::new(Algorithm::Sgd, model.state(), 0.01, 0.937, 0.0005).unwrap()
}

#[test]
fn the_state_of_the_run_is_found() {
    let _alone = alone();
    let (resume, model) = resumed();
    assert_eq!(resume.progress.epochs_done, 1);
    assert_eq!((resume.progress.batches_done, resume.progress.last_optimizer_step), (0, -1));
    assert_eq!((resume.progress.best_fitness, resume.updates), (0.25, 3));
    assert!(resume.gradients.is_none() && resume.scaler.is_none());
    assert_eq!(resume.model.names.as_deref().unwrap(), ["red", "blue"]);
    assert_eq!((model.strides(), model.spec().nc), (&[4.0, 8.0][..], 2));
    // The average is not the model.
    let averaged = resume.averaged.as_ref().unwrap();
    assert_ne!(averaged.tensors, resume.model.tensors);
    let mut ema = Ema::new(&model).unwrap();
    ema.restore(averaged, resume.updates).unwrap();
}

#[test]
fn the_next_step_is_the_one_that_it_is_in_python() {
    let _alone = alone();
    let optimizer = assert_next_step("yolov5_run", Algorithm::Sgd, &[("momentum_buffer", "momentum")]);
    assert_eq!(optimizer.learning_rates(), [0.08, 0.002, 0.002]);
}

#[test]
fn runs_with_adam_and_adamw_are_continued_as_in_python() {
    let _alone = alone();
    let moments = [("exp_avg", "exp_avg"), ("exp_avg_sq", "exp_avg_sq")];
    assert_next_step("yolov5_run_adam", Algorithm::Adam, &moments);
    assert_next_step("yolov5_run_adamw", Algorithm::AdamW, &moments);
}

#[test]
fn an_optimizer_with_other_groups_is_refused() {
    let _alone = alone();
    let (resume, model) = resumed();
    let groups = resume.optimizer.get("param_groups").unwrap().as_slice().unwrap();
    let state = resume.optimizer.get("state").unwrap().clone();
    let two = torch_checkpoint::Value::List(groups[..2].to_vec());
    let two = torch_checkpoint::Value::dict([("state", state), ("param_groups", two)]);
    let error = optimizer(&model).load_state_dict(&two).unwrap_err().to_string();
    assert_eq!(error, "the saved optimizer: it has 2 parameter groups, not 3");
    let adam = Optimizer::new(Algorithm::Adam, model.state(), 0.01, 0.937, 0.0005);
    let error = adam.unwrap().load_state_dict(&resume.optimizer).unwrap_err().to_string();
    assert!(error.contains("it is not Adam"), "{error}");
}
