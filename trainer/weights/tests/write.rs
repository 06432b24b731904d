//! Writes checkpoints and reads them back, here and in PyTorch. After a kill or with a full disk at any
//! moment, the file is whole: the old one or the new one.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use torch_checkpoint::{DType, TensorData, Value, decode, encode, encode_safetensors, read, write_pt};

const EVERY: [(DType, &str); 10] = [
    (DType::F64, "float64"),
    (DType::F32, "float32"),
    (DType::F16, "float16"),
    (DType::BF16, "bfloat16"),
    (DType::I64, "int64"),
    (DType::I32, "int32"),
    (DType::I16, "int16"),
    (DType::I8, "int8"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
];

fn state(value: u8) -> Value {
    Value::dict(EVERY.map(|(dtype, name)| {
        let bytes = vec![value; 6 * dtype.size()];
        (name, Value::Tensor(TensorData { dtype, shape: vec![3, 2], bytes }))
    }))
}

fn checkpoint() -> Value {
    Value::dict([
        ("epoch", Value::Int(-1)),
        ("large", Value::Int(i64::MIN)),
        ("best_fitness", Value::Float(0.1)),
        ("date", Value::Str("2026 – ä".to_owned())),
        ("done", Value::Tuple(vec![Value::Bool(true), Value::Bool(false), Value::None])),
        ("names", Value::Dict(vec![(Value::Int(0), Value::Str("cat".to_owned()))])),
        (
            "yaml",
            Value::dict([(
                "anchors",
                Value::List(vec![Value::List(vec![Value::Int(10)]), Value::List(vec![])]),
            )]),
        ),
        ("raw", Value::Bytes(vec![0, 127, 255])),
        ("model", state(1)),
        ("ema", state(0)),
        (
            "optimizer",
            Value::dict([(
                "state",
                Value::Dict(vec![(
                    Value::Int(5),
                    Value::dict([
                        ("step", Value::Int(3)),
                        (
                            "empty",
                            Value::Tensor(TensorData { dtype: DType::F32, shape: vec![2, 0], bytes: vec![] }),
                        ),
                        ("scalar", Value::Tensor(TensorData::from_f32(vec![], &[1.5]))),
                    ]),
                )]),
            )]),
        ),
    ])
}

#[test]
fn a_checkpoint_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    torch_checkpoint::write_pt(&path, &checkpoint()).unwrap();
    let file = torch_checkpoint::read(&path).unwrap();
    assert_eq!(file.root, checkpoint());
    assert_eq!(file.tensors.len(), 10);
    assert_eq!(file.tensors["int64"].bytes, [0; 48], "ema comes before model");
    assert_eq!(file.names, Some(vec!["cat".to_owned()]));
    assert_eq!(file.yaml, Some(serde_json::json!({"anchors": [[10], []]})));

    let twice = folder.path().join("again.pt");
    torch_checkpoint::write_pt(&twice, &file.root).unwrap();
    assert_eq!(
        std::fs::read(path).unwrap(),
        std::fs::read(twice).unwrap(),
        "equal values must give equal files"
    );
}

#[test]
fn records_start_at_multiples_of_64_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    torch_checkpoint::write_pt(&path, &checkpoint()).unwrap();
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    for n in 0..archive.len() {
        let record = archive.by_index(n).unwrap();
        assert_eq!(record.data_start().unwrap() % 64, 0, "{}", record.name());
    }
    assert!(archive.index_for_name("archive/version").is_some());
    assert!(archive.index_for_name("archive/byteorder").is_some());
}

