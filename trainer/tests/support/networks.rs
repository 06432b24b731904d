//! Networks with random weights for the tests of exports: the built-in models, narrowed, and one with every module.

use tch::{Device, Kind, Tensor, no_grad};
use yolo_plan::model::ModelSpec;
use yolo_trainer::model::Model;

/// All activations that a model's yaml can ask for.
pub(crate) const ACTIVATIONS: [&str; 5] =
    ["nn.SiLU()", "nn.ReLU()", "nn.LeakyReLU(0.1)", "nn.Hardswish()", "nn.Mish()"];

/// A network of a built-in model, with an eighth of the channels of its largest form, so that none is large.
pub(crate) fn network(name: &str) -> Model {
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
pub(crate) fn images(shape: [i64; 4]) -> Tensor {
    let count = shape.iter().product::<i64>();
    (Tensor::arange(count, (Kind::Float, Device::Cpu)).remainder(251.0) / 250.0).reshape(shape)
}

/// Names of the three classes.
pub(crate) fn names() -> Vec<String> {
    ["cat", "dog", "owl"].map(str::to_owned).to_vec()
}

/// All modules that detection models can have; the built-in models have a third of them.
pub(crate) fn with_every_module(activation: &str) -> Model {
    let mut yaml: serde_json::Value = serde_json::from_str(EVERY_MODULE).unwrap();
    yaml["activation"] = activation.into();
    random(&ModelSpec::from_yaml_value(&yaml, 3, None).unwrap())
}

const EVERY_MODULE: &str = r#"{
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
