//! The model against numbers of the Python original: fresh weights from the same seed, outputs in both
//! modes, running statistics. The folder is `YOLO_GOLDEN`, or `shared/golden` beside the checkout; without it these
//! comparisons are skipped.

use std::path::PathBuf;

use tch::{Device, Kind, Tensor, no_grad};
use yolo_plan::model::{Activation, ConvSpec, CspSpec, Layer, ModelSpec, Module};
use yolo_trainer::model::Model;

fn golden(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("YOLO_GOLDEN")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden"), PathBuf::from);
    let file = folder.join(name);
    if !file.exists() {
        println!("skipped: {} is not here", file.display());
        return None;
    }
    Some(file)
}

/// yolov5n with 80 classes, by hand: the test depends on no parser.
fn yolov5n() -> ModelSpec {
    let act = Activation::Silu;
    let conv = |c1, c2, k: usize, s, p| {
        let spec = ConvSpec { c1, c2, k: [k; 2], s: [s; 2], p: [p; 2], g: 1, d: 1, act };
        (vec![], Module::Conv(spec), c2)
    };
    let c3 =
        |c1, c2, n, shortcut| (vec![], Module::C3(CspSpec { c1, c2, n, shortcut, g: 1, e: 0.5, act }), c2);
    let upsample = |c| (vec![], Module::Upsample { scale: 2.0, mode: "nearest".to_owned() }, c);
    let concat = |index: i64, other, c| (vec![index - 1, other], Module::Concat { dim: 1 }, c);
    let rows = vec![
        conv(3, 16, 6, 2, 2),
        conv(16, 32, 3, 2, 1),
        c3(32, 32, 1, true),
        conv(32, 64, 3, 2, 1),
        c3(64, 64, 2, true),
        conv(64, 128, 3, 2, 1),
        c3(128, 128, 3, true),
        conv(128, 256, 3, 2, 1),
        c3(256, 256, 1, true),
        (vec![], Module::Sppf { c1: 256, c2: 256, k: 5, act }, 256),
        conv(256, 128, 1, 1, 0),
        upsample(128),
        concat(12, 6, 256),
        c3(256, 128, 1, false),
        conv(128, 64, 1, 1, 0),
        upsample(64),
        concat(16, 4, 128),
        c3(128, 64, 1, false),
        conv(64, 64, 3, 2, 1),
        concat(19, 14, 128),
        c3(128, 128, 1, false),
        conv(128, 128, 3, 2, 1),
        concat(22, 10, 256),
        c3(256, 256, 1, false),
        (vec![17, 20, 23], Module::Detect { nc: 80, na: 3, channels: vec![64, 128, 256] }, 85),
    ];
    let layers = rows.into_iter().enumerate().map(|(index, (from, module, out_channels))| {
        let from = if from.is_empty() { vec![index as i64 - 1] } else { from };
        Layer { index, from, module, copies: 1, out_channels }
    });
    ModelSpec {
        name: "yolov5n".to_owned(),
        nc: 80,
        channels: 3,
        anchors: vec![
            vec![[10.0, 13.0], [16.0, 30.0], [33.0, 23.0]],
            vec![[30.0, 61.0], [62.0, 45.0], [59.0, 119.0]],
            vec![[116.0, 90.0], [156.0, 198.0], [373.0, 326.0]],
        ],
        anchors_are_placeholders: false,
        layers: layers.collect(),
        yaml: serde_json::Value::Null,
    }
}

/// The largest difference, relative to the largest value expected.
fn difference(ours: &Tensor, theirs: &Tensor) -> f64 {
    assert_eq!(ours.size(), theirs.size());
    let (ours, theirs) = (ours.to_kind(Kind::Double), theirs.to_kind(Kind::Double));
    let scale = theirs.abs().max().double_value(&[]).max(1e-12);
    (ours - theirs).abs().max().double_value(&[]) / scale
}

fn initial() -> Option<(Model, Vec<(String, Tensor)>)> {
    let weights = Tensor::read_safetensors(golden("a_yolov5n_init.safetensors")?).unwrap();
    let model = Model::new(&yolov5n(), Device::Cpu).unwrap();
    let report = model.transfer_tensors(&weights, false).unwrap();
    assert_eq!((report.matched, report.total), (349, 349), "{report:?}");
    assert!(report.missing.is_empty() && report.extra.is_empty() && report.reshaped.is_empty());
    Some((model, weights))
}

#[test]
fn the_size_of_yolov5n_is_that_of_the_original() {
    let model = Model::new(&yolov5n(), Device::Cpu).unwrap();
    let summary = model.summary(640).unwrap();
    assert_eq!(summary.parameters, 1_872_157);
    assert_eq!(summary.gradients, 1_872_157);
    assert_eq!(summary.layers, 125);
    assert_eq!(model.strides(), [8.0, 16.0, 32.0]);
    assert_eq!(model.fuse().unwrap().summary(640).unwrap().layers, 68);
    assert!((summary.gflops - 4.5627).abs() < 1e-3, "{}", summary.gflops);
}

#[test]
fn names_stand_in_the_order_of_the_original() {
    let Some(file) = golden("a_state_dict_keys.json") else { return };
    let text = std::fs::read_to_string(file).unwrap();
    let keys: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let model = Model::new(&yolov5n(), Device::Cpu).unwrap();
    let ours: Vec<&str> = model.state().iter().map(|entry| entry.name.as_str()).collect();
    let theirs: Vec<&str> = keys.keys().map(String::as_str).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn the_same_seed_draws_the_same_weights() {
    let Some(file) = golden("a_yolov5n_init.safetensors") else { return };
    tch::manual_seed(0);
    let model = Model::new(&yolov5n(), Device::Cpu).unwrap();
    for (name, theirs) in Tensor::read_safetensors(file).unwrap() {
        let ours = model.state().get(&name).unwrap();
        assert!(difference(&ours.detach(), &theirs) < 1e-6, "{name}");
    }
}

#[test]
fn outputs_and_statistics_agree() {
    let Some((model, weights)) = initial() else { return };
    let io = Tensor::read_safetensors(golden("a_yolov5n_io.safetensors").unwrap()).unwrap();
    let get = |name: &str| &io.iter().find(|(key, _)| key == name).unwrap().1;
    let check = |name: &str, ours: &Tensor, tolerance: f64| {
        let off = difference(&ours.detach(), get(name));
        println!("{name}: {off:.1e}");
        assert!(off < tolerance, "{name} is off by {off:e} of its largest value");
    };
    for size in [64, 320] {
        model.transfer_tensors(&weights, false).unwrap();
        let x = get(&format!("x{size}"));
        let (decoded, _) = no_grad(|| model.forward_eval(x)).unwrap();
        check(&format!("eval{size}.z"), &decoded, 2e-6);
        for (level, raw) in model.forward_train(x).unwrap().iter().enumerate() {
            check(&format!("train{size}.p{level}"), raw, 5e-6);
        }
        if size != 64 {
            continue;
        }
        for entry in model.state().buffers().filter(|entry| !entry.name.ends_with("anchors")) {
            // Statistics of eight values a channel, with means near zero.
            let name = format!("bn_after_train64.{}", entry.name);
            check(&name, &entry.tensor, 5e-5);
        }
        let (after, _) = no_grad(|| model.forward_eval(x)).unwrap();
        check("eval64_after_train64.z", &after, 2e-6);
    }
}
