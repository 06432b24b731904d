//! Hyperparameters: YOLOv5's yaml files (spec §5) as one type, the built-in presets, and the reader
//! of a user's own file.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use yolo_base::format;

use crate::error::PlanError;
use crate::yaml::{self, show};

/// The hyperparameters of a run, named as in YOLOv5's yaml.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the key of the same name, spec §5")]
pub struct HyperParameters {
    pub lr0: f64,
    pub lrf: f64,
    pub momentum: f64,
    pub weight_decay: f64,
    pub warmup_epochs: f64,
    pub warmup_momentum: f64,
    pub warmup_bias_lr: f64,
    #[serde(rename = "box")]
    pub box_gain: f64,
    pub cls: f64,
    pub cls_pw: f64,
    pub obj: f64,
    pub obj_pw: f64,
    pub iou_t: f64,
    pub anchor_t: f64,
    pub fl_gamma: f64,
    pub hsv_h: f64,
    pub hsv_s: f64,
    pub hsv_v: f64,
    pub degrees: f64,
    pub translate: f64,
    pub scale: f64,
    pub shear: f64,
    pub perspective: f64,
    pub flipud: f64,
    pub fliplr: f64,
    pub mosaic: f64,
    pub mixup: f64,
    pub copy_paste: f64,
    /// Anchors per level, replacing the model's. `None` keeps the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchors: Option<f64>,
}

/// Keys that a file may omit, with their defaults.
const OPTIONAL: [(&str, f64); 1] = [("copy_paste", 0.0)];

/// The keys with their ranges. YOLOv5 checks no values; these are the ranges in which they make
/// sense.
const KEYS: [(&str, f64, f64); 28] = [
    ("lr0", 0.0, 10.0),
    ("lrf", 0.0, 100.0),
    ("momentum", 0.0, 0.9999),
    ("weight_decay", 0.0, 10.0),
    ("warmup_epochs", 0.0, 1e6),
    ("warmup_momentum", 0.0, 0.9999),
    ("warmup_bias_lr", 0.0, 10.0),
    ("box", 0.0, 1e4),
    ("cls", 0.0, 1e4),
    ("cls_pw", 0.0, 1e4),
    ("obj", 0.0, 1e4),
    ("obj_pw", 0.0, 1e4),
    ("iou_t", 0.0, 1.0),
    ("anchor_t", 1.0, 1e3),
    ("fl_gamma", 0.0, 100.0),
    ("hsv_h", 0.0, 1.0),
    ("hsv_s", 0.0, 1.0),
    ("hsv_v", 0.0, 1.0),
    ("degrees", 0.0, 180.0),
    ("translate", 0.0, 1.0),
    ("scale", 0.0, 0.99),
    ("shear", 0.0, 89.0),
    ("perspective", 0.0, 0.01),
    ("flipud", 0.0, 1.0),
    ("fliplr", 0.0, 1.0),
    ("mosaic", 0.0, 1.0),
    ("mixup", 0.0, 1.0),
    ("copy_paste", 0.0, 1.0),
];

/// The names of the presets for [`HyperParameters::load`].
pub const PRESETS: [&str; 7] = ["low", "med", "high", "no-augmentation", "objects365", "voc", "shapes"];

impl HyperParameters {
    /// Loads a YAML file or a preset, by its name (`low`) or that of YOLOv5's file
    /// (`hyp.scratch-low.yaml`).
    ///
    /// # Errors
    /// If it is neither, or the file lacks a key, has an unknown one, or has a value out of range.
    pub fn load(name_or_path: &str) -> Result<Self, PlanError> {
        let path = Path::new(name_or_path);
        if path.is_file() {
            let value = yaml::read(path, "hyperparameter file")?;
            return Self::from_value(&value, &format!("hyperparameter file {name_or_path}"));
        }
        Self::preset(name_or_path).ok_or_else(|| {
            PlanError::new(format!("hyperparameters {name_or_path} not found: neither a file nor a preset"))
                .with_hint(format!("pass a YAML file or a preset: {}", PRESETS.join(", ")))
        })
    }

    /// The preset of this name, if there is one. A path is one only if it is that of YOLOv5's file: another file that
    /// is missing must not become a preset.
    pub fn preset(name: &str) -> Option<Self> {
        let name = match name.replace('\\', "/").rsplit_once('/') {
            Some((folder, file)) => {
                Some(file.to_owned()).filter(|_| Path::new(folder).ends_with("data/hyps"))?
            }
            None => name.to_owned(),
        };
        let name = name.strip_prefix("hyp.").map_or(name.as_str(), |file| file.trim_end_matches(".yaml"));
        let name = name.strip_prefix("scratch-").unwrap_or(name);
        match name.to_ascii_lowercase().as_str() {
            "low" => Some(Self::low()),
            "med" => Some(Self { lrf: 0.1, cls: 0.3, obj: 0.7, scale: 0.9, mixup: 0.1, ..Self::low() }),
            "high" => Some(Self {
                lrf: 0.1,
                cls: 0.3,
                obj: 0.7,
                scale: 0.9,
                mixup: 0.1,
                copy_paste: 0.1,
                ..Self::low()
            }),
            "no-augmentation" => Some(Self::no_augmentation()),
            "objects365" => Some(Self::objects365()),
            "voc" => Some(Self::voc()),
            "shapes" => Some(Self::shapes()),
            _ => None,
        }
    }

