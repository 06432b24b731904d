//! `yolo weights` as a user runs it: what is in a file, what it would execute in Python, and how two files differ.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use torch_checkpoint::{TensorData, Value as Content};
use user::{TRAIN, User};

/// Files that PyTorch wrote.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("trainer/weights/tests/golden")
}

/// Without the sum of the file and without the options, among which is the folder of the test.
fn stable(text: &str) -> String {
    let (before, options) = text.split_once("  Options").unwrap();
    let (_, after) = options.split_once("  Hyp").unwrap();
    let (after, _) = after.split_once("  SHA-256").unwrap();
    format!("{before}  Hyp{}", after.trim_end())
}

#[test]
fn a_checkpoint_of_yolov5_is_described() {
    let user = User::new();
    std::fs::copy(golden().join("protocol2.pt"), user.path().join("v5.pt")).unwrap();
    let shown = user.run("weights v5.pt").succeeded();
    insta::assert_snapshot!(shown.stdout.trim_end(), @"
    v5.pt
      Format    PyTorch checkpoint, pickle protocol 2, 8.6 kB
      Model     custom: 79 parameters in 9 tensors (8 of type float16 and 1 of type
                int64); stride 8
      Classes   2: cat, dog
      Training  4 epochs done, can be resumed, best fitness 0.5000, written by
                YOLOv5, 2026-01-01T00:00:00
      Options   1 (--verbose lists them); from the file
      Opens in  yolo: yes
                PyTorch (torch.load, weights_only=True): no, it has classes that
                weights_only=True does not allow
                Python (torch.load, weights_only=False): yes, with NumPy and the
                repository of YOLOv5
                YOLOv5: yes
      In Python nothing is executed but what builds tensors, plain values and layers
                of models
      SHA-256   ab3f891195ab0b62d8c8ffc883d2a614822ec6120675875e9bca3a367ee9b478
    ");
}

#[test]
fn a_run_shows_its_training_and_its_options() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1")).succeeded();
    let shown = user.run("weights runs/train/exp").succeeded();
    insta::assert_snapshot!(stable(&shown.stdout), @"
    runs/train/exp/weights/best.pt
      Format    PyTorch checkpoint, pickle protocol 2, 3.7 MB
      Model     yolov5n: 1766623 parameters in 349 tensors (292 of type float16 and
                57 of type int64); strides 8, 16 and 32
      Classes   2: red, blue
      Training  finished, so the file has only weights, images of 64 px, written by
                yolo 0.1.0
      Hyp       28 (--verbose lists them)
      Opens in  yolo: yes
                PyTorch (torch.load, weights_only=True): yes
                Python (torch.load, weights_only=False): yes
                YOLOv5: no, it has a state dict instead of a pickled model; `yolo
                export --format yolov5` writes one
      In Python nothing is executed but what builds tensors, plain values and layers
                of models
    ");
    for option in ["weights=none", "cfg=yolov5n", "epochs=1", "batch_size=8", "; from opt.yaml of the run"] {
        assert!(shown.stdout.contains(option), "{option}: {}", shown.stdout);
    }
    let json = user.run("weights --json runs/train/exp/weights/last.pt").succeeded();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let file = &json[0];
    assert_eq!(file["format"], "zip");
    assert_eq!(file["model"]["architecture"], "yolov5n");
    assert_eq!(file["training"]["options"]["epochs"], 1);
    assert_eq!(file["training"]["finished"], true);
    assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(file["refused"], Value::Null);
}

/// Writes a state dict with two tensors.
fn state(path: &Path, epoch: i64, bias: &[f32], other: &str) {
    let tensor = |values: &[f32]| Content::Tensor(TensorData::from_f32(vec![values.len()], values));
    let model =
        Content::dict([("bias", tensor(bias)), ("weight", tensor(&[1.0, 2.0])), (other, tensor(&[0.0]))]);
    let file = Content::dict([("epoch", Content::Int(epoch)), ("model", model)]);
    torch_checkpoint::write_pt(path, &file).unwrap();
}

#[test]
fn two_files_are_compared() {
    let user = User::new();
    state(&user.path().join("a.pt"), 3, &[1.0, 3.0], "old");
    state(&user.path().join("b.pt"), 7, &[1.0, 2.5], "new");
    let shown = user.run("weights --diff a.pt b.pt").succeeded();
    insta::assert_snapshot!(shown.stdout.trim_end(), @"
    a: a.pt
    b: b.pt
    epochs done: a 4, b 8
    only in a: old
    only in b: new
    2 tensors compared, 1 with different values:
      bias: at most 5.000e-1, 15.81 % on average
    ");
    let same = user.run("weights --diff a.pt a.pt").succeeded();
    insta::assert_snapshot!(same.stdout.trim_end(), @"
    a: a.pt
    b: a.pt
    3 tensors compared, all values equal
    ");
    let json = user.run("weights --json --diff a.pt b.pt").succeeded();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["facts"][0], serde_json::json!({"what": "epochs done", "values": [4, 8]}));
    assert_eq!(json["tensors"]["values"][0]["name"], "bias");
    assert_eq!(json["tensors"]["values"][0]["largest"], 0.5);
    assert_eq!(json["tensors"]["equal"], 1);
}

#[test]
fn code_in_a_file_is_shown_and_not_run() {
    let user = User::new();
    std::fs::write(user.path().join("evil.pt"), b"cos\nsystem\n(S'touch witness'\ntR.").unwrap();
    state(&user.path().join("good.pt"), 1, &[1.0], "other");
    let shown = user.run("weights evil.pt good.pt");
    assert_eq!(shown.code, Some(1));
    assert!(!user.path().join("witness").exists());
    let evil = shown.stdout.split("\n\n").next().unwrap();
    insta::assert_snapshot!(evil, @"
    evil.pt
      Format    pickle, not in PyTorch's layout, pickle protocol 0, 32 B
      Opens in  yolo: no, it wants to run code: it references `os.system`, which is
                not on the allow-list; nothing was executed
                PyTorch (torch.load, weights_only=True): no, it is a bare pickle
                Python (torch.load, weights_only=False): no, do not try: it executes
                what is listed below
                YOLOv5: no, do not try: it executes what is listed below
      In Python 1 thing would be executed that is not needed to load a model:
                  os.system('touch witness')
      SHA-256   5f6d12138357b775117c7646eaf79dd92b14403f3a5d1b539f12162622c00eee
    ");
    insta::assert_snapshot!(shown.stderr.trim_end(), @"
    error: evil.pt wants to run code: it references `os.system`, which is not on the allow-list; nothing was executed
    hint: do not open this file with Python unless you trust its source; ask its author for a state dict or a .safetensors file
    ");
    assert!(shown.stdout.contains("good.pt\n"), "the other file is described too: {}", shown.stdout);
}

#[test]
fn what_is_no_weights_file_ends_in_one_message() {
    let user = User::new();
    std::fs::write(user.path().join("notes.txt"), "shopping list").unwrap();
    std::fs::create_dir(user.path().join("empty")).unwrap();
    let message = |arguments: &str| {
        let shown = user.run(&format!("weights {arguments}"));
        assert!(shown.stdout.is_empty(), "{}", shown.stdout);
        format!("{} {}", shown.code.unwrap(), shown.stderr.trim_end())
    };
    insta::assert_snapshot!(message("notes.txt"), @"
    1 error: notes.txt is a text file, not weights (it begins with “shopping list”)
    hint: give a PyTorch checkpoint (.pt), a .safetensors file or an .onnx file
    ");
    insta::assert_snapshot!(message("missing.pt"), @"
    1 error: missing.pt cannot be opened: No such file or directory (os error 2)
    hint: check the path of the file
    ");
    insta::assert_snapshot!(message("empty"), @"
    1 error: empty is a folder without weights/best.pt and weights/last.pt
    hint: give a weights file, or the folder of a run
    ");
    insta::assert_snapshot!(message("notes.txt missing.pt"), @"
    1 error: notes.txt is a text file, not weights (it begins with “shopping list”)
    hint: give a PyTorch checkpoint (.pt), a .safetensors file or an .onnx file
    error: missing.pt cannot be opened: No such file or directory (os error 2)
    hint: check the path of the file
    ");
    insta::assert_snapshot!(message("--diff notes.txt"), @"
    2 error: --diff compares two files, not 1
    hint: give two files: `yolo weights --diff A.pt B.pt`
    ");
}

/// What is said about `torch.load(weights_only=True)` is what PyTorch does.
#[test]
fn pytorch_opens_what_is_said_to_open() {
    let Some(python) = std::env::var_os("YOLO_TEST_PYTHON") else {
        println!("skipped: YOLO_TEST_PYTHON does not name a Python with torch");
        return;
    };
    let user = User::new();
    state(&user.path().join("ours.pt"), 3, &[1.0], "other");
    let mut files = vec![user.path().join("ours.pt")];
    for folder in ["", "corpus", "corpus/refused"] {
        let entries = std::fs::read_dir(golden().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "pt")));
    }
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let shown = user.run(&format!("weights --json {}", file.display()));
        let json: Value = serde_json::from_str(&shown.stdout).unwrap();
        let openers = json[0]["opens_in"].as_array().unwrap();
        let safe = openers.iter().find(|one| one["program"].as_str().unwrap().contains("weights_only=True"));
        let load = format!("import torch; torch.load({:?}, weights_only=True)", file.display().to_string());
        let opened = Command::new(&python).args(["-c", &load]).output().unwrap();
        assert_eq!(
            safe.unwrap()["opens"],
            opened.status.success(),
            "{}: {}",
            file.display(),
            String::from_utf8_lossy(&opened.stderr)
        );
    }
}

/// An ONNX file as `yolo export` writes it.
fn export(user: &User, options: &str) {
    user.run(&format!("export --weights best.pt --format onnx --imgsz 64 {options}")).succeeded();
}

#[test]
fn onnx_files_are_described_and_compared() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots --noval")).succeeded();
    std::fs::rename(user.path().join("runs/train/exp/weights/last.pt"), user.path().join("best.pt")).unwrap();
    export(&user, "--nms --dynamic");
    std::fs::rename(user.path().join("best.onnx"), user.path().join("nms.onnx")).unwrap();
    export(&user, "");
    let shown = user.run("weights best.onnx nms.onnx").succeeded().stdout;
    let (plain, nms) = shown.split_once("\n\n").unwrap();
    for part in [
        "ONNX, opset 17, IR version 8, written by yolo 0.1.0",
        "Input     images: float32 (1, 3, 64, 64)",
        "Output    output0: float32 (1, 252, 7)",
        "60 Conv",
        "NMS       none",
        "Metadata  names: {0: 'red', 1: 'blue'}",
        "Metadata  stride: 32",
    ] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    for part in [
        "images: float32 (batch, 3, height, width)",
        "detections: float32 (batch, 100, 6)",
        "num_detections: int64 (batch)",
        "NMS       inside the file",
    ] {
        assert!(nms.contains(part), "{part}: {nms}");
    }
    let json: Value = serde_json::from_str(&user.run("weights --json best.onnx").succeeded().stdout).unwrap();
    assert_eq!((&json[0]["format"], &json[0]["suppresses"]), (&"onnx".into(), &false.into()));
    assert_eq!(json[0]["opsets"][""], 17);
    assert_eq!(json[0]["inputs"][0]["shape"], serde_json::json!([1, 3, 64, 64]));

    let same = user.run("weights --diff best.onnx best.onnx").succeeded().stdout;
    assert!(same.contains("all tensors and all else are equal"), "{same}");
    let other = user.run("weights --diff best.onnx nms.onnx").succeeded().stdout;
    assert!(other.contains("suppresses: a false, b true") && other.contains("tensors sha256: a "), "{other}");
    user.run("weights --diff best.onnx best.pt").failed_with(1, &["an ONNX file cannot be compared"]);

    // The content decides, not the name.
    std::fs::rename(user.path().join("best.onnx"), user.path().join("misnamed.pt")).unwrap();
    std::fs::copy(user.path().join("best.pt"), user.path().join("misnamed.onnx")).unwrap();
    let shown = user.run("weights misnamed.pt misnamed.onnx").succeeded().stdout;
    assert!(shown.contains("ONNX, opset 17") && shown.contains("PyTorch checkpoint"), "{shown}");
    user.run("predict squares/images/val --weights misnamed.pt").failed_with(
        1,
        &[
            "misnamed.pt is an ONNX export, not a checkpoint",
            "the .pt checkpoint that the export was made from",
        ],
    );
}

#[test]
fn damaged_onnx_files_end_in_one_message() {
    let user = User::new();
    // Field 7, the graph, claims 2 GB; ten thousand graphs within each other; an empty file; text.
    let claims: &[u8] = &[0x08, 0x08, 0x3a, 0xff, 0xff, 0xff, 0xff, 0x07];
    let nested = (0..10_000).fold(Vec::new(), |inner: Vec<u8>, _| {
        let mut length = inner.len();
        let mut outer = vec![0x3a];
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(inner);
        outer
    });
    for (name, bytes) in [("a", claims), ("b", &nested), ("c", &[]), ("d", b"shopping list")] {
        std::fs::write(user.path().join(format!("{name}.onnx")), bytes).unwrap();
        user.run(&format!("weights {name}.onnx")).failed_with(1, &[&format!("{name}.onnx is no ONNX file")]);
    }
    user.run("weights missing.onnx").failed_with(1, &["missing.onnx cannot be opened"]);
}
