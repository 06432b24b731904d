//! `yolo export` as a user runs it: each format is opened again and computes what the network computes; mistakes,
//! a full disk and an interruption leave no file.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "support/user.rs"]
mod user;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use small_disk::SmallDisk;
use torch_checkpoint::read;
use user::{SIGINT, TRAIN, User, masked, wait_for};

/// All formats.
const FORMATS: [&str; 5] = ["torchscript", "onnx", "torch", "yolov5", "safetensors"];

/// A user with a trained model in `best.pt`.
fn trained() -> User {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots --noval")).succeeded();
    std::fs::rename(user.path().join("runs/train/exp/weights/last.pt"), user.path().join("best.pt")).unwrap();
    std::fs::remove_dir_all(user.path().join("runs")).unwrap();
    user
}

/// The files in the user's folder that begin with `best` or are hidden.
fn files(user: &User) -> Vec<String> {
    let entries = std::fs::read_dir(user.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with("best") || name.starts_with('.')).collect();
    names.sort();
    names
}

/// Runs a script in the Python of the tests, if there is one.
#[allow(clippy::print_stdout, reason = "CI lists the lines of skipped tests")]
fn python(script: &str, folder: &Path) -> Option<String> {
    let Some(python) = std::env::var_os("YOLO_TEST_PYTHON") else {
        println!("skipped: YOLO_TEST_PYTHON does not name a Python with torch");
        return None;
    };
    let output = Command::new(python).arg("-c").arg(script).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn each_format_is_written_beside_the_weights() {
    let user = trained();
    let output = user
        .run("export --weights best.pt --format torchscript safetensors --include torch --imgsz 64 96")
        .succeeded();
    assert_eq!(files(&user), ["best.pt", "best.safetensors", "best.torchscript", "best_state_dict.pt"]);
    assert!(!user.path().join("runs").exists(), "an export leaves no run folder");
    let folder = user.path().canonicalize().unwrap().display().to_string();
    assert_eq!(
        output.stdout.replace(&folder, "."),
        "torchscript: ./best.torchscript\ntorch: ./best_state_dict.pt\nsafetensors: ./best.safetensors\n"
    );
    assert_eq!(
        masked(&output.stderr).replace("within 1e-7 of the network's", "of the network"),
        "N layers, N parameters, N gradients, N GFLOPs\n\
         torchscript: N MB, with the outputs of the network\n\
         torch: N MB, with the outputs of the network\n\
         safetensors: N MB, with the outputs of the network"
    );

    let original = read(&user.path().join("best.pt")).unwrap();
    let exported = read(&user.path().join("best.safetensors")).unwrap();
    assert!(exported.tensors.len() == original.tensors.len());
    assert!(original.tensors.iter().all(|(name, tensor)| exported.tensors[name] == *tensor));
    assert_eq!((exported.names, exported.stride), (original.names, original.stride));
    let state = read(&user.path().join("best_state_dict.pt")).unwrap();
    assert!(original.tensors.iter().all(|(name, tensor)| state.tensors[name] == *tensor));

    let opened = python(
        "import json, torch\n\
         extra = {'config.txt': ''}\n\
         module = torch.jit.load('best.torchscript', _extra_files=extra)\n\
         config = json.loads(extra['config.txt'])\n\
         assert config == {'shape': [1, 3, 64, 96], 'stride': 32, 'names': {'0': 'red', '1': 'blue'}}, config\n\
         assert module(torch.rand(1, 3, 64, 96)).shape == (1, 378, 7)\n\
         state = torch.load('best_state_dict.pt', weights_only=True)\n\
         print(len(state), state['model.0.conv.weight'].dtype)",
        user.path(),
    );
    assert!(opened.is_none_or(|text| text.trim() == format!("{} torch.float16", original.tensors.len())));
}

#[test]
fn what_was_exported_validates_as_the_weights_do() {
    let user = trained();
    user.run("export --weights best.pt --format safetensors --imgsz 64").succeeded();
    let metrics = |weights: &str| {
        let arguments = "val --data squares/squares.yaml --imgsz 64 --device cpu --weights";
        user.run(&format!("{arguments} {weights}")).succeeded().table().to_owned()
    };
    assert_eq!(metrics("best.safetensors"), metrics("best.pt"));
}

/// `trainer/tests/export_yolov5.rs` has YOLOv5 itself open such files.
#[test]
fn a_checkpoint_for_yolov5_has_what_the_weights_have() {
    let user = trained();
    let output = user.run("export --weights best.pt --format yolov5 --imgsz 64").succeeded();
    assert!(output.stderr.contains("yolov5: 3.8 MB, with the outputs of the network"), "{}", output.stderr);
    let (original, exported) = (user.path().join("best.pt"), user.path().join("best_yolov5.pt"));
    let (original, exported) = (read(&original).unwrap(), read(&exported).unwrap());
    assert!(exported.holds_module("model") && !original.holds_module("model"));
    assert_eq!(exported.tensors.len(), original.tensors.len());
    assert!(original.tensors.iter().all(|(name, tensor)| exported.tensors[name] == *tensor));
    assert_eq!((&exported.names, &exported.stride), (&original.names, &original.stride));
    let shown = user.run("weights best_yolov5.pt").succeeded();
    assert!(shown.stdout.contains("YOLOv5: yes"), "{}", shown.stdout);
    // Training and validation go on from it as from the weights themselves.
    let arguments = "val --data squares/squares.yaml --imgsz 64 --device cpu --weights";
    let metrics = |weights: &str| user.run(&format!("{arguments} {weights}")).succeeded().table().to_owned();
    assert_eq!(metrics("best_yolov5.pt"), metrics("best.pt"));
}

#[test]
fn half_precision_and_unfused_networks() {
    let user = trained();
    let size = |name: &str| std::fs::metadata(user.path().join(name)).unwrap().len();
    user.run("export --weights best.pt --imgsz 64").succeeded();
    let fused = size("best.torchscript");
    user.run("export --weights best.pt --imgsz 64 --half").succeeded();
    assert!(size("best.torchscript") * 10 < fused * 6, "half precision needs {}", size("best.torchscript"));
    user.run("export --weights best.pt --imgsz 64 --no-fuse --batch 2").succeeded();
    assert!(size("best.torchscript") > fused, "normalizations are missing");
    let shape = python(
        "import torch\nprint(tuple(torch.jit.load('best.torchscript')(torch.rand(2, 3, 64, 64)).shape))",
        user.path(),
    );
    assert!(shape.is_none_or(|shape| shape.trim() == "(2, 252, 7)"));
}

/// The ONNX checker and onnxruntime, where the Python of the tests has them. `trainer/tests/export_onnx.rs` always runs
/// such files.
#[test]
fn onnx_files_are_valid_and_compute_what_torchscript_computes() {
    let user = trained();
    let export = |options: &str| {
        user.run(&format!("export --weights best.pt --imgsz 64 {options} --format torchscript onnx"))
            .succeeded()
    };
    let script = "\
try:
    import onnx, onnxruntime
except ImportError:
    print('skipped: the Python of YOLO_TEST_PYTHON has no onnx and onnxruntime')
    raise SystemExit
import ast, torch
model = onnx.load('best.onnx')
onnx.checker.check_model(model, full_check=True)
metadata = {entry.key: entry.value for entry in model.metadata_props}
assert ast.literal_eval(metadata['names']) == {0: 'red', 1: 'blue'} and metadata['stride'] == '32', metadata
session = onnxruntime.InferenceSession('best.onnx', providers=['CPUExecutionProvider'])
image, = session.get_inputs()
half = image.type == 'tensor(float16)'
assert image.name == 'images' and [output.name for output in session.get_outputs()] == ['output0']
images = torch.rand(1, 3, 64, 64, dtype=torch.float16 if half else torch.float32)
outputs = torch.from_numpy(session.run(None, {'images': images.numpy()})[0])
expected = torch.jit.load('best.torchscript')(images)
assert outputs.shape == expected.shape and outputs.dtype == torch.float32
for part in (slice(0, 4), slice(4, None)):
    apart = (outputs - expected)[..., part].abs().max() / expected[..., part].abs().max()
    assert apart < (2e-2 if half else 1e-4), apart
";
    for options in ["", "--half", "--no-fuse", "--dynamic", "--opset 12"] {
        let output = export(options);
        assert!(output.stderr.contains("with the 60 convolutions of the network"), "{}", output.stderr);
        python(script, user.path()).iter().for_each(|said| print!("{said}"));
    }
    user.run("export --weights best.pt --format onnx --opset 5").failed_with(2, &["--opset 5", "12 to 17"]);
    user.run("export --weights best.pt --dynamic").failed_with(2, &["--dynamic is for ONNX"]);
}

/// In onnxruntime, where the Python of the tests has it. `trainer/tests/export_onnx.rs` always compares the boxes with
/// those of our own suppression.
#[test]
fn onnx_files_with_suppression_return_detections() {
    let user = trained();
    let script = "\
try:
    import numpy, onnx, onnxruntime
except ImportError:
    print('skipped: the Python of YOLO_TEST_PYTHON has no onnx and onnxruntime')
    raise SystemExit
onnx.checker.check_model(onnx.load('best.onnx'), full_check=True)
session = onnxruntime.InferenceSession('best.onnx', providers=['CPUExecutionProvider'])
image, = session.get_inputs()
images = numpy.random.rand(1, 3, 64, 64).astype(numpy.float16 if 'float16' in image.type else numpy.float32)
rows, numbers = session.run(None, {'images': images})
assert [output.name for output in session.get_outputs()] == ['detections', 'num_detections']
assert rows.shape == (1, 20, 6) and numbers.shape == (1,) and numbers.dtype == numpy.int64
number, rows = int(numbers[0]), rows[0]
assert 0 < number <= 20 and not rows[number:].any()
assert (numpy.diff(rows[:number, 4]) <= 0).all() and (rows[:number, 4] > 0.001).all()
assert set(rows[:number, 5]) <= {0.0, 1.0} and (rows[:number, 2:4] >= rows[:number, :2]).all()
";
    for options in ["", "--half", "--dynamic", "--opset 12", "--agnostic-nms", "--topk-per-class 5"] {
        let arguments = "--format onnx --imgsz 64 --nms --topk-all 20 --conf-thres 0.001";
        user.run(&format!("export --weights best.pt {arguments} {options}")).succeeded();
        python(script, user.path()).iter().for_each(|said| print!("{said}"));
    }
    user.run("export --weights best.pt --nms").failed_with(2, &["--nms is for ONNX", "--format onnx"]);
    std::fs::remove_file(user.path().join("best.onnx")).unwrap();
    user.run("export --weights best.pt --format onnx torchscript --nms")
        .failed_with(2, &["--nms cannot be applied to torchscript", "export torchscript on its own"]);
    for file in ["best.onnx", "best.torchscript"] {
        assert!(!user.path().join(file).exists(), "{file} was written before the refusal");
    }
}

/// The examples of the guide, in its order: TorchScript, then ONNX.
#[test]
fn the_examples_of_the_guide_run() {
    let user = trained();
    user.run("export --weights best.pt --format torchscript onnx").succeeded();
    let guide = std::fs::read_to_string("docs/export.md").unwrap();
    let examples: Vec<&str> =
        guide.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 2);
    let said = python(examples[0], user.path());
    assert!(said.is_none_or(|said| said.trim() == "torch.Size([1, 25200, 7])"));
    let has_runtime = "import importlib.util as u\nprint(u.find_spec('onnxruntime') is not None)";
    if python(has_runtime, user.path()).is_some_and(|answer| answer.trim() == "True") {
        assert_eq!(python(examples[1], user.path()).unwrap().trim(), "{0: 'red', 1: 'blue'}");
    } else {
        println!("skipped: YOLO_TEST_PYTHON does not name a Python with onnxruntime");
    }
}