    /// YOLOv5's default, for training from scratch with little augmentation (spec §5).
    pub fn low() -> Self {
        Self {
            lr0: 0.01,
            lrf: 0.01,
            momentum: 0.937,
            weight_decay: 5e-4,
            warmup_epochs: 3.0,
            warmup_momentum: 0.8,
            warmup_bias_lr: 0.1,
            box_gain: 0.05,
            cls: 0.5,
            cls_pw: 1.0,
            obj: 1.0,
            obj_pw: 1.0,
            iou_t: 0.2,
            anchor_t: 4.0,
            fl_gamma: 0.0,
            hsv_h: 0.015,
            hsv_s: 0.7,
            hsv_v: 0.4,
            degrees: 0.0,
            translate: 0.1,
            scale: 0.5,
            shear: 0.0,
            perspective: 0.0,
            flipud: 0.0,
            fliplr: 0.5,
            mosaic: 1.0,
            mixup: 0.0,
            copy_paste: 0.0,
            anchors: None,
        }
    }

    /// For the built-in data set `shapes`, whose images are few and small. The loss divides the
    /// objectness gain and the class gain by 16 at 160 px and 5 classes (spec §4), so they are
    /// higher here. The learning rate is for AdamW. Measured: mAP50 0.81 to 0.85 after 20 epochs.
    pub fn shapes() -> Self {
        Self {
            lr0: 0.003,
            lrf: 0.05,
            momentum: 0.9,
            warmup_epochs: 1.0,
            warmup_bias_lr: 0.003,
            cls: 3.0,
            obj: 6.0,
            hsv_s: 0.4,
            hsv_v: 0.3,
            scale: 0.3,
            mosaic: 0.5,
            ..Self::low()
        }
    }

    fn no_augmentation() -> Self {
        Self {
            lrf: 0.1,
            cls: 0.3,
            obj: 0.7,
            hsv_h: 0.0,
            hsv_s: 0.0,
            hsv_v: 0.0,
            translate: 0.0,
            scale: 0.0,
            fliplr: 0.0,
            mosaic: 0.0,
            ..Self::low()
        }
    }

    fn objects365() -> Self {
        Self {
            lr0: 0.00258,
            lrf: 0.17,
            momentum: 0.779,
            weight_decay: 0.00058,
            warmup_epochs: 1.33,
            warmup_momentum: 0.86,
            warmup_bias_lr: 0.0711,
            box_gain: 0.0539,
            cls: 0.299,
            cls_pw: 0.825,
            obj: 0.632,
            anchor_t: 3.44,
            anchors: Some(3.2),
            hsv_h: 0.0188,
            hsv_s: 0.704,
            hsv_v: 0.36,
            translate: 0.0902,
            scale: 0.491,
            ..Self::low()
        }
    }

    fn voc() -> Self {
        Self {
            lr0: 0.00334,
            lrf: 0.15135,
            momentum: 0.74832,
            weight_decay: 0.00025,
            warmup_epochs: 3.3835,
            warmup_momentum: 0.59462,
            warmup_bias_lr: 0.18657,
            box_gain: 0.02,
            cls: 0.21638,
            cls_pw: 0.5,
            obj: 0.51728,
            obj_pw: 0.67198,
            anchor_t: 3.3744,
            hsv_h: 0.01041,
            hsv_s: 0.54703,
            hsv_v: 0.27739,
            translate: 0.04591,
            scale: 0.75544,
            mosaic: 0.85834,
            mixup: 0.04266,
            anchors: Some(3.412),
            ..Self::low()
        }
    }

