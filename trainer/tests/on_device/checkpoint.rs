//! A checkpoint that is written from the device and read on the CPU.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::json;
use tch::{Device, Tensor};
use torch_checkpoint::{TensorData, Value};
use yolo_plan::hyp::HyperParameters;
use yolo_plan::options::Optimizer as Algorithm;
use yolo_plan::run::TrainTask;
use yolo_trainer::checkpoint::{Checkpoint, Progress, TrainingState, read_resume};
use yolo_trainer::learner::{Ema, Learner, Optimizer};
use yolo_trainer::model::{Model, State, images_tensor};

use crate::compare::device;
use crate::models::{drawing, model, twin};
use crate::reference_loss::SETTINGS;
use crate::scenes::Scenes;

/// A task whose values a checkpoint repeats.
fn task(classes: usize) -> TrainTask {
    let names: Vec<String> = (0..classes).map(|class| format!("class {class}")).collect();
    serde_json::from_value(json!({
        "weights": null, "model": null, "hyp": HyperParameters::low(), "epochs": 3, "batch": 4,
        "data": { "yaml": "data.yaml", "train": [], "val": [], "test": [], "names": names },
        "nominal_batch": 64, "image_size": 256, "rect": false, "resume": null, "nosave": false, "noval": false,
        "autoanchor": true, "plots": false, "cache": null, "single_cls": false, "optimizer": "AdamW",
        "sync_bn": false, "workers": 0, "cos_lr": false, "label_smoothing": 0.0, "patience": null, "freeze": [],
        "save_period": null, "seed": 0,
    }))
    .unwrap()
}

fn optimizer(model: &Model) -> Optimizer {
    Optimizer::new(Algorithm::AdamW, model.state(), 0.01, 0.9, 5e-4).unwrap()
}

fn save(path: &Path, learner: &Learner) {
    let ema = learner.ema().unwrap();
    let state = TrainingState {
        model: learner.model(),
        ema: ema.model(),
        ema_updates: ema.updates(),
        optimizer: learner.optimizer().state_dict().unwrap(),
        gradients: Value::None,
        scaler: Value::None,
        progress: Progress { epochs_done: 1, ..Progress::START },
        batches: 1,
        data: &[],
    };
    let task = task(learner.model().spec().nc);
    Checkpoint { task: &task }.write_running(path, state).unwrap();
}

/// The elements of a tensor, row after row.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    let tensor = tensor.detach().to_device(Device::Cpu).contiguous();
    let mut bytes = vec![0; tensor.numel() * tensor.kind().elt_size_in_bytes()];
    tensor.copy_data_u8(&mut bytes, tensor.numel());
    bytes
}

/// Fails unless a file has exactly the tensors of `state`.
fn same_bytes(what: &str, file: &IndexMap<String, TensorData>, state: &State) {
    assert_eq!(file.len(), state.len(), "{what}");
    for entry in state {
        let (got, want) = (&file[&entry.name].bytes, bytes(&entry.tensor));
        assert_eq!(got.len(), want.len(), "{what} {}", entry.name);
        let differing = got.iter().zip(&want).filter(|(got, want)| got != want).count();
        assert!(
            differing == 0,
            "{what} {}: {differing} of {} bytes differ, none may",
            entry.name,
            want.len()
        );
    }
}

#[test]
fn a_checkpoint_holds_the_bytes_of_the_device() {
    let cpu = model();
    let own = twin(&cpu, device());
    let (rule, ema) = (optimizer(&own), Ema::new(&own).unwrap());
    let mut learner = Learner::new(own, rule, Some(ema), SETTINGS, None, false).unwrap();
    let batch = Scenes::new(2, cpu.spec().nc).batch();
    let _items = learner.backward(&images_tensor(&batch, device()).unwrap(), &batch.targets).unwrap();
    let _norm = learner.update().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.pt"), folder.path().join("second.pt"));
    save(&first, &learner);
    let read = read_resume(&first, None).unwrap();
    same_bytes("weights", &read.model.tensors, learner.model().state());
    same_bytes("average", &read.averaged.as_ref().unwrap().tensors, learner.ema().unwrap().model().state());
    assert_eq!(read.updates, 1);

    // What is restored on the CPU is written with the same bytes.
    let restored = {
        let _drawing = drawing();
        Model::from_weights(&read.model, None, None, Device::Cpu).unwrap()
    };
    let transfer = restored.transfer(&read.model, false).unwrap();
    assert_eq!(transfer.matched, transfer.total, "{}", transfer.summary());
    let (mut rule, mut ema) = (optimizer(&restored), Ema::new(&restored).unwrap());
    rule.load_state_dict(&read.optimizer).unwrap();
    ema.restore(read.averaged.as_ref().unwrap(), read.updates).unwrap();
    let restored = Learner::new(restored, rule, Some(ema), SETTINGS, None, false).unwrap();
    save(&second, &restored);
    let (first, second) = (std::fs::read(first).unwrap(), std::fs::read(second).unwrap());
    assert!(first == second, "files of {} and {} bytes differ", first.len(), second.len());
}
