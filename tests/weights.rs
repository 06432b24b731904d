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
      Training  4 epochs done, best fitness 0.5000, written by YOLOv5,
                2026-01-01T00:00:00
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
    // Numbers that are the same on every machine.
    std::fs::write(user.path().join("runs/train/exp/results.csv"), results(&[(0.6, 0.4)])).unwrap();
    let shown = user.run("weights runs/train/exp").succeeded();
    insta::assert_snapshot!(stable(&shown.stdout), @"
    runs/train/exp/weights/best.pt
      Format    PyTorch checkpoint, pickle protocol 2, 3.7 MB
      Model     yolov5n: 1766623 parameters in 349 tensors (292 of type float16 and
                57 of type int64); strides 8, 16 and 32
      Classes   2: red, blue
      Training  finished after 1 epoch, so the file has only weights, best fitness
                0.4200 in epoch 1, images of 64 px, written by yolo 0.1.0
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
    assert_eq!(file["training"]["can_resume"], false);
    assert_eq!(file["training"]["epochs_done"], 1);
    assert_eq!(file["training"]["epochs_from"], "results.csv of the run");
    assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(file["refused"], Value::Null);
}

/// `results.csv` of epochs with this mAP50 and mAP50-95.
fn results(epochs: &[(f64, f64)]) -> String {
    let mut csv = yolo_plan::results::COLUMNS.join(",") + "\n";
    for (epoch, (map50, map)) in epochs.iter().enumerate() {
        csv.push_str(&format!("{epoch},1,1,1,0.5,0.5,{map50},{map},1,1,1,0.01,0.01,0.01\n"));
    }
    csv
}

