//! Writes modules of PyTorch and YOLOv5 as Python objects, and reads them back, here and in PyTorch.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use torch_checkpoint::{DType, TensorData, Value, decode, encode, encode_modules};

/// A module with the attributes that PyTorch cannot add itself.
fn module(class: &str, parameters: Value, children: Value, attributes: Vec<(String, Value)>) -> Value {
    let none = || Value::Dict(Vec::new());
    let fields = [
        ("training", Value::Bool(false)),
        ("_parameters", parameters),
        ("_buffers", none()),
        ("_backward_hooks", none()),
        ("_forward_hooks", none()),
        ("_modules", children),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object { class: class.to_owned(), fields: fields.into_iter().chain(attributes).collect() }
}

fn linear(inputs: usize, outputs: usize) -> Value {
    let values: Vec<f32> = (0..inputs * outputs).map(|n| n as f32).collect();
    let weight = Value::Tensor(TensorData::from_f32(vec![outputs, inputs], &values));
    let parameters = Value::dict([("weight", weight), ("bias", Value::None)]);
    let sizes = [("in_features", inputs), ("out_features", outputs)];
    let sizes = sizes.map(|(name, size)| (name.to_owned(), Value::Int(size as i64)));
    module("torch.nn.modules.linear.Linear", parameters, Value::Dict(Vec::new()), sizes.into())
}

fn checkpoint() -> Value {
    let children = Value::dict([("0", linear(2, 3)), ("1", linear(3, 1))]);
    let transient = ("_non_persistent_buffers_set".to_owned(), Value::List(vec![Value::Str("x".to_owned())]));
    let class = "torch.nn.modules.container.Sequential";
    let model = module(class, Value::Dict(Vec::new()), children, vec![transient]);
    Value::dict([("epoch", Value::Int(-1)), ("model", model)])
}

#[test]
fn modules_are_read_back() {
    let path = Path::new("best.pt");
    let file = decode(&encode_modules(&checkpoint(), path).unwrap(), path).unwrap();
    assert_eq!(file.root, checkpoint());
    assert!(file.holds_module("model"));
    assert_eq!(file.tensors.keys().collect::<Vec<_>>(), ["0.weight", "1.weight"]);
}

/// Needs a Python that can import torch, in YOLO_TEST_PYTHON.
#[test]
fn pytorch_opens_modules_and_runs_them() {
    let Some(python) = std::env::var_os("YOLO_TEST_PYTHON") else {
        eprintln!("skipped: YOLO_TEST_PYTHON does not name a Python with torch");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("best.pt");
    std::fs::write(&path, encode_modules(&checkpoint(), &path).unwrap()).unwrap();
    let script = r#"
import collections, sys, torch
model = torch.load(sys.argv[1], weights_only=False)['model']
assert model(torch.ones(1, 2)).tolist() == [[0 * 1 + 1 * 5 + 2 * 9]], model(torch.ones(1, 2))
weight, = model[0].parameters()
assert type(weight) is torch.nn.Parameter and not weight.requires_grad and model[0].bias is None
assert type(model._modules) is collections.OrderedDict and model._non_persistent_buffers_set == {'x'}
model[0].register_buffer('mean', torch.zeros(1))
model[0].register_forward_hook(lambda *_: None).remove()
assert list(model.state_dict()) == ['0.weight', '0.mean', '1.weight']
torch.save(model.half(), sys.argv[1])
torch.optim.SGD(model.requires_grad_().parameters(), 0.1)
print('opened')
"#;
    let output = Command::new(python).arg("-c").arg(script).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.starts_with(b"opened"), "{said}");
    let again = torch_checkpoint::read(&path).unwrap();
    assert_eq!(again.tensors["1.weight"].dtype, DType::F16);
}

#[test]
fn objects_that_are_no_modules_are_not_written() {
    let path = Path::new("best.pt");
    for class in
        ["posix.system", "torch.nn.modules.linear.warnings", "torch.float16", "pathlib.PosixPath", "Linear"]
    {
        let object = Value::Object { class: class.to_owned(), fields: vec![] };
        let error = encode_modules(&Value::dict([("model", object)]), path).unwrap_err().to_string();
        assert!(error.contains(class) && error.contains("no module of a network"), "{error}");
    }
    let key = Value::Dict(vec![(linear(1, 1), Value::None)]);
    assert!(encode_modules(&key, path).unwrap_err().to_string().contains("cannot hash"));
    let deep = (0..200).fold(linear(1, 1), |inner, _| {
        module("models.common.Conv", Value::Dict(vec![]), Value::dict([("0", inner)]), vec![])
    });
    assert!(encode_modules(&deep, path).unwrap_err().to_string().contains("200 deep"));
    // What opens with `weights_only=True` has no objects at all.
    assert!(encode(&checkpoint(), path).unwrap_err().to_string().contains("weights_only=True"));
}

/// A module with any attributes and children.
fn any_module() -> impl Strategy<Value = Value> {
    let class = prop::sample::select(vec![
        "models.yolo.DetectionModel",
        "yolov5.models.common.C3",
        "torch.nn.modules.conv.Conv2d",
    ]);
    let tensor = (0..4usize, 0..3usize).prop_map(|(a, b)| {
        Value::Tensor(TensorData { dtype: DType::F16, shape: vec![a, b], bytes: vec![1; a * b * 2] })
    });
    let plain = prop_oneof![
        Just(Value::None),
        any::<i64>().prop_map(Value::Int),
        ".{0,9}".prop_map(Value::Str),
        tensor.clone(),
        prop::collection::vec(tensor.clone(), 0..3).prop_map(Value::List),
        prop::collection::vec(("[a-z]{1,3}", tensor.clone()), 0..3).prop_map(Value::dict),
    ];
    let named = |values: BoxedStrategy<Value>| prop::collection::vec(("_?[a-z]{1,4}", values), 0..4);
    let parameters =
        prop::collection::vec(("[a-z]{1,4}", prop::option::of(tensor)), 0..3).prop_map(|entries| {
            Value::dict(entries.into_iter().map(|(name, value)| (name, value.unwrap_or(Value::None))))
        });
    let attributes = named(plain.boxed());
    let leaf = (class.clone(), parameters.clone(), attributes.clone())
        .prop_map(|(class, parameters, rest)| module(class, parameters, Value::Dict(vec![]), rest));
    leaf.prop_recursive(4, 20, 4, move |inner| {
        (class.clone(), parameters.clone(), named(inner.boxed()).prop_map(Value::dict), attributes.clone())
            .prop_map(|(class, parameters, children, rest)| module(class, parameters, children, rest))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_module_is_read_back(model in any_module()) {
        let path = Path::new("best.pt");
        // A file needs a tensor to be one of weights.
        let root = Value::dict([("ema", linear(1, 1)), ("model", model)]);
        prop_assert_eq!(decode(&encode_modules(&root, path).unwrap(), path).unwrap().root, root);
    }
}
