//! The description of a model: YOLOv5's yaml grammar (spec §1) resolved into layers with channels
//! and repeats, and the ten built-in configurations. Nothing here holds a weight. The trainer
//! builds tensors from a [`ModelSpec`]; parameter and FLOP counts are computed from it alone.

use std::path::Path;

use serde_json::Value;

use crate::error::PlanError;
use crate::yaml;

mod args;
pub mod builtin;
mod channels;
mod cost;
mod expression;
mod grammar;
mod modules;
mod parts;
mod scope;
mod spec;

pub use channels::{gcd, mixed_shares};
pub use cost::{LayerCost, MIN_STRIDE, Summary, largest_stride};
pub use grammar::JOINED_ACTIVATION;
pub use parts::{Load, ModelPart};
pub use spec::{Activation, ConvSpec, CspSpec, Layer, ModelSpec, Module};

impl ModelSpec {
    /// Loads a built-in model (`yolov5n`, `yolov5n.yaml`) or a YAML file, for `nc` classes.
    /// `anchors` is the number of anchors per level that a hyperparameter file asks for; it
    /// replaces the anchors of the yaml by placeholders.
    ///
    /// # Errors
    /// If `cfg` is neither, or the file is not a model. The message names the file and the row.
    pub fn load(cfg: &str, nc: usize, anchors: Option<f64>) -> Result<Self, PlanError> {
        let path = Path::new(cfg);
        if path.is_file() {
            let stem = path.file_stem().map_or_else(|| cfg.into(), |stem| stem.to_string_lossy());
            let value = yaml::read(path, "model")?;
            if is_data_set(&value) {
                return Err(PlanError::new(format!(
                    "the model {cfg} has no backbone: it looks like a data YAML, which describes a data set"
                ))
                .with_hint(format!(
                    "pass it with --data {cfg}, and the model with --cfg, such as --cfg yolov5n"
                )));
            }
            return grammar::build(&stem, &format!("the model {cfg}"), &value, nc, anchors);
        }
        // YOLOv5 keeps its YAML files in models/ and models/hub/, so a path counts as the name of its file.
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let name = name.trim_end_matches(".yaml").trim_end_matches(".yml");
        match builtin::yaml(name) {
            Some(value) => grammar::build(name, &format!("the model {name}"), &value, nc, anchors),
            None => {
                Err(PlanError::new(format!("model {cfg} not found: neither a file nor a built-in model"))
                    .with_hint(format!(
                        "pass a YAML file or a built-in model: {}",
                        builtin::names().join(", ")
                    )))
            }
        }
    }

    /// Builds the model described by the yaml of a checkpoint.
    ///
    /// # Errors
    /// If the value is not a model.
    pub fn from_yaml_value(value: &Value, nc: usize, anchors: Option<f64>) -> Result<Self, PlanError> {
        let name = builtin::names().into_iter().find(|name| is_like_builtin(value, name));
        let name = name.unwrap_or_else(|| "custom".to_owned());
        grammar::build(&name, "the model in the checkpoint", value, nc, anchors)
    }

    /// The layers whose outputs the forward pass keeps: every source that is not written as -1,
    /// sorted, and repeated if several layers use it (spec §1).
    pub fn save(&self) -> Vec<usize> {
        let rows =
            ["backbone", "head"].into_iter().filter_map(|key| self.yaml.get(key)?.as_array()).flatten();
        let mut save = Vec::new();
        for (layer, row) in self.layers.iter().zip(rows) {
            let raw = grammar::raw_sources(row).unwrap_or_default();
            let kept = raw.iter().zip(&layer.from).filter(|(raw, _)| **raw != -1);
            save.extend(kept.filter_map(|(_, &from)| usize::try_from(from).ok()));
        }
        save.sort_unstable();
        save
    }
}

/// Whether a yaml describes a data set and no model.
fn is_data_set(yaml: &Value) -> bool {
    yaml.get("backbone").is_none() && ["names", "train", "val"].iter().any(|key| yaml.get(key).is_some())
}

/// Whether a yaml has the multiples and the numbers of rows of a built-in model.
fn is_like_builtin(value: &Value, name: &str) -> bool {
    builtin::yaml(name).is_some_and(|known| {
        // Compared as floats: a checkpoint may contain 1 where the built-in model has 1.0.
        let multiples = ["depth_multiple", "width_multiple"];
        let rows = |yaml: &Value, key: &str| yaml.get(key).and_then(Value::as_array).map(Vec::len);
        multiples.iter().all(|key| value.get(key).and_then(Value::as_f64) == known[key].as_f64())
            && ["backbone", "head"].iter().all(|key| rows(value, key) == rows(&known, key))
    })
}
