//! Reads files written by PyTorch and compares names, order, types and every byte with what PyTorch
//! reads. The golden files have SHA-256 sums of the tensors.
#![expect(clippy::unwrap_used, reason = "clippy exempts tests, but not their helper functions")]

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use torch_checkpoint::{Value, WeightsFile};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn json(path: &Path) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A folder shared between checkouts, if it exists.
fn shared(variable: &str, folder: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder),
        PathBuf::from,
    );
    path.is_dir().then_some(path)
}

fn assert_equals_pytorch(file: &WeightsFile, sums: &str) {
    let expected = json(&golden(sums));
    assert!(file.tensors.keys().eq(expected.keys()), "names or their order differ");
    for (name, tensor) in &file.tensors {
        let ours = serde_json::json!([
            tensor.dtype.name(),
            tensor.shape,
            Sha256::digest(&tensor.bytes).iter().map(|b| format!("{b:02x}")).collect::<String>()
        ]);
        assert_eq!(ours, expected[name], "{name}");
    }
}

#[test]
fn a_yolov5_checkpoint_is_read_like_pytorch_in_all_protocols_and_formats() {
    for name in ["protocol2.pt", "protocol4.pt", "legacy2.pt", "legacy4.pt"] {
        let file = torch_checkpoint::read(&golden(name)).unwrap();
        assert_equals_pytorch(&file, "tiny.json");
        assert_eq!(file.names.as_deref(), Some(&["cat".to_owned(), "dog".to_owned()][..]));
        assert_eq!(
            file.yaml.unwrap(),
            serde_json::json!({"nc": 2, "depth_multiple": 0.33, "anchors": [[1, 2], [3, 4]]})
        );
        assert_eq!(file.stride, Some(vec![8.0]));

        let root = &file.root;
        assert_eq!(root.get("epoch").and_then(Value::as_i64), Some(3));
        assert_eq!(root.get("best_fitness").and_then(Value::as_f64), Some(0.5), "a NumPy array");
        assert_eq!(root.get("scalar"), Some(&Value::Float(0.25)), "a NumPy scalar");
        assert_eq!(root.get("bytes"), Some(&Value::Bytes(vec![0, 255])));
        assert_eq!(root.get("size"), Some(&Value::Tuple(vec![Value::Int(1), Value::Int(2)])));
        let folder = root.get("opt").and_then(|opt| opt.get("save_dir"));
        assert_eq!(folder, Some(&Value::Str("/runs/exp".to_owned())));
        let state = root.get("optimizer").and_then(|o| o.get("state")).and_then(Value::as_entries).unwrap();
        let transposed = state[0].1.get("b").and_then(Value::as_tensor).unwrap();
        assert_eq!((&transposed.shape[..], transposed.to_f32()), (&[3, 2][..], vec![1.0; 6]));
    }
}

#[test]
fn the_published_yolov5n_is_read_like_pytorch() {
    let Some(folder) = shared("YOLO_WEIGHTS", "weights") else {
        eprintln!("skipped: YOLO_WEIGHTS does not name a folder with yolov5n.pt");
        return;
    };
    let file = torch_checkpoint::read(&folder.join("yolov5n.pt")).unwrap();
    assert_eq!(file.tensors.len(), 349);
    assert_equals_pytorch(&file, "yolov5n.json");
    assert_eq!(file.names.as_ref().map(Vec::len), Some(80));
    assert_eq!(file.names.as_ref().unwrap()[0], "person");
    assert_eq!(file.yaml.as_ref().unwrap()["nc"], 80);
    assert_eq!(file.stride, Some(vec![8.0, 16.0, 32.0]));

    let Some(golden) = shared("YOLO_GOLDEN", "golden") else {
        eprintln!("skipped: YOLO_GOLDEN does not name the golden folder");
        return;
    };
    let keys = json(&golden.join("a_state_dict_keys.json"));
    assert!(file.tensors.keys().eq(keys.keys()));
    for (name, tensor) in &file.tensors {
        assert_eq!(serde_json::json!(tensor.shape), keys[name][0], "{name}");
    }
}

#[test]
fn safetensors_are_read_with_their_metadata() {
    use safetensors::tensor::{Dtype, TensorView};
    let bytes: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![2, 1], &bytes).unwrap();
    let metadata = [("names".to_owned(), r#"["a","b"]"#.to_owned()), ("format".to_owned(), "pt".to_owned())];
    let file = safetensors::serialize([("model.0.weight", view)], Some(metadata.into())).unwrap();
    let path = tempfile::tempdir().unwrap().keep().join("named.pt");
    std::fs::write(&path, file).unwrap();

    let file = torch_checkpoint::read(&path).unwrap();
    assert_eq!(file.tensors["model.0.weight"].shape, [2, 1]);
    assert_eq!(file.tensors["model.0.weight"].to_f32(), [1.0, -2.0]);
    assert_eq!(file.names, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(file.root.get("format").and_then(Value::as_str), Some("pt"));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn ema_comes_before_model_and_a_bare_state_dict_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    let state = |number: f32| {
        Value::dict([(
            "model.0.weight",
            Value::Tensor(torch_checkpoint::TensorData::from_f32(vec![1], &[number])),
        )])
    };
    let cases = [
        (Value::dict([("model", state(1.0)), ("ema", state(2.0))]), 2.0),
        (Value::dict([("model", state(1.0)), ("ema", Value::None)]), 1.0),
        (Value::dict([("state_dict", state(4.0))]), 4.0),
        (state(3.0), 3.0),
    ];
    for (root, expected) in cases {
        torch_checkpoint::write_pt(&path, &root).unwrap();
        assert_eq!(torch_checkpoint::read(&path).unwrap().tensors["model.0.weight"].to_f32(), [expected]);
    }
}
