//! The options of an evolution, which its folder keeps: the metrics of a table are comparable only if all generations have
//! the same, so one that is continued with others says so.

use std::path::Path;

use serde_json::{Map, Value};
use yolo_base::format::list;
use yolo_plan::options::option_name;

/// The file, with the settings of `opt.yaml`.
pub(crate) const OPTIONS: &str = "options.json";
/// What says where and how fast a generation is trained, and what each generation has of its own.
const MAY_CHANGE: [&str; 12] = [
    "device",
    "nproc_per_node",
    "parallel",
    "backend",
    "nccl",
    "workers",
    "max_restarts",
    "save_dir",
    "resume",
    "evolve",
    "hyp",
    "tensorboard",
];

/// The warning about options that differ from those in the folder of the evolution, if there are any. An evolution of
/// YOLOv5, or of an older `yolo`, has no such file.
pub(crate) fn changed(folder: &Path, options: &Map<String, Value>) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(OPTIONS)).ok()?;
    let before: Map<String, Value> = serde_json::from_str(&text).ok()?;
    let differs = |(name, value): (&String, &Value)| {
        let compared = !MAY_CHANGE.contains(&name.as_str());
        (compared && before.get(name).is_some_and(|before| before != value)).then(|| option_name(name))
    };
    let changed: Vec<String> = options.iter().filter_map(differs).collect();
    (!changed.is_empty()).then(|| {
        format!(
            "{} {} from when the evolution began: the metrics of its generations are comparable only with the same \
             options",
            list(&changed),
            if changed.len() == 1 { "differs" } else { "differ" }
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_metrics_depend_on_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let options = |value: Value| value.as_object().unwrap().clone();
        let before = options(json!({"imgsz": 64, "batch_size": 8, "workers": 1, "device": "cpu"}));
        assert_eq!(changed(folder.path(), &before), None, "nothing is known");
        std::fs::write(folder.path().join(OPTIONS), serde_json::to_string(&before).unwrap()).unwrap();
        assert_eq!(changed(folder.path(), &before), None);
        let elsewhere = options(json!({"imgsz": 64, "batch_size": 8, "workers": 4, "device": "0", "new": 1}));
        assert_eq!(changed(folder.path(), &elsewhere), None);
        let other = options(json!({"imgsz": 96, "batch_size": 4, "workers": 1, "device": "cpu"}));
        let warning = changed(folder.path(), &other).unwrap();
        assert!(warning.starts_with("--imgsz and --batch differ from when the evolution began"), "{warning}");
        let one = options(json!({"imgsz": 96}));
        assert!(changed(folder.path(), &one).unwrap().starts_with("--imgsz differs from"));
    }
}
