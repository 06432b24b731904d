//! Compares the built-in models and the yaml grammar with what YOLOv5 prints for them: layers,
//! parameters in total and per row, GFLOPs, strides, anchors and kept outputs.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use proptest::prelude::*;
use serde_json::{Value, json};
use yolo_base::Hint as _;
use yolo_plan::model::{Activation, ModelSpec, Module, builtin};

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/models.json")).unwrap()
}

/// Compares a model with the original's numbers for the model of this name.
fn assert_as_original(spec: &ModelSpec, name: &str) {
    let all = golden();
    let golden = &all[name];
    let costs = spec.costs(640, 640).unwrap();
    let parameters: Vec<u64> = costs.iter().map(|cost| cost.parameters).collect();
    assert_eq!(json!(parameters), golden["layer_params"], "{name}: parameters of each row");
    let summary = spec.summary().unwrap();
    assert_eq!(json!(summary.parameters), golden["params"], "{name}: parameters");
    assert_eq!(json!(summary.layers), golden["layers"], "{name}: layers");
    assert!(
        (summary.gflops - golden["gflops"].as_f64().unwrap()).abs() < 1e-4,
        "{name}: {} GFLOPs",
        summary.gflops
    );
    assert_eq!(json!(spec.strides().unwrap()), golden["strides"], "{name}: strides");
    assert_eq!(json!(spec.anchors), golden["anchors"], "{name}: anchors");
    assert_eq!(json!(spec.save()), golden["save"], "{name}: kept outputs");
}

#[test]
fn the_built_in_models_match_yolov5() {
    assert_eq!(builtin::names().len(), 10);
    for name in builtin::names() {
        assert_as_original(&ModelSpec::load(&name, 80, None).unwrap(), &name);
    }
}

#[test]
fn a_built_in_model_may_be_named_like_a_file() {
    let plain = ModelSpec::load("yolov5s", 80, None).unwrap();
    for name in ["yolov5s.yaml", "models/yolov5s.yaml"] {
        assert_eq!(ModelSpec::load(name, 80, None).unwrap(), plain);
    }
    let error = ModelSpec::load("yolov5q", 80, None).unwrap_err();
    assert!(error.to_string().contains("model yolov5q not found"), "{error}");
    assert!(error.hint().unwrap().contains("yolov5n6"));
}

/// YOLOv5's small model with a change.
fn variant(change: impl Fn(&mut Value)) -> ModelSpec {
    let mut yaml = ModelSpec::load("yolov5s", 80, None).unwrap().yaml;
    change(&mut yaml);
    ModelSpec::from_yaml_value(&yaml, 80, None).unwrap()
}

fn rows(yaml: &mut Value) -> impl Iterator<Item = &mut Value> {
    let Value::Object(yaml) = yaml else { panic!("a model is a table") };
    yaml.iter_mut()
        .filter(|(key, _)| matches!(key.as_str(), "backbone" | "head"))
        .flat_map(|(_, rows)| rows.as_array_mut().unwrap())
}

#[test]
fn variants_of_the_small_model_match_yolov5() {
    let leaky = variant(|yaml| yaml["activation"] = json!("nn.LeakyReLU(0.1)"));
    assert_as_original(&leaky, "yolov5s-LeakyReLU");
    assert!(matches!(leaky.layers[0].module, Module::Conv(conv) if conv.act == Activation::LeakyRelu(0.1)));

    let ghost = variant(|yaml| {
        for row in rows(yaml).skip(1) {
            match row[2].as_str() {
                Some("Conv") => row[2] = json!("GhostConv"),
                Some("C3") => row[2] = json!("C3Ghost"),
                _ => {}
            }
        }
    });
    assert_as_original(&ghost, "yolov5s-ghost");

    let transformer = variant(|yaml| yaml["backbone"][8][2] = json!("C3TR"));
    assert_as_original(&transformer, "yolov5s-transformer");

    let bifpn = variant(|yaml| {
        yaml["depth_multiple"] = json!(1.0);
        yaml["width_multiple"] = json!(1.0);
        yaml["head"][9][0] = json!([-1, 14, 6]);
    });
    assert_as_original(&bifpn, "yolov5-bifpn");
}

/// A yaml in a common style: flow lists, comments, and a line break before a bracket.
const TINY: &str = "
nc: 80 # classes
depth_multiple: 1.0
width_multiple: 1.0
anchors:
  - [10,14, 23,27, 37,58]  # P4/16
  - [81,82, 135,169, 344,319]  # P5/32
backbone:
  # [from, number, module, args]
  [[-1, 1, Conv, [16, 3, 1]],
   [-1, 1, nn.MaxPool2d, [2, 2, 0]],
   [-1, 1, Conv, [32, 3, 1]],
   [-1, 1, nn.MaxPool2d, [2, 2, 0]],
   [-1, 1, Conv, [64, 3, 1]],
   [-1, 1, nn.MaxPool2d, [2, 2, 0]],
   [-1, 1, Conv, [128, 3, 1]],
   [-1, 1, nn.MaxPool2d, [2, 2, 0]],
   [-1, 1, Conv, [256, 3, 1]],
   [-1, 1, nn.MaxPool2d, [2, 2, 0]],
   [-1, 1, Conv, [512, 3, 1]],
   [-1, 1, nn.ZeroPad2d, [[0, 1, 0, 1]]],
   [-1, 1, nn.MaxPool2d, [2, 1, 0]],
  ]