/// The line about the training of a checkpoint with these fields, in a run that planned 20 epochs, with these results.
fn training_line(fields: &[(&str, Content)], results: &[(f64, f64)]) -> String {
    let user = User::new();
    let folder = user.path().join("run/weights");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(user.path().join("run/opt.yaml"), "epochs: 20\n").unwrap();
    std::fs::write(user.path().join("run/results.csv"), self::results(results)).unwrap();
    let model = Content::dict([("bias", Content::Tensor(TensorData::from_f32(vec![1], &[1.0])))]);
    let mut all = vec![("model", model), ("yolo_version", Content::Str("0.1.0".to_owned()))];
    all.extend(fields.iter().cloned());
    torch_checkpoint::write_pt(&folder.join("last.pt"), &Content::dict(all)).unwrap();
    let shown = user.run("weights run/weights/last.pt").succeeded().stdout;
    let (_, after) = shown.split_once("  Training  ").unwrap();
    after.split("\n  O").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_checkpoint_says_how_far_its_run_has_come() {
    let running = |epoch: i64, fitness: f64, best: i64| {
        let one = Content::Int(1);
        vec![
            ("epoch", Content::Int(epoch)),
            ("best_fitness", Content::Float(fitness)),
            ("best_epoch", Content::Int(best)),
            ("ema", Content::dict([("bias", Content::Tensor(TensorData::from_f32(vec![1], &[1.0])))])),
            ("optimizer", one.clone()),
            ("updates", one.clone()),
            ("batches_done", Content::Int(3)),
            ("last_optimizer_step", one),
            ("finished", Content::Bool(false)),
        ]
    };
    assert_eq!(
        training_line(&running(-1, 0.0, 0), &[]),
        "interrupted in epoch 1 of 20, can be resumed, written by yolo 0.1.0",
        "nothing was validated"
    );
    assert_eq!(
        training_line(&running(4, 0.25, 3), &[(0.1, 0.1)]),
        "5 of 20 epochs done, can be resumed, best fitness 0.2500 in epoch 4, written by yolo 0.1.0"
    );
    let without_optimizer: Vec<_> =
        running(4, 0.25, 3).into_iter().filter(|(name, _)| *name != "optimizer").collect();
    assert!(training_line(&without_optimizer, &[]).starts_with("5 of 20 epochs done, best fitness"));
    let finished = [("epoch", Content::Int(-1)), ("finished", Content::Bool(true))];
    assert_eq!(
        training_line(&finished, &[(0.5, 0.3), (0.6, 0.4), (0.6, 0.3)]),
        "finished after 3 of 20 epochs, so the file has only weights, best fitness 0.4200 in epoch 2, \
         written by yolo 0.1.0"
    );
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
      bias: at most 0.5, 15.81 % on average
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
fn many_facts_that_only_one_file_has_are_one_line() {
    let user = User::new();
    let hyp = Content::dict([("lr0", Content::Float(0.01)), ("box", Content::Float(0.05))]);
    let other = Content::dict([("lr0", Content::Float(0.02)), ("box", Content::Float(0.05))]);
    for (name, hyp) in [("a.pt", Some(hyp)), ("b.pt", Some(other)), ("none.pt", None)] {
        let model = Content::dict([("bias", Content::Tensor(TensorData::from_f32(vec![1], &[1.0])))]);
        let fields = std::iter::once(("model", model)).chain(hyp.map(|hyp| ("hyp", hyp)));
        torch_checkpoint::write_pt(&user.path().join(name), &Content::dict(fields)).unwrap();
    }
    let differ = |files: &str| {
        let shown = user.run(&format!("weights --diff {files}")).succeeded().stdout;
        shown.lines().nth(2).unwrap().to_owned()
    };
    assert_eq!(differ("a.pt none.pt"), "hyperparameters: a 2, b none");
    assert_eq!(differ("a.pt b.pt"), "hyperparameter lr0: a 0.01, b 0.02");
}

#[test]
fn a_state_dict_needs_its_model_and_a_damaged_file_opens_nowhere() {
    let user = User::new();
    state(&user.path().join("state.pt"), 3, &[1.0], "other");
    let openers = |file: &str| -> Vec<String> {
        let json = user.run(&format!("weights --json {file}")).stdout;
        let json: Value = serde_json::from_str(&json).unwrap();
        let all = json[0]["opens_in"].as_array().unwrap().iter();
        all.map(|one| format!("{} {} {}", one["program"], one["opens"], one["note"])).collect()
    };
    assert_eq!(
        openers("state.pt")[0],
        r#""yolo" true "for training with --cfg, because it does not describe its model""#
    );
    // The header of a safetensors file whose tensor is missing.
    let header = br#"{"bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    std::fs::write(user.path().join("short.safetensors"), &bytes).unwrap();
    assert_eq!(openers("short.safetensors")[1], r#""libraries for safetensors" false "it is damaged""#);
    bytes.extend(1.0_f32.to_le_bytes());
    std::fs::write(user.path().join("whole.safetensors"), &bytes).unwrap();
    assert_eq!(openers("whole.safetensors")[1], r#""libraries for safetensors" true null"#);
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
    std::fs::write(user.path().join("picture.jpg"), [0xff, 0xd8, 0xff, 0xe0, 0x00]).unwrap();
    insta::assert_snapshot!(message("picture.jpg"), @"
    1 error: picture.jpg is neither a PyTorch checkpoint, a safetensors file nor an ONNX file
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

#[test]
fn in_json_every_file_has_an_object() {
    let user = User::new();
    std::fs::write(user.path().join("notes.txt"), "shopping list").unwrap();
    state(&user.path().join("good.pt"), 1, &[1.0], "other");
    let shown = user.run("weights --json notes.txt good.pt");
    assert_eq!(shown.code, Some(1));
    let json: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        json[0],
        serde_json::json!({
            "file": "notes.txt",
            "error": "notes.txt is a text file, not weights (it begins with “shopping list”)",
            "hint": "give a PyTorch checkpoint (.pt), a .safetensors file or an .onnx file",
        })
    );
    assert_eq!((&json[1]["file"], json.as_array().unwrap().len()), (&"good.pt".into(), 2));
    assert!(shown.stderr.contains("error: notes.txt is a text file"), "{}", shown.stderr);
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
