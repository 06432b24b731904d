//! Checkpoints for YOLOv5's own scripts, of networks with random weights: read back by `yolo`, and opened and run by
//! YOLOv5 where there is one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "CI lists the lines of skipped tests")]

#[path = "support/networks.rs"]
mod networks;

use std::path::Path;
use std::process::Command;

use networks::{ACTIVATIONS, images, names, network, with_every_module};
use tch::{Device, Kind, Tensor, no_grad};
use torch_checkpoint::{DType, TensorData, Value, WeightsFile, decode, write_pt};
use yolo_plan::model::builtin;
use yolo_trainer::model::Model;
use yolo_trainer::tasks::export::yolov5::encode;

/// All networks of these tests, by name.
fn all() -> Vec<(String, Model)> {
    let built_in = builtin::names().into_iter().map(|name| (name.clone(), network(&name)));
    let others =
        ACTIVATIONS.map(|activation| (format!("every module, {activation}"), with_every_module(activation)));
    built_in.chain(others).collect()
}

fn read(bytes: &[u8]) -> WeightsFile {
    decode(bytes, Path::new("best_yolov5.pt")).unwrap()
}

fn outputs(model: &Model, images: &Tensor) -> Tensor {
    no_grad(|| model.forward_eval(images)).unwrap().0
}

#[test]
fn every_model_is_read_back() {
    let images = images([1, 3, 64, 128]);
    for (name, model) in all() {
        let file = read(&encode(&model, &names(), false, Path::new("best.pt")).unwrap());
        assert_eq!(
            (file.names.clone(), file.stride.clone()),
            (Some(names()), Some(model.strides().to_vec())),
            "{name}"
        );
        let mut expected: Vec<&str> = model.state().iter().map(|entry| entry.name.as_str()).collect();
        let mut found: Vec<&str> = file.tensors.keys().map(String::as_str).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
        let again = Model::from_weights(&file, None, None, Device::Cpu).unwrap();
        let transfer = again.transfer(&file, false).unwrap();
        assert_eq!((transfer.matched, transfer.extra.len()), (transfer.total, 0), "{name}");
        // Copied, because attention with gradients rounds otherwise.
        let again = again.copy().unwrap();
        assert_eq!(outputs(&again, &images), outputs(&model, &images), "{name}");
    }
}

#[test]
fn a_checkpoint_is_that_of_a_finished_run() {
    let model = network("yolov5n");
    let file = read(&encode(&model, &names(), true, Path::new("best.pt")).unwrap());
    let get = |name: &str| file.root.get(name).unwrap();
    assert_eq!(get("epoch"), &Value::Int(-1));
    for name in ["ema", "optimizer", "updates"] {
        assert_eq!(get(name), &Value::None, "{name}");
    }
    assert!(file.tensors.values().all(|tensor| matches!(tensor.dtype, DType::F16 | DType::I64)));
    let class = |value: &Value| match value {
        Value::Object { class, .. } => class.clone(),
        other => panic!("{other:?} is no object"),
    };
    let model = get("model");
    assert_eq!(class(model), "models.yolo.DetectionModel");
    assert_eq!(model.get("save").unwrap().as_slice().unwrap().len(), 7);
    let layers = model.get("_modules").unwrap().get("model").unwrap().get("_modules").unwrap();
    let layers: Vec<&Value> = layers.as_entries().unwrap().iter().map(|(_, layer)| layer).collect();
    let classes = [0, 2, 9, 11, 12, 24].map(|index: usize| class(layers[index]));
    assert_eq!(
        classes,
        [
            "models.common.Conv",
            "models.common.C3",
            "models.common.SPPF",
            "torch.nn.modules.upsampling.Upsample",
            "models.common.Concat",
            "models.yolo.Detect"
        ]
    );
    let sources = |index: usize| layers[index].get("f").unwrap().clone();
    assert_eq!(sources(11), Value::Int(-1));
    assert_eq!(sources(12), Value::List(vec![Value::Int(-1), Value::Int(6)]));
    assert_eq!(layers[24].get("type").unwrap().as_str(), Some("models.yolo.Detect"));
}

fn plain(tensor: &Tensor) -> Value {
    let shape = tensor.size().iter().map(|&side| side as usize).collect();
    let values = Vec::<f32>::try_from(tensor.to_kind(Kind::Float).reshape([-1])).unwrap();
    Value::Tensor(TensorData::from_f32(shape, &values))
}

/// Needs a Python in YOLO_TEST_PYTHON that has torch and the package `yolov5`. In its folder are the modules of the
/// repository, under the repository's names.
#[test]
fn yolov5_opens_and_computes_what_the_network_computes() {
    let Some(python) = std::env::var_os("YOLO_TEST_PYTHON") else {
        println!("skipped: YOLO_TEST_PYTHON does not name a Python with torch");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let images = images([1, 3, 64, 128]);
    let networks = all();
    for (index, (_, model)) in networks.iter().enumerate() {
        let path = at(&format!("{index}.pt"));
        std::fs::write(&path, encode(model, &names(), false, &path).unwrap()).unwrap();
        let known = Value::dict([("images", plain(&images)), ("outputs", plain(&outputs(model, &images)))]);
        write_pt(&at(&format!("{index}.known")), &known).unwrap();
    }
    let script = r#"
import importlib.util, os, sys, torch
found = importlib.util.find_spec('yolov5')
if found is None:
    print('skipped: the Python of YOLO_TEST_PYTHON has no package yolov5')
    raise SystemExit
sys.path.insert(0, os.path.dirname(found.origin))
for index in range(int(sys.argv[1])):
    known = torch.load(f'{index}.known', weights_only=True)
    checkpoint = torch.load(f'{index}.pt', weights_only=False)
    model = checkpoint['model'].float().eval()
    for fused in (False, True):
        outputs = (model.fuse() if fused else model)(known['images'])[0]
        expected = known['outputs']
        assert outputs.shape == expected.shape, index
        for part in (slice(0, 4), slice(4, None)):
            apart = (outputs - expected)[..., part].abs().max() / expected[..., part].abs().max()
            assert apart < 1e-4, (index, fused, apart)
    # What train.py does: a model of the same description takes all tensors.
    checkpoint = torch.load(f'{index}.pt', weights_only=False)
    model = checkpoint['model']
    fresh = type(model)(model.yaml, ch=3, nc=3)
    fresh.load_state_dict(model.float().state_dict(), strict=True)
    assert [type(m).__name__ for m in fresh.model] == [type(m).__name__ for m in model.model]
    assert [m.f for m in fresh.model] == [m.f for m in model.model] and fresh.save == model.save
    assert [m.np for m in fresh.model] == [m.np for m in model.model]
    assert fresh.stride.tolist() == model.stride.tolist() and fresh.yaml == model.yaml
    fresh.eval()
    assert torch.allclose(fresh(known['images'])[0], known['outputs'], rtol=1e-3, atol=1e-3)
print('opened')
"#;
    let output = Command::new(python)
        .args(["-c", script, &networks.len().to_string()])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    let last = said.lines().last().unwrap();
    assert!(last == "opened" || last.starts_with("skipped: "), "{said}");
    println!("{last}");
}
