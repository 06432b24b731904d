//! Where numbers of the Python original lie, and how near ours must come to them. A few small
//! files are committed and compared in every clone; the large ones are compared where the folder
//! named by `YOLO_GOLDEN`, or `shared/golden` beside the checkout, is present.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tch::{Kind, Tensor};

/// The large file of this name, or `None` with a line that says that it is skipped.
pub fn golden(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder =
        std::env::var_os("YOLO_GOLDEN").map_or_else(|| root.join("../../shared/golden"), PathBuf::from);
    let file = folder.join(name);
    if file.exists() {
        return Some(file);
    }
    println!("skipped: {} is not here", file.display());
    None
}

/// The large file where it is present, else the small committed one.
pub fn golden_or_committed(name: &str) -> PathBuf {
    golden(name).unwrap_or_else(|| committed(name))
}

/// A small file that every clone has.
pub fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The tensors of a safetensors file.
pub fn tensors(path: &Path) -> HashMap<String, Tensor> {
    Tensor::read_safetensors(path).unwrap().into_iter().collect()
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The largest difference, relative to the largest magnitude of `want`.
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
