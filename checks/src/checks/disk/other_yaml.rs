//! YAML files that are no data sets, but that runs and repositories of YOLO have beside them: the options of a run,
//! hyperparameters, and the description of a model. They are easily passed to --data.

use crate::facts::view::data_set::DataSet;
use crate::finding::Finding;

/// What a file is that lacks the images of a data set.
pub(super) fn finding(set: &DataSet) -> Option<Finding> {
    let has = |key: &str| set.keys.contains_key(key);
    let text = |key: &str| set.keys.get(key).and_then(serde_json::Value::as_str);
    // `val: true` among the options of a run says that it validates.
    let has_images = |key: &str| set.keys.get(key).is_some_and(|value| value.is_string() || value.is_array());
    if has_images("train") || has_images("val") || has("names") && !has("task") {
        return None;
    }
    let (what, remedy) = if has("epochs") && has("imgsz") {
        // args.yaml of Ultralytics, opt.yaml of YOLOv5.
        let of = if has("task") && has("mode") { "of Ultralytics" } else { "of YOLO" };
        let data = text("data").map_or_else(
            || "pass the YAML file of the data set, which has the keys `train`, `val` and `names`".to_owned(),
            |data| format!("pass the data set that it names: `--data {data}`"),
        );
        (format!("it has the options of a run {of}"), data)
    } else if has("lr0") && has("momentum") {
        (
            "it has hyperparameters".to_owned(),
            "pass it as `--hyp`, and as `--data` the YAML file of the data set".to_owned(),
        )
    } else if has("backbone") && has("head") {
        (
            "it describes a model".to_owned(),
            "pass it as `--cfg`, and as `--data` the YAML file of the data set".to_owned(),
        )
    } else {
        return None;
    };
    let title = format!("{} is not a data set: {what}", set.yaml);
    Some(
        Finding::new("disk.data-yaml", title)
            .because("the YAML file of a data set names the folders of its images (`train`, `val`) and its classes (`names`)")
            .remedy(remedy),
    )
}