#[test]
fn programs_get_the_files_with_their_sizes() {
    let user = trained();
    let output =
        user.run("export --weights best.pt --format torch,safetensors --imgsz 64 --json").succeeded();
    let events: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string("src/printer/run_events.schema.json").unwrap())
            .unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    assert!(events.iter().all(|event| schema.is_valid(event)), "{events:?}");
    assert_eq!((&events[0]["task"], &events[0]["run"]), (&"exporting".into(), &Value::Null));
    let files = events.last().unwrap()["files"].as_array().unwrap();
    let names: Vec<&str> = files.iter().map(|file| file["what"].as_str().unwrap()).collect();
    assert_eq!(names, ["torch", "safetensors"]);
    for file in files {
        let length = std::fs::metadata(file["path"].as_str().unwrap()).unwrap().len();
        assert_eq!(file["bytes"], length);
    }
}

#[test]
fn what_cannot_be_exported_is_one_message_and_no_file() {
    let user = trained();
    let write = |name: &str, bytes: &[u8]| std::fs::write(user.path().join(name), bytes).unwrap();
    let fails = |arguments: &str, parts: &[&str]| {
        let before = files(&user);
        user.run(&format!("export --imgsz 64 {arguments}")).failed_with(1, parts);
        assert_eq!(files(&user), before);
    };
    write("text.pt", b"no model at all");
    fails("--weights text.pt", &["text.pt is a text file, not weights"]);
    fails("--weights missing.pt", &["--weights missing.pt", "does not exist"]);
    user.run("export --weights best.pt --format torch --imgsz 64").succeeded();
    fails(
        "--weights best_state_dict.pt --format safetensors",
        &[
            "best_state_dict.pt: the file has only tensors",
            "export the checkpoint from which they were taken",
        ],
    );
    let bytes = std::fs::read(user.path().join("best.pt")).unwrap();
    write("half.pt", &bytes[..bytes.len() / 2]);
    fails("--weights half.pt", &["half.pt is truncated"]);
    user.run("export --weights best.pt --format engine")
        .failed_with(2, &["yolo does not write the format engine", "trtexec"]);
    user.run("export --weights best.pt --device cpu,cpu")
        .failed_with(2, &["--device cpu,cpu names 2 devices"]);
}

#[test]
fn a_full_disk_leaves_no_part_of_a_file() {
    let user = trained();
    let small = user.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let Some(_disk) = SmallDisk::mount(&small, "1m") else {
        println!("skipped: mounting a small tmpfs needs root and the right to mount");
        return;
    };
    std::os::unix::fs::symlink(user.path().join("best.pt"), small.join("best.pt")).unwrap();
    for format in FORMATS {
        let command = format!("export --weights small/best.pt --imgsz 64 --format {format}");
        let failed = user.run(&command).failed_with(1, &["the disk is full", "free at least"]);
        assert_eq!(failed.stderr.matches("small/best").count(), 1, "{}", failed.stderr);
        let left: Vec<_> =
            std::fs::read_dir(&small).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["best.pt"], "{format}");
    }
}

/// The network is large enough to be interrupted while it is written.
#[test]
fn ctrl_c_leaves_no_part_of_a_file() {
    let user = trained();
    let running = user.start("export --weights best.pt --imgsz 640 --batch 4 --json --format torchscript");
    wait_for("the rank", || (!running.ranks().is_empty()).then_some(()));
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}\n{}", output.stdout, output.stderr);
    assert_eq!(files(&user), ["best.pt"]);
}
