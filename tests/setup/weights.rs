//! Weights by name, URL and path: verified before they are installed, and never replacing others.

use std::collections::HashMap;
use std::fs;

use torch_checkpoint::{DType, TensorData, Value, write_pt};

use crate::machine::Machine;

/// A checkpoint with one small tensor.
fn weights() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.pt");
    let tensor = TensorData { dtype: DType::F32, shape: vec![2, 3], bytes: vec![0; 24] };
    let state = Value::Dict(vec![(Value::Str("model.0.weight".into()), Value::Tensor(tensor))]);
    write_pt(&path, &Value::Dict(vec![(Value::Str("model".into()), state)])).unwrap();
    fs::read(path).unwrap()
}

/// Weights that differ from [`weights`] in the value of their first byte.
fn other_weights() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.pt");
    let mut bytes = vec![0; 24];
    bytes[0] = 1;
    let tensor = TensorData { dtype: DType::F32, shape: vec![2, 3], bytes };
    let state = Value::Dict(vec![(Value::Str("model.0.weight".into()), Value::Tensor(tensor))]);
    write_pt(&path, &Value::Dict(vec![(Value::Str("model".into()), state)])).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn other_weights_of_the_same_name_are_not_replaced() {
    let files = HashMap::from([
        ("/one/best.pt".to_owned(), weights()),
        ("/two/best.pt".to_owned(), other_weights()),
        ("/one/yolov5n.pt".to_owned(), weights()),
    ]);
    let machine = Machine::with(files);
    let (one, two) = (machine.server.url("/one/best.pt"), machine.server.url("/two/best.pt"));
    // Most weights are called best.pt: the second ones get a name of their own, and both stay.
    for _ in 0..2 {
        machine.run(&format!("setup --weights {one} {two}")).succeeded();
        let folder = machine.home().join("data/weights");
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let others: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("best-")).collect();
        assert_eq!(others.len(), 1, "{others:?}");
        assert_eq!(fs::read(folder.join("best.pt")).unwrap(), weights());
        assert_eq!(fs::read(folder.join(&others[0])).unwrap(), other_weights());
    }
    // The same bytes from elsewhere are the same weights.
    fs::write(machine.user.path().join("best.pt"), weights()).unwrap();
    machine.run("setup --weights best.pt").succeeded();
    // A published name means the published file.
    machine.run(&format!("setup --weights {}", machine.server.url("/one/yolov5n.pt"))).succeeded();
    machine.run("setup --weights yolov5n").failed_with(1, &["contains other weights", "yolo setup --remove"]);
    machine.run("setup --remove yolov5n").succeeded();
    // A file that the user put there is not replaced either.
    fs::write(machine.home().join("data/weights/mine.pt"), "precious").unwrap();
    fs::write(machine.user.path().join("mine.pt"), weights()).unwrap();
    machine.run("setup --weights mine.pt").failed_with(1, &["mine.pt", "was not installed by setup"]);
    assert_eq!(fs::read(machine.home().join("data/weights/mine.pt")).unwrap(), b"precious");
}

#[test]
fn invalid_weights_are_rejected_before_planning() {
    let machine = Machine::with(HashMap::new());
    fs::create_dir(machine.user.path().join("folder")).unwrap();
    let cases = [
        ("folder", "is a folder"),
        ("nowhere.pt", "no such file"),
        ("/", "must end with a file name"),
        ("ftp://host.example/best.pt", "only http and https"),
        ("https://host.example/", "must end with a file name"),
        #[cfg(unix)]
        ("/dev/zero", "not a regular file"),
    ];
    for (word, why) in cases {
        let output = machine.run(&format!("setup --dry-run --weights {word}"));
        output.failed_with(1, &[why]);
    }
}

#[test]
fn weights_from_a_url_or_path_are_opened_and_counted() {
    let machine = Machine::with(HashMap::from([("/best.pt".to_owned(), weights())]));
    let address = machine.server.url("/best.pt");
    // The same address twice is one file.
    let output = machine.run(&format!("setup --weights {address} {address}")).succeeded();
    assert!(output.stderr.contains("6 parameters"), "{}", output.stderr);
    let names = fs::read_dir(machine.home().join("data/weights")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let weights_files: Vec<String> = names.filter(|name| name.ends_with(".pt")).collect();
    assert_eq!(weights_files, ["best.pt"]);
    machine.run(&format!("setup --weights {address} --offline")).succeeded();
    fs::write(machine.user.path().join("mine.pt"), weights()).unwrap();
    let copied = machine.run("setup --weights mine.pt").succeeded();
    assert!(copied.stderr.contains("copy       weights mine.pt"), "{}", copied.stderr);
    assert!(!copied.stderr.contains("download"), "{}", copied.stderr);
    fs::write(machine.user.path().join("text.pt"), "text").unwrap();
    let refused = machine.run("setup --weights text.pt").failed_with(1, &["it is a text file, not weights"]);
    let error = refused.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert_eq!(error.matches("text.pt").count(), 1, "{}", refused.stderr);
    assert!(!refused.stderr.contains("download"), "{}", refused.stderr);
    let list = machine.run("setup --list").succeeded().stdout;
    assert!(list.contains("best.pt") && list.contains("mine.pt"), "{list}");
    machine.run("setup --remove best").succeeded();
    assert!(!machine.home().join("data/weights/best.pt").exists());
}

#[test]
fn a_file_that_is_not_the_named_model_is_never_installed() {
    let page = b"<!DOCTYPE html><html>Please log in</html>".to_vec();
    let files = HashMap::from([("/yolov5s.pt".to_owned(), weights()), ("/yolov5m.pt".to_owned(), page)]);
    let machine = Machine::with(files);
    let output = machine.run("setup --weights yolov5s.pt");
    output.failed_with(1, &["yolov5s.pt cannot be downloaded", "is not yolov5s: it has 6 parameters"]);
    machine.run("setup --weights yolov5m").failed_with(1, &["web page"]);
    machine.run("setup --weights nothing.pt").failed_with(1, &["nothing.pt", "no such file"]);
    assert!(!machine.home().join("data/weights/yolov5s.pt").exists());
}