    /// Reads the keys of a yaml. `source` names the file in messages.
    fn from_value(value: &Value, source: &str) -> Result<Self, PlanError> {
        let Value::Object(fields) = value else {
            return Err(PlanError::new(format!(
                "{source} must be a mapping of `key: number` lines, not {}",
                show(value)
            )));
        };
        let mut checked = serde_json::Map::new();
        for (key, value) in fields {
            let range = KEYS.iter().find(|(known, ..)| known == key).map(|&(_, low, high)| (low, high));
            let (low, high) = match (key.as_str(), range) {
                ("anchors", _) => (0.0, 64.0),
                (_, Some(range)) => range,
                // YOLOv5 writes this key into the hyp.yaml of a run.
                ("label_smoothing", None) => continue,
                _ => {
                    return Err(PlanError::new(format!("{source}: unknown hyperparameter {key}")).with_hint(
                        format!("valid keys: {}, anchors", KEYS.map(|(key, ..)| key).join(", ")),
                    ));
                }
            };
            if key == "anchors" && value.is_null() {
                continue;
            }
            let number = match value {
                Value::Number(number) => number.as_f64(),
                // Python's YAML reads 1e-3 as a string, so such strings are numbers here too.
                Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
                _ => None,
            };
            let number = number.ok_or_else(|| {
                PlanError::new(format!("{source}: {key} is {}; it must be a number", show(value)))
            })?;
            if !(low..=high).contains(&number) {
                return Err(PlanError::new(format!(
                    "{source}: {key} is {number}; it must be from {low} to {high}"
                )));
            }
            checked.insert(key.clone(), Value::from(number));
        }
        for (key, default) in OPTIONAL {
            checked.entry(key).or_insert_with(|| Value::from(default));
        }
        let missing: Vec<&str> =
            KEYS.map(|(key, ..)| key).into_iter().filter(|key| !checked.contains_key(*key)).collect();
        if !missing.is_empty() {
            let (noun, verb) = if missing.len() == 1 { ("key", "is") } else { ("keys", "are") };
            let keys = format::list(&missing);
            return Err(PlanError::new(format!("{source}: the {noun} {keys} {verb} missing")).with_hint(
                "start from a copy of a complete file, for example the hyp.yaml of an earlier run",
            ));
        }
        let mut hyp: Self = serde_json::from_value(Value::Object(checked))
            .map_err(|error| PlanError::new(format!("{source}: {error}")))?;
        // Below one anchor, YOLOv5 keeps the model's.
        hyp.anchors = hyp.anchors.filter(|anchors| anchors.round_ties_even() >= 1.0);
        Ok(hyp)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yolo_base::Hint as _;

    use super::*;

    fn file_with(change: impl Fn(&mut serde_json::Map<String, Value>)) -> Result<HyperParameters, PlanError> {
        let mut value = serde_json::to_value(HyperParameters::low()).unwrap();
        change(value.as_object_mut().unwrap());
        HyperParameters::from_value(&value, "hyperparameter file my.yaml")
    }

    #[test]
    fn presets_go_by_short_names_and_by_those_of_yolov5() {
        for name in PRESETS {
            assert!(HyperParameters::preset(name).is_some(), "{name}");
        }
        for name in [
            "hyp.scratch-low.yaml",
            "data/hyps/hyp.scratch-low.yaml",
            "hyp.scratch-low",
            "scratch-low",
            "low",
        ] {
            assert_eq!(HyperParameters::preset(name), Some(HyperParameters::low()), "{name}");
        }
        for missing in ["low.yaml", "mine/low", "mine/hyp.scratch-low.yaml", "hyps/hyp.scratch-low.yaml"] {
            assert_eq!(HyperParameters::preset(missing), None, "{missing}");
        }
        assert_eq!(HyperParameters::load("hyp.VOC.yaml").unwrap().lr0, 0.00334);
        assert_eq!(HyperParameters::load("hyp.Objects365.yaml").unwrap().anchors, Some(3.2));
        assert_eq!(HyperParameters::load("hyp.no-augmentation.yaml").unwrap().mosaic, 0.0);
        let error = HyperParameters::load("hyp.scratch-lwo.yaml").unwrap_err();
        assert!(error.hint().unwrap().contains("no-augmentation"));
    }

    #[test]
    fn presets_are_valid_files() {
        for name in PRESETS {
            let preset = HyperParameters::preset(name).unwrap();
            let value = serde_json::to_value(&preset).unwrap();
            assert_eq!(HyperParameters::from_value(&value, "x").unwrap(), preset, "{name}");
        }
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        let message = |result: Result<HyperParameters, PlanError>| result.unwrap_err().to_string();
        let unknown = file_with(|yaml| drop(yaml.insert("lr1".into(), json!(1))));
        assert_eq!(message(unknown), "hyperparameter file my.yaml: unknown hyperparameter lr1");
        let missing = file_with(|yaml| drop(yaml.shift_remove("box")));
        assert_eq!(message(missing), "hyperparameter file my.yaml: the key box is missing");
        let missing = file_with(|yaml| yaml.retain(|key, _| !matches!(key.as_str(), "lr0" | "lrf")));
        assert_eq!(message(missing), "hyperparameter file my.yaml: the keys lr0 and lrf are missing");
        let text = file_with(|yaml| drop(yaml.insert("lr0".into(), json!("fast"))));
        assert_eq!(message(text), "hyperparameter file my.yaml: lr0 is \"fast\"; it must be a number");
        let large = file_with(|yaml| drop(yaml.insert("mosaic".into(), json!(2))));
        assert_eq!(message(large), "hyperparameter file my.yaml: mosaic is 2; it must be from 0 to 1");
    }
}
