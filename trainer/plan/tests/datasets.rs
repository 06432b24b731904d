//! Data YAML files: what is accepted, which folders are searched, and the message for each mistake.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;
use yolo_base::Hint as _;
use yolo_plan::PlanError;
use yolo_plan::dataset::{DataSet, Places, is_builtin};

/// A working folder with `data.yaml`, and a folder for data sets.
struct Bench {
    root: TempDir,
    places: Places,
}

impl Bench {
    fn new(yaml: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let places = Places { working_dir: root.path().join("work"), data_sets: root.path().join("sets") };
        fs::create_dir_all(&places.working_dir).unwrap();
        fs::create_dir_all(&places.data_sets).unwrap();
        fs::create_dir_all(root.path().join("yamls")).unwrap();
        fs::write(root.path().join("yamls/data.yaml"), yaml).unwrap();
        Self { root, places }
    }

    fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.root.path().join(path)).unwrap();
        self
    }

    fn load(&self) -> Result<(DataSet, Vec<String>), PlanError> {
        DataSet::load_with_warnings("../yamls/data.yaml", &self.places)
    }

    /// The message and hint, without this run's temporary folder.
    fn error(&self) -> String {
        let error = self.load().unwrap_err();
        let text = format!("{error}\nhint: {}", error.hint().unwrap_or("none".into()));
        text.replace(self.root.path().to_str().unwrap(), "").replace('\\', "/")
    }
}

const YAML: &str = "path: set\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n";

#[test]
fn the_root_is_next_to_the_yaml_or_in_the_working_folder_or_among_the_data_sets() {
    for place in ["yamls", "work", "sets"] {
        let bench = Bench::new(YAML);
        bench.folder(&format!("{place}/set/images/train")).folder(&format!("{place}/set/images/val"));
        let (data, warnings) = bench.load().unwrap();
        assert_eq!(data.train, [bench.root.path().join(place).join("set/images/train")]);
        assert_eq!(data.val, [bench.root.path().join(place).join("set/images/val")]);
        assert_eq!(data.names, ["cat", "dog"]);
        assert_eq!(warnings, [""; 0]);
    }
}

#[test]
fn missing_images_are_reported_with_all_searched_folders() {
    assert_eq!(
        Bench::new(YAML).error(),
        "the data set /yamls/data.yaml: cannot find the images: searched for images/train and images/val \
         in /yamls/set, /work/set, /sets/set\n\
         hint: correct `path`, `train` and `val` in the YAML file, or move the images there"
    );
    let bench = Bench::new(YAML);
    bench.folder("work/set/images/train");
    assert!(bench.error().starts_with("the data set /yamls/data.yaml: /work/set/images/val does not exist"));
    let absolute = Bench::new("path: /nowhere/at/all\ntrain: a\nval: b\nnames: [x]\n").error();
    assert!(absolute.contains("path /nowhere/at/all does not exist"), "{absolute}");
}

#[test]
fn splits_may_be_lists_and_start_with_dots() {
    let bench =
        Bench::new("train: [../a, b/*.jpg]\nval: ../v.txt\ntest: gone\nnames: {1: dog, 0: cat}\nnc: 3\n");
    bench.folder("yamls/a").folder("yamls/b");
    fs::write(bench.root.path().join("yamls/v.txt"), "").unwrap();
    let (data, warnings) = bench.load().unwrap();
    assert_eq!(data.train, [bench.root.path().join("yamls/a"), bench.root.path().join("yamls/b/*.jpg")]);
    assert_eq!(data.names, ["cat", "dog"]);
    assert!(data.test.is_empty());
    assert!(warnings[0].ends_with("nc is 3 but names has 2 classes; using 2"), "{warnings:?}");
    let gone = Path::new("yamls").join("gone").display().to_string();
    assert!(warnings[1].ends_with(&format!("{gone} do not exist")), "{warnings:?}");
}

/// Only `true` and `false` are booleans, as which YOLOv5 would read `yes` and `no` as well.
#[test]
fn class_names_that_yaml_1_1_reads_as_booleans_stay_text() {
    let bench = Bench::new("train: a\nval: a\nnames: [y, n, Yes, no, on, Off]\n");
    bench.folder("yamls/a");
    assert_eq!(bench.load().unwrap().0.names, ["y", "n", "Yes", "no", "on", "Off"]);
}

#[test]
fn the_path_in_yolov5s_yamls_is_the_folder_of_data_sets() {
    let bench = Bench::new("path: ../datasets/coco128\ntrain: images\nval: images\nnames: [x]\n");
    bench.folder("sets/coco128/images");
    assert_eq!(bench.load().unwrap().0.train, [bench.root.path().join("sets/coco128/images")]);
}