head:
  [[-1, 1, Conv, [1024, 3, 1]],
   [-1, 1, Conv, [256, 1, 1]],
   [-1, 1, Conv, [512, 3, 1]],
   [-2, 1, Conv, [128, 1, 1]],
   [-1, 1, nn.Upsample, [None, 2, 'nearest']],
   [[-1, 8], 1, Concat, [1]],
   [-1, 1, Conv, [256, 3, 1]],
   [[19, 15], 1, Detect, [nc, anchors]],
]
";

fn load_text(text: &str) -> Result<ModelSpec, yolo_plan::PlanError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.yaml");
    std::fs::write(&path, text).unwrap();
    ModelSpec::load(path.to_str().unwrap(), 80, None)
}

#[test]
fn a_yaml_file_in_a_common_style_is_read() {
    let spec = load_text(TINY).unwrap();
    assert_eq!(spec.name, "mine");
    assert_as_original(&spec, "yolov3-tiny");
}

#[test]
fn classes_and_anchors_are_overridden() {
    let spec = ModelSpec::load("yolov5n", 3, Some(3.6)).unwrap();
    assert_eq!(spec.yaml["nc"], json!(3));
    assert_eq!(spec.yaml["anchors"], json!(4));
    assert!(spec.anchors_are_placeholders);
    assert_eq!(spec.anchors, vec![vec![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]; 3]);
    let Module::Detect { nc, na, channels } = &spec.layers[24].module else { panic!("Detect is the last") };
    assert_eq!((*nc, *na, channels.as_slice()), (3, 4, &[64, 128, 256][..]));
}

#[test]
fn a_checkpoints_yaml_builds_the_same_model() {
    for name in builtin::names() {
        let spec = ModelSpec::load(&name, 20, None).unwrap();
        let text = serde_json::to_string(&spec.yaml).unwrap();
        assert_eq!(
            ModelSpec::from_yaml_value(&serde_json::from_str(&text).unwrap(), 20, None).unwrap(),
            spec
        );
    }
}

#[test]
fn a_spec_survives_the_plan_file() {
    let spec = ModelSpec::load("yolov5n6", 7, None).unwrap();
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<ModelSpec>(&text).unwrap(), spec);
}

#[test]
fn errors_in_a_yaml_name_the_row() {
    let cases = [
        (("backbone:", "backbon:"), "backbone is missing"),
        (
            ("[16, 3, 1]", "[16, x, 1]"),
            "row 0 (Conv): the kernel is \"x\"; it must be a whole number from 1 to 1024",
        ),
        (("[16, 3, 1]", "[0, 3, 1]"), "row 0 (Conv): 0 is not a number of output channels"),
        (("Conv, [32", "Convv, [32"), "row 2 (Convv): there is no module Convv for detectors"),
        (("[[-1, 8]", "[[-1, 88]"), "row 18: source 88 is not an earlier layer"),
        (("[[-1, 8]", "[[-1, 4]"), "row 18 (Concat): the sources differ in size: 16×16, 64×64"),
        (
            ("[[19, 15]", "[[19, 15, 13]"),
            "there are anchors for 2 detection levels, but Detect has 3 sources",
        ),
        (("Detect, [nc", "Detect, [20"), "row 20 (Detect): it detects 20 classes, but the data set has 80"),
        (("depth_multiple: 1.0", "depth_multiple: deep"), "depth_multiple is \"deep\"; it must be a number"),
        (
            ("10,14, 23", "10,14,7, 23"),
            "the anchors of level 0 are [10,14,7,23,27,37,58]; they must be pairs",
        ),
    ];
    for ((from, to), expected) in cases {
        assert!(TINY.contains(from), "{from}");
        let message = load_text(&TINY.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\ndoes not contain\n{expected}");
        assert!(message.contains("mine.yaml"), "{message}");
    }
    assert!(load_text("a: [").unwrap_err().to_string().contains("is not valid YAML"));
    assert!(load_text("just words").unwrap_err().to_string().contains("a model must be a mapping"));
}

#[test]
fn a_data_yaml_is_not_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.yaml").display().to_string();
    for keys in ["names: [cat]", "train: a\nval: b\nnc: 1"] {
        std::fs::write(&path, keys).unwrap();
        let error = ModelSpec::load(&path, 1, None).unwrap_err();
        assert!(error.to_string().contains("it looks like a data YAML"), "{error}");
        assert!(error.hint().unwrap().starts_with(&format!("pass it with --data {path}")));
    }
    std::fs::write(&path, "nc: 1").unwrap();
    let error = ModelSpec::load(&path, 1, None).unwrap_err().to_string();
    assert!(error.contains("is missing"), "{error}");
}

#[test]
fn huge_numbers_are_rejected() {
    for (from, to) in [
        ("[16, 3, 1]", "[18446744073709551615, 3, 1]"),
        ("[16, 3, 1]", "[16, 99999999, 1]"),
        ("[-1, 1, Conv, [16", "[-1, 1000000000, Conv, [16"),
        ("width_multiple: 1.0", "width_multiple: 1e300"),
        ("[-2, 1", "[-9223372036854775808, 1"),
    ] {
        assert!(load_text(&TINY.replacen(from, to, 1)).is_err(), "{to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        let _ = load_text(&text);
    }

    #[test]
    fn damaged_yaml_never_panics(at in 0..TINY.len(), insert in "[-0-9a-zA-Z\\[\\]{},:'()*/+ \\n.]{0,6}", cut in 0usize..8) {
        let mut text = TINY.to_owned();
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, &insert);
        let _ = load_text(&text);
    }
}
