//! Weights that old versions of YOLOv5 saved: as whole modules, with activations that the YAML does not name, in
//! PyTorch's format before version 1.6. `generate_old_model.py` made the file and its outputs in Python.

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