#[test]
fn an_invalid_yaml_is_rejected_with_the_reason() {
    let cases = [
        ("train: a\nval: b\n", "names is missing"),
        ("train: a\nnames: [x]\n", "val is missing"),
        ("val: a\nnames: [x]\n", "train is missing"),
        ("train: 3\nval: b\nnames: [x]\n", "train is 3; it must be a path or a list of paths"),
        ("train: []\nval: b\nnames: [x]\n", "train is []; it must be a path"),
        ("train: a\nval: b\nnames: []\n", "names is empty"),
        ("train: a\nval: b\nnames: x\n", "names is \"x\"; it must be a list or a mapping"),
        ("train: a\nval: b\nnames: {zero: x}\n", "names has the key \"zero\", which is not a class number"),
        ("train: a\nval: b\nnames: {0: x, 2: y}\n", "names has class 2 but only 2 names"),
        ("train: a\nval: b\nnames: [[x]]\n", "the name of class 0 is [\"x\"]; it must be text"),
        ("- a\n- b\n", "must be a mapping with train, val and names, not [\"a\",\"b\"]"),
        ("path: [a]\ntrain: a\nval: b\nnames: [x]\n", "path is [\"a\"]; it must be a path"),
        ("train: [\n", "is not valid YAML: "),
        ("", "must be a mapping with train, val and names, not null"),
    ];
    for (yaml, expected) in cases {
        let message = Bench::new(yaml).error();
        assert!(message.starts_with("the data set /yamls/data.yaml"), "{message}");
        assert!(message.contains(expected), "{message}\ndoes not say\n{expected}");
    }
}

#[test]
fn a_windows_path_in_double_quotes_is_explained() {
    for path in [r"D:\set", r"D:\new\table", r"D:\Users\ada", r"\\nas\share", r"images\x"] {
        let bench = Bench::new(&format!("path: \"{path}\"\ntrain: a\nval: b\nnames: [x]\n"));
        let error = bench.load().unwrap_err();
        let hint = error.hint().unwrap_or_default().into_owned();
        assert!(hint.contains(r"such as `path: 'D:\set'`"), "{path}: {error}\n{hint}");
    }
}

#[test]
fn a_download_is_suggested_but_code_is_never_run() {
    let with = |download: &str| Bench::new(&format!("{YAML}{download}")).error();
    let address = with("download: https://example.org/set.zip\n");
    assert!(
        address.contains(
            "run `yolo setup --data /yamls/data.yaml` to download it from https://example.org/set.zip"
        ),
        "{address}"
    );
    let script = with("download: |\n  import os\n  download(['https://example.org/a.zip'], dir='x')\n");
    assert!(script.contains("a Python script, which is never run"), "{script}");
    assert!(script.contains("would have downloaded https://example.org/a.zip"), "{script}");
    let shell = with("download: bash get.sh --all\n");
    assert!(shell.contains("a shell command, which is never run"), "{shell}");
    assert!(shell.contains("would have run `bash get.sh --all`"), "{shell}");
}

#[test]
fn names_that_are_not_files_are_reported() {
    let bench = Bench::new(YAML);
    let error = |data: &str| DataSet::load(data, &bench.places).unwrap_err().to_string();
    for name in ["coco128.yaml", "coco128", "data/coco128.yaml"] {
        assert_eq!(error(name), "the data set coco128 is not on this machine");
    }
    assert!(error("mine.yaml").contains("the data set mine.yaml was not found: neither "));
    let absolute = bench.root.path().join("no.yaml").display().to_string();
    assert_eq!(error(&absolute), format!("the data set {absolute} was not found: {absolute} does not exist"));
    assert!(error("../yamls").contains("is a folder"));
    assert!(error("").contains("--data is empty"));
    assert!(error("shapes").contains("has not been generated"));
    assert!(is_builtin("shapes") && !is_builtin("shapes.yaml"));
}

#[test]
fn bytes_that_are_not_text_are_rejected() {
    let bench = Bench::new("");
    fs::write(bench.root.path().join("yamls/data.yaml"), [0xff, 0xd8, 0xff, 0xe0]).unwrap();
    assert!(bench.error().contains("is neither UTF-8 nor UTF-16 text"));
}

/// A real data set, on machines that have it.
#[test]
fn a_real_data_set_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/bccd/bccd.yaml");
    let yaml = std::path::absolute(path).unwrap();
    if !yaml.is_file() {
        println!("skipped: {} is not here", yaml.display());
        return;
    }
    let bench = Bench::new(YAML);
    let data = DataSet::load(yaml.to_str().unwrap(), &bench.places).unwrap();
    assert_eq!(data.names.len(), 3);
    assert!(data.train.iter().chain(&data.val).all(|path| path.exists()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        let _ = Bench::new(&text).load();
    }

    #[test]
    fn damaged_yaml_never_panics(at in 0..YAML.len(), insert in "[-0-9a-z\\[\\]{},:'/*&!| \\n.]{0,6}", cut in 0usize..8) {
        let mut text = YAML.to_owned();
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, &insert);
        let _ = Bench::new(&text).load();
    }
}
