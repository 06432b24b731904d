//! ONNX files of networks with random weights, run by a runtime that shares no code with the trainer: outputs must be
//! those of the network.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor, no_grad};
use tract_onnx::prelude::*;
use yolo_plan::model::{ModelSpec, builtin};
use yolo_plan::run::OnnxSettings;
use yolo_trainer::model::Model;
use yolo_trainer::tasks::export::onnx::encode;

/// A network of a built-in model, with an eighth of the channels of its largest form, so that none is large.
fn network(name: &str) -> Model {
    let spec = ModelSpec::load(name, 3, None).unwrap();
    let mut yaml = spec.yaml;
    yaml["width_multiple"] = 0.125.into();
    random(&ModelSpec::from_yaml_value(&yaml, 3, None).unwrap())
}

/// A network whose normalizations do something.
fn random(spec: &ModelSpec) -> Model {
    tch::manual_seed(7);
    let model = Model::new(spec, Device::Cpu).unwrap().copy().unwrap();
    for entry in model.state().iter() {
        let (low, high) = match entry.name.rsplit('.').next().unwrap() {
            "running_mean" => (-0.1, 0.1),
            "running_var" => (0.5, 1.5),
            "weight" if entry.name.contains(".bn.") => (0.8, 1.2),
            _ => continue,
        };
        let _ = no_grad(|| entry.tensor.shallow_clone().uniform_(low, high));
    }
    model
}

/// Images with the numbers 0 to 1.
fn images(shape: [i64; 4]) -> Tensor {
    let count = shape.iter().product::<i64>();
    (Tensor::arange(count, (Kind::Float, Device::Cpu)).remainder(251.0) / 250.0).reshape(shape)
}

fn settings(dynamic: bool) -> OnnxSettings {
    OnnxSettings { opset: 17, dynamic }
}

/// The outputs of a file for images in single precision.
fn run(file: &[u8], images: &Tensor) -> Tensor {
    let shape: Vec<usize> = images.size().iter().map(|&side| side as usize).collect();
    let values = Vec::<f32>::try_from(images.reshape([-1])).unwrap();
    let input = tract_ndarray::ArrayD::from_shape_vec(shape.clone(), values).unwrap();
    let model = tract_onnx::onnx().model_for_read(&mut &*file).unwrap();
    let model = model.with_input_fact(0, f32::fact(&shape).into()).unwrap();
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    let outputs = model.run(tvec!(input.into_tensor().into())).unwrap();
    let output = outputs[0].to_plain_array_view::<f32>().unwrap();
    let shape: Vec<i64> = output.shape().iter().map(|&side| side as i64).collect();
    Tensor::from_slice(&output.iter().copied().collect::<Vec<f32>>()).reshape(shape)
}

/// Fails unless boxes and probabilities are those of the network, to 1e-4 of the largest.
#[track_caller]
fn assert_close(network: &Model, images: &Tensor, written: &Tensor, what: &str) {
    let (expected, _) = no_grad(|| network.forward_eval(images)).unwrap();
    assert_eq!(expected.size(), written.size(), "{what}");
    for (first, count) in [(0, 4), (4, expected.size()[2] - 4)] {
        let part = |tensor: &Tensor| tensor.narrow(2, first, count);
        let apart = (part(&expected) - part(written)).abs().max().double_value(&[]);
        let scale = part(&expected).abs().max().double_value(&[]);
        assert!(apart <= 1e-4 * scale, "{what}: {apart} of {scale}");
    }
}

fn names() -> Vec<String> {
    ["cat", "dog", "owl"].map(str::to_owned).to_vec()
}

#[test]
fn every_built_in_model_computes_what_the_network_computes() {
    for name in builtin::names() {
        let model = network(&name);
        let fused = model.fuse().unwrap();
        let images = images([1, 3, 64, 128]);
        for (network, what) in [(&fused, "fused"), (&model, "not fused")] {
            let file = encode(network, &names(), &settings(false), [1, 64, 128]).unwrap();
            assert_close(&model, &images, &run(&file, &images), &format!("{name}, {what}"));
        }
    }
}

#[test]
fn a_dynamic_file_takes_images_of_any_size() {
    let fused = network("yolov5n").fuse().unwrap();
    let file = encode(&fused, &names(), &settings(true), [1, 640, 640]).unwrap();
    for shape in [[1, 3, 64, 64], [2, 3, 96, 32]] {
        let images = images(shape);
        assert_close(&fused, &images, &run(&file, &images), &format!("{shape:?}"));
    }
}

