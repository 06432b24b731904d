//! Numbers recorded from the Python original, and helpers to compare with them. A few small files
//! are committed and compared in every clone; the large ones are compared if the folder named by
//! `YOLO_GOLDEN`, or `shared/golden` next to the checkout, exists.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod ranks;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tch::{Device, Kind, Tensor};
use yolo_base::env::YOLO_GOLDEN;
use yolo_plan::model::ModelSpec;
use yolo_trainer::loss::LossSettings;
use yolo_trainer::model::Model;

/// The large file of this name; if it is missing, prints that the test is skipped.
pub fn golden(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder =
        std::env::var_os(YOLO_GOLDEN).map_or_else(|| root.join("../../shared/golden"), PathBuf::from);
    let file = folder.join(name);
    if file.exists() {
        return Some(file);
    }
    println!("skipped: {} does not exist", file.display());
    None
}

/// The large file if it exists, else the small committed one.
pub fn golden_or_committed(name: &str) -> PathBuf {
    golden(name).unwrap_or_else(|| committed(name))
}

/// A small file that every clone has.
pub fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// yolov5n for 80 classes, with YOLOv5's initial weights from `initial`.
pub fn yolov5n(initial: &Path) -> Model {
    let model = Model::new(&ModelSpec::load("yolov5n", 80, None).unwrap(), Device::Cpu).unwrap();
    start_from(&model, initial);
    model
}

/// Copies YOLOv5's initial weights into a yolov5n.
pub fn start_from(model: &Model, initial: &Path) {
    let transfer = model.transfer(&torch_checkpoint::read(initial).unwrap(), false).unwrap();
    assert_eq!((transfer.matched, transfer.total), (349, 349));
}

/// The loss of a case of `b_loss.json`.
pub fn loss_settings(hyp: &serde_json::Value) -> LossSettings {
    let number = |key: &str| hyp[key].as_f64().unwrap();
    // Not a struct literal: the record lacks fields that are added to `LossSettings` later.
    let mut settings = LossSettings::NEUTRAL;
    settings.box_gain = number("box");
    settings.objectness_gain = number("obj");
    settings.class_gain = number("cls");
    settings.objectness_positive_weight = number("obj_pw");
    settings.class_positive_weight = number("cls_pw");
    settings.label_smoothing = number("label_smoothing");
    settings.focal_gamma = number("fl_gamma");
    settings.anchor_threshold = number("anchor_t");
    settings
}

/// Rows of image, class, x, y, w, h.
pub fn targets(tensor: &Tensor) -> Vec<[f32; 6]> {
    floats(tensor).as_chunks::<6>().0.to_vec()
}

/// All tests of a program share one random generator and run in parallel. A test that draws random
/// weights holds this lock while it does.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static DRAWING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    DRAWING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The tensors of a safetensors file.
pub fn tensors(path: &Path) -> HashMap<String, Tensor> {
    Tensor::read_safetensors(path).unwrap().into_iter().collect()
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The largest difference, relative to the largest value of `want`.
pub fn relative(got: &Tensor, want: &Tensor) -> f64 {
    assert_eq!(got.size(), want.size());
    if want.numel() == 0 {
        return 0.0;
    }
    let (got, want) = (got.to_kind(Kind::Double), want.to_kind(Kind::Double));
    let scale = want.abs().max().double_value(&[]).max(1e-12);
    (got - want).abs().max().double_value(&[]) / scale
}

pub fn floats(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.to_kind(Kind::Float).reshape([-1])).unwrap()
}