#[test]
fn safetensors_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("best.safetensors");
    let tensors: Vec<(&str, TensorData)> = EVERY
        .map(|(dtype, name)| {
            (name, TensorData { dtype, shape: vec![3, 2], bytes: vec![1; 6 * dtype.size()] })
        })
        .into();
    let metadata = [("names", r#"["cat", "dog"]"#), ("stride", "[8, 16]"), ("format", "pt")];
    let metadata = metadata.map(|(key, text)| (key.to_owned(), text.to_owned()));
    let borrowed = tensors.iter().map(|(name, tensor)| (*name, tensor));
    let bytes = encode_safetensors(borrowed, metadata.into(), &path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let file = read(&path).unwrap();
    assert_eq!(file.tensors.len(), tensors.len());
    assert!(tensors.iter().all(|(name, tensor)| file.tensors[*name] == *tensor));
    assert_eq!(file.names.unwrap(), ["cat", "dog"]);
    assert_eq!(file.stride.unwrap(), [8.0, 16.0]);
    let short = TensorData { dtype: DType::F32, shape: vec![2], bytes: vec![0; 4] };
    let error = encode_safetensors([("short", &short)], Default::default(), &path).unwrap_err();
    assert!(error.to_string().contains("best.safetensors"), "{error}");
}

/// Needs a Python that can import torch, in YOLO_TEST_PYTHON.
#[test]
fn pytorch_opens_a_checkpoint_with_weights_only() {
    let Some(python) = std::env::var_os("YOLO_TEST_PYTHON") else {
        eprintln!("skipped: YOLO_TEST_PYTHON does not name a Python with torch");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    torch_checkpoint::write_pt(&path, &checkpoint()).unwrap();
    let script = r#"
import collections, sys, torch
for mmap in (False, True):
    c = torch.load(sys.argv[1], weights_only=True, mmap=mmap)
    assert c['epoch'] == -1 and c['large'] == -2**63 and c['best_fitness'] == 0.1, c
    assert c['date'] == '2026 – ä' and c['done'] == (True, False, None) and c['names'] == {0: 'cat'}, c
    assert c['yaml'] == {'anchors': [[10], []]} and c['raw'] == b'\x00\x7f\xff', c
    assert type(c['model']) is collections.OrderedDict and len(c['model']) == 10
    for name, t in c['model'].items():
        assert t.dtype is getattr(torch, name) and t.shape == (3, 2) and t.is_contiguous(), (name, t)
        assert bytes(t.view(torch.uint8).flatten().tolist()) == b'\x01' * (6 * t.element_size()), (name, t)
    s = c['optimizer']['state'][5]
    assert s['step'] == 3 and s['empty'].shape == (2, 0) and s['empty'].stride() == torch.empty(2, 0).stride()
    assert s['scalar'].item() == 1.5 and s['scalar'].shape == ()
print('opened')
"#;
    let output = Command::new(python).arg("-c").arg(script).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.starts_with(b"opened"), "{said}");
}

#[test]
fn values_that_python_could_not_open_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    let object = Value::Object { class: "models.yolo.Model".to_owned(), fields: vec![] };
    let wrong_length = Value::Tensor(TensorData { dtype: DType::F32, shape: vec![2], bytes: vec![0; 4] });
    let unhashable = Value::Dict(vec![(Value::List(vec![]), Value::None)]);
    let deep = (0..1000).fold(Value::None, |inner, _| Value::List(vec![inner]));
    for (value, message) in [
        (object, "models.yolo.Model"),
        (wrong_length, "has 4 bytes of F32"),
        (unhashable, "cannot hash"),
        (deep, "200 deep"),
    ] {
        let error = torch_checkpoint::write_pt(&path, &value).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn a_missing_folder_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = torch_checkpoint::write_pt(&folder.path().join("none/last.pt"), &Value::None).unwrap_err();
    assert!(error.to_string().contains("none/last.pt cannot be created"), "{error}");
}

/// Needs root, which can mount a small file system in memory.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_old_checkpoint() {
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(folder.path()).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: only root can mount a small file system");
        return;
    }
    let disk = Mounted(folder.path().to_owned());
    let path = disk.0.join("last.pt");
    torch_checkpoint::write_pt(&path, &state(1)).unwrap();
    let large = Value::Tensor(TensorData { dtype: DType::U8, shape: vec![1 << 20], bytes: vec![0; 1 << 20] });
    let error = torch_checkpoint::write_pt(&path, &large).unwrap_err();
    assert!(error.to_string().contains("the disk is full, and 1.1 MB are needed"), "{error}");
    assert!(error.hint().unwrap().contains("free at least 1.1 MB"), "{:?}", error.hint());
    assert_eq!(torch_checkpoint::read(&path).unwrap().root, state(1));
    assert_eq!(std::fs::read_dir(&disk.0).unwrap().count(), 1, "the unfinished file must be gone");
}