/// All modules that detection models can have; the built-in models have a third of them.
#[test]
fn every_module_computes_what_the_network_computes() {
    let yaml = r#"{
        "nc": 3, "depth_multiple": 1.0, "width_multiple": 1.0,
        "anchors": [[10, 13, 16, 30], [30, 61, 62, 45]],
        "backbone": [
            [-1, 1, "Focus", [16, 3]],
            [-1, 1, "Conv", [16, 3, 2]],
            [-1, 2, "Bottleneck", [16]],
            [-1, 1, "BottleneckCSP", [16]],
            [-1, 1, "CrossConv", [16, 3, 1]],
            [-1, 1, "C3x", [16]],
            [-1, 1, "GhostConv", [16, 3, 2]],
            [-1, 1, "C3Ghost", [16]],
            [-1, 1, "MixConv2d", [16, [1, 3], 1]],
            [-1, 1, "SPP", [16, [3, 5]]],
            [-1, 1, "C3SPP", [16, [3, 5]]],
            [-1, 1, "nn.BatchNorm2d", []],
            [-1, 1, "Contract", [2]],
            [-1, 1, "Conv", [32, 1, 1]],
            [-1, 2, "C3TR", [32]],
            [-1, 1, "GhostBottleneck", [32, 3, 2]],
            [-1, 1, "DWConv", [32, 3, 1]]
        ],
        "head": [
            [-1, 1, "nn.ConvTranspose2d", [16, 2, 2]],
            [-1, 1, "nn.ZeroPad2d", [[1, 1, 1, 1]]],
            [-1, 1, "nn.MaxPool2d", [3, 1, 0]],
            [-1, 1, "nn.Upsample", [null, 2, "bilinear"]],
            [-1, 1, "C3", [16, false]],
            [16, 1, "Expand", [2]],
            [-1, 1, "nn.Upsample", [null, 2, "nearest"]],
            [[21, 23], 1, "Concat", [1]],
            [-1, 1, "SPPF", [16, 3]],
            [-1, 1, "Conv", [16, 3, 2]],
            [[25, 26], 1, "Detect", ["nc", "anchors"]]
        ]
    }"#;
    let yaml: serde_json::Value = serde_json::from_str(yaml).unwrap();
    for activation in ["nn.SiLU()", "nn.ReLU()", "nn.LeakyReLU(0.1)", "nn.Hardswish()", "nn.Mish()"] {
        let mut yaml = yaml.clone();
        yaml["activation"] = activation.into();
        let model = random(&ModelSpec::from_yaml_value(&yaml, 3, None).unwrap());
        let images = images([2, 3, 64, 128]);
        for network in [model.fuse().unwrap(), model] {
            let file = encode(&network, &names(), &settings(false), [2, 64, 128]).unwrap();
            assert_close(&network, &images, &run(&file, &images), activation);
        }
    }
}

#[test]
fn a_file_of_one_size_has_no_arithmetic_of_shapes() {
    let fused = network("yolov5n").fuse().unwrap();
    let bytes = encode(&fused, &names(), &settings(false), [1, 64, 64]).unwrap();
    let file = onnx_rs::parse(&bytes).unwrap();
    let graph = file.graph.as_ref().unwrap();
    let mut operations: Vec<&str> = graph.node.iter().map(|node| node.op_type.as_str()).collect();
    operations.sort_unstable();
    operations.dedup();
    assert_eq!(
        operations,
        ["Add", "Concat", "Conv", "MaxPool", "Mul", "Reshape", "Resize", "Sigmoid", "Slice", "Transpose"]
    );
    let metadata: Vec<(&str, &str)> =
        file.metadata_props.iter().map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(
        metadata,
        [("stride", "32"), ("names", "{0: 'cat', 1: 'dog', 2: 'owl'}"), ("model", "custom")]
    );
    assert_eq!((graph.input[0].name, graph.output[0].name), ("images", "output0"));
}

/// The runtime of these tests has no half precision, so the file is only read.
#[test]
fn half_precision_is_in_the_tensors() {
    let half = network("yolov5n").fused_half().unwrap();
    let bytes = encode(&half, &names(), &settings(false), [1, 64, 64]).unwrap();
    let single =
        encode(&network("yolov5n").fuse().unwrap(), &names(), &settings(false), [1, 64, 64]).unwrap();
    assert!(bytes.len() * 10 < single.len() * 6, "{} of {} bytes", bytes.len(), single.len());
    let graph = onnx_rs::parse(&bytes).unwrap().graph.unwrap();
    assert_eq!(graph.input[0].tensor_elem_type(), Some(onnx_rs::ast::DataType::Float16));
    assert_eq!(graph.output[0].tensor_elem_type(), Some(onnx_rs::ast::DataType::Float));
}
