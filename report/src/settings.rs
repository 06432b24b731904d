//! The settings of a run, and how they differ from the defaults. Defaults of options are read from the help of the
//! options, where they are written for users; those of hyperparameters are the preset `low`.

use std::path::Path;

use clap::Args as _;
use serde_json::{Map, Value};
use yolo_plan::hyp::HyperParameters;
use yolo_plan::options::{TrainOptions, ValOptions};

/// A setting of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// As in `opt.yaml` and `hyp.yaml`.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// The default as text; `None` if there is none.
    pub default: Option<String>,
    /// Whether the value is known to differ from the default.
    pub changed: bool,
}

/// Settings that say where a run is and not what it does.
pub(crate) const PLACES: [&str; 6] = ["save_dir", "resume", "project", "name", "exist_ok", "entity"];

/// The settings of training, from `opt.yaml`.
pub(crate) fn of_training(options: &Map<String, Value>) -> Vec<Setting> {
    of_options(options, &TrainOptions::augment_args(clap::Command::new("train")))
}

/// The settings of a validation, under the names of its options.
pub(crate) fn of_validation(options: &Map<String, Value>) -> Vec<Setting> {
    of_options(options, &ValOptions::augment_args(clap::Command::new("val")))
}

/// Hyperparameters, from `hyp.yaml`.
pub(crate) fn of_hyp(hyp: &Map<String, Value>) -> Vec<Setting> {
    let low = serde_json::to_value(HyperParameters::low()).unwrap_or_default();
    let setting = |(name, value): (&String, &Value)| {
        let default = low.get(name).map(shown);
        let changed = default.as_ref().is_none_or(|default| !same(&shown(value), default));
        Setting { name: name.clone(), value: shown(value), default, changed }
    };
    hyp.iter().map(setting).collect()
}

fn of_options(options: &Map<String, Value>, command: &clap::Command) -> Vec<Setting> {
    let setting = |(name, value): (&String, &Value)| {
        let argument = command.get_arguments().find(|argument| argument.get_id() == name.as_str());
        let help = argument.and_then(|argument| argument.get_help()).map(ToString::to_string);
        let default = help.as_deref().and_then(stated_default);
        let shown = shown(value);
        let changed = match &default {
            // The rest of the help says it in words, as in "-1, disabled".
            Some(default) => {
                let first = default.split(", ").next().unwrap_or_default();
                // What `auto` and words stand for depends on the machine.
                !first.contains(' ') && first != "auto" && !same(&shown, first)
            }
            None => argument.is_some() && !is_nothing(value) && !PLACES.contains(&name.as_str()),
        };
        Setting { name: name.clone(), value: shown, default, changed }
    };
    options.iter().map(setting).collect()
}

/// The default that a help text states at its end.
fn stated_default(help: &str) -> Option<String> {
    let (_, default) = help.rsplit_once("[default: ")?;
    Some(default.trim_end().strip_suffix(']')?.to_owned())
}

/// Whether a value is that of an option which was not given.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty() || text == "ddp",
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// Whether two values are the same: numbers by value, files by their names without folder and ending.
fn same(value: &str, default: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    if let (Some(value), Some(default)) = (number(value), number(default)) {
        return value == default;
    }
    let stem = |text: &str| {
        let path = Path::new(text);
        path.file_stem().map_or_else(|| text.to_owned(), |stem| stem.to_string_lossy().into_owned())
    };
    value.eq_ignore_ascii_case(default) || !value.is_empty() && stem(value) == stem(default)
}

/// A value as a person writes it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(settings: &[Setting]) -> Vec<&str> {
        settings.iter().filter(|setting| setting.changed).map(|setting| setting.name.as_str()).collect()
    }

    #[test]
    fn only_what_differs_from_the_help_is_changed() {
        let options = json!({
            "weights": "/home/mara/yolov5s.pt", "data": "birds/birds.yaml", "epochs": 50, "batch_size": 16,
            "imgsz": 640, "rect": false, "cos_lr": true, "label_smoothing": 0.0, "optimizer": "SGD", "workers": 3,
            "freeze": [], "save_period": -1, "precision": "fp32", "save_dir": "runs/train/exp", "cache": null,
        });
        let settings = of_training(options.as_object().unwrap());
        assert_eq!(changed(&settings), ["data", "epochs", "cos_lr"]);
        let of = |name: &str| settings.iter().find(|setting| setting.name == name).unwrap();
        assert_eq!(of("epochs").default.as_deref(), Some("100"));
        assert!(of("workers").default.as_ref().unwrap().starts_with("the rank's share"));
    }

    #[test]
    fn hyperparameters_differ_by_value() {
        let hyp = json!({ "lr0": 0.010, "lrf": 0.1, "anchors": 4.0 });
        assert_eq!(changed(&of_hyp(hyp.as_object().unwrap())), ["lrf", "anchors"]);
    }
}
