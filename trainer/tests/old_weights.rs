//! Weights that versions of YOLOv5 from 3.0 to 7.0 saved: as whole modules, in 3.0 with activations that the YAML does not
//! name, in PyTorch's format before version 1.6. `generate_old_model.py` made the files and their outputs in Python.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use support::{alone, committed, relative, tensors};
use tch::{Device, no_grad};
use yolo_plan::model::{Activation, Module};
use yolo_trainer::model::Model;

#[test]
fn a_model_of_version_3_gives_the_outputs_that_it_has_in_python() {
    let _alone = alone();
    let file = torch_checkpoint::read(&committed("old_model.pt")).unwrap();
    let model = Model::from_weights(&file, None, None, Device::Cpu).unwrap();
    let transfer = model.transfer(&file, false).unwrap();
    assert!(transfer.missing.is_empty(), "{:?}", transfer.missing);
    assert_eq!(transfer.extra, ["model.6.anchor_grid"], "newer versions compute it");
    let recorded = tensors(&committed("old_model.safetensors"));
    let (_, maps) = no_grad(|| model.forward_eval(&recorded["image"])).unwrap();
    for (level, map) in maps.iter().enumerate() {
        let off = relative(map, &recorded[&format!("map{level}")]);
        assert!(off < 2e-6, "level {level} is off by {off:e}");
    }
}

/// Fails unless a model that a later release saved gives its outputs in Python.
#[track_caller]
fn assert_same_outputs(name: &str, extra: &[&str]) {
    let file = torch_checkpoint::read(&committed(&format!("{name}.pt"))).unwrap();
    assert_eq!(file.names.as_deref().unwrap(), ["cat", "dog"], "{name}");
    let model = Model::from_weights(&file, None, None, Device::Cpu).unwrap();
    let transfer = model.transfer(&file, false).unwrap();
    assert!(transfer.missing.is_empty(), "{name}: {:?}", transfer.missing);
    assert_eq!(transfer.extra, extra, "{name}");
    let recorded = tensors(&committed(&format!("{name}.safetensors")));
    let (_, maps) = no_grad(|| model.forward_eval(&recorded["image"])).unwrap();
    for (level, map) in maps.iter().enumerate() {
        let off = relative(map, &recorded[&format!("map{level}")]);
        assert!(off < 2e-6, "level {level} of {name} is off by {off:e}");
    }
}

#[test]
fn models_of_versions_4_to_7_give_the_outputs_that_they_have_in_python() {
    let _alone = alone();
    assert_same_outputs("model_4_0", &["model.6.anchor_grid"]);
    assert_same_outputs("model_6_0", &[]);
    assert_same_outputs("model_7_0", &[]);
}

#[test]
fn what_a_run_saves_keeps_the_activations() {
    let _alone = alone();
    let mut file = torch_checkpoint::read(&committed("old_model.pt")).unwrap();
    let model = Model::from_weights(&file, None, None, Device::Cpu).unwrap();
    // A checkpoint of ours has the description and no modules.
    file.yaml = Some(model.spec().yaml.clone());
    file.root = torch_checkpoint::Value::None;
    let again = Model::from_weights(&file, None, None, Device::Cpu).unwrap();
    assert_eq!(again.spec().layers, model.spec().layers);
    let Module::BottleneckCsp { csp, joined_act } = &again.spec().layers[2].module else {
        panic!("{:?}", again.spec().layers[2]);
    };
    assert_eq!((csp.act, *joined_act), (Activation::Hardswish, Activation::LeakyRelu(0.1)));
}