const VICTIM: &str = "YOLO_TEST_WRITE_FOREVER";

/// Not a test: the process that the next test kills.
#[test]
fn writes_forever_when_asked_to() {
    let Some(path) = std::env::var_os(VICTIM) else { return };
    // Not forever after all, should the process that is to kill this one die before.
    let start = std::time::Instant::now();
    for turn in (0u8..=255).cycle().take_while(|_| start.elapsed() < Duration::from_secs(20)) {
        torch_checkpoint::write_pt(Path::new(&path), &large_state(turn % 2)).unwrap();
    }
}

fn large_state(value: u8) -> Value {
    let tensor =
        |n: usize| Value::Tensor(TensorData { dtype: DType::U8, shape: vec![n], bytes: vec![value; n] });
    Value::dict((0..20).map(|n| (format!("t{n}"), tensor(100_000 + n))))
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_file_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    torch_checkpoint::write_pt(&path, &large_state(0)).unwrap();
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    let mut unfinished = 0;
    for turn in 0..25u64 {
        let before = names();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_forever_when_asked_to"])
            .env(VICTIM, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Time counts from the first change of an unfinished file, since starting may take long. The old
        // file is not opened, because Windows does not replace open files.
        let start = std::time::Instant::now();
        while names() == before && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(turn * 37 % 61));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let root = torch_checkpoint::read(&path).unwrap().root;
        assert!(root == large_state(0) || root == large_state(1));
        unfinished += std::fs::read_dir(folder.path()).unwrap().count() - 1;
    }
    assert!(unfinished > 0, "no kill interrupted a write, so nothing was tested");
    torch_checkpoint::write_pt(&path, &large_state(1)).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the remains must be removed");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1e300..1e300f64).prop_map(Value::Float),
        ".{0,20}".prop_map(Value::Str),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
        (prop::sample::select(&EVERY[..]), 0..4usize, 0..4usize).prop_map(|((dtype, _), a, b)| {
            Value::Tensor(TensorData { dtype, shape: vec![a, b], bytes: vec![1; a * b * dtype.size()] })
        }),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Tuple),
            prop::collection::vec(("[a-z]{1,8}", inner), 0..6).prop_map(Value::dict),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_value_is_read_back(extra in any_value()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("last.pt");
        let root = Value::dict([("model", state(1)), ("extra", extra)]);
        torch_checkpoint::write_pt(&path, &root).unwrap();
        prop_assert_eq!(torch_checkpoint::read(&path).unwrap().root, root);
    }
}

#[test]
fn a_value_can_be_sent_as_the_bytes_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pt");
    let tensor = Value::Tensor(TensorData::from_f32(vec![2, 2], &[1.0, -2.5, 0.0, 4.0]));
    let root = Value::dict([("model", Value::dict([("w", tensor)])), ("epoch", Value::Int(3))]);
    write_pt(&path, &root).unwrap();
    let bytes = encode(&root, &path).unwrap();
    assert_eq!(bytes, std::fs::read(&path).unwrap());
    let sent = decode(&bytes, &path).unwrap();
    assert_eq!((sent.root, sent.tensors), (read(&path).unwrap().root, read(&path).unwrap().tensors));
    let error = decode(&bytes[..bytes.len() / 2], &path).unwrap_err().to_string();
    assert!(error.contains("last.pt"), "{error}");
}
