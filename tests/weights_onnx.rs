//! `yolo weights` with ONNX files: what is in one, and how two differ.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::Path;

use serde_json::Value;
use user::{TRAIN, User};

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
        "yolo: no, it is an ONNX export",
        "others for ONNX: yes, if they know opset 17",
        "In Python nothing is imported",
    ] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    for part in [
        "images: float32 (batch, 3, height, width)",
        "detections: float32 (batch, 100, 6)",
        "num_detections: int64 (batch)",
        "NMS       inside the file",
        "YOLOv5 (detect.py and val.py): no, it returns detections",
    ] {
        assert!(nms.contains(part), "{part}: {nms}");
    }
    let json: Value = serde_json::from_str(&user.run("weights --json best.onnx").succeeded().stdout).unwrap();
    assert_eq!((&json[0]["format"], &json[0]["suppresses"]), (&"onnx".into(), &false.into()));
    assert_eq!(json[0]["opsets"][""], 17);
    assert_eq!(
        (&json[0]["opens_in"][0]["program"], &json[0]["opens_in"][0]["opens"]),
        (&"yolo".into(), &false.into())
    );
    assert_eq!(json[0]["python"], serde_json::json!([]));
    assert_eq!(json[0]["inputs"][0]["shape"], serde_json::json!([1, 3, 64, 64]));

    let same = user.run("weights --diff best.onnx best.onnx").succeeded().stdout;
    assert!(same.ends_with(" tensors compared, all values equal\n"), "{same}");
    assert_eq!(same.lines().count(), 3, "{same}");
    let other = user.run("weights --diff best.onnx nms.onnx").succeeded().stdout;
    for line in [
        "input images: a float32 (1, 3, 64, 64), b float32 (batch, 3, height, width)",
        "output detections: a none, b float32 (batch, 100, 6)",
        "operation TopK: a none, b ",
        "suppresses: a false, b true",
    ] {
        assert!(other.contains(line), "{line}: {other}");
    }
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

/// A protobuf field with these bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 1 << 14);
    let length = [content.len() as u8 & 0x7f | 0x80, (content.len() >> 7) as u8];
    [&[number << 3 | 2], &length[..], content].concat()
}

/// An ONNX file: operations with an attribute, and a tensor with these values.
fn onnx(path: &Path, operations: &[(&str, &[u8])], tensor: &str, values: &[f32]) {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = [0x08, values.len() as u8, 0x10, 1];
    let tensor = [&shape[..], &field(8, tensor.as_bytes()), &field(9, &raw)].concat();
    let nodes = operations
        .iter()
        .flat_map(|(name, attribute)| field(1, &[field(4, name.as_bytes()), field(5, attribute)].concat()));
    let mut graph: Vec<u8> = nodes.collect();
    graph.extend([field(5, &tensor), field(12, &field(1, b"out"))].concat());
    std::fs::write(path, [&[0x08, 8][..], &field(2, b"tests"), &field(7, &graph)].concat()).unwrap();
}

#[test]
fn onnx_files_are_compared_tensor_by_tensor() {
    let user = User::new();
    let file = |name: &str| user.path().join(name);
    onnx(&file("a.onnx"), &[("Conv", b"x"), ("Mul", b"x")], "bias", &[1.0, 26.5]);
    onnx(&file("b.onnx"), &[("Conv", b"x"), ("Add", b"x")], "bias", &[1.0, 0.19]);
    onnx(&file("c.onnx"), &[("Conv", b"y"), ("Mul", b"x")], "other", &[1.0, 26.5]);
    onnx(&file("d.onnx"), &[("Conv", b"x"), ("Mul", b"x")], "bias", &[1.0]);
    let differ = |files: &str| user.run(&format!("weights --diff {files}")).succeeded().stdout;
    insta::assert_snapshot!(differ("a.onnx b.onnx").trim_end(), @"
    a: a.onnx
    b: b.onnx
    operation Mul: a 1, b none
    operation Add: a none, b 1
    1 tensor compared, 1 with different values:
      bias: at most 26.31, 99.21 % on average
    ");
    let attribute = differ("a.onnx c.onnx");
    for line in [
        "order, connections or attributes of the operations (SHA-256): a ",
        "only in a: bias",
        "only in b: other",
    ] {
        assert!(attribute.contains(line), "{line}: {attribute}");
    }
    insta::assert_snapshot!(differ("a.onnx d.onnx").trim_end(), @"
    a: a.onnx
    b: d.onnx
    parameters: a 2, b 1
    shape of bias: a [2], b [1]
    no tensors of the same name and shape
    ");
    // A name in a file does not reach the terminal as a command.
    onnx(&file("e.onnx"), &[("Con\x1b[2Jv", b"x")], "bi\x1bas", &[1.0, 2.0]);
    onnx(&file("f.onnx"), &[("Conv", b"x")], "bi\x1bas", &[1.0, 3.0]);
    let hostile = differ("e.onnx f.onnx");
    assert!(hostile.contains("operation Con [2Jv") && !hostile.contains('\x1b'), "{hostile:?}");
    let json = user.run("weights --json --diff a.onnx b.onnx").succeeded();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["facts"][0], serde_json::json!({"what": "operation Mul", "values": [1, null]}));
    assert_eq!(json["tensors"]["values"][0]["name"], "bias");
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
