//! Finds the yaml that `--data` names: a file, a built-in data set, or one that can be downloaded.

use std::path::{Path, PathBuf};

use yolo_base::format;

use super::clean::clean;
use crate::error::PlanError;

/// Data sets that `yolo` downloads by name. The caller does so and writes their YAML files.
pub const FETCHABLE: [&str; 4] = ["coco128", "coco8", "VOC", "coco"];

/// Data sets that YOLOv5 has a yaml for and `yolo` cannot download.
const YOLOV5_DATA_SETS: [&str; 7] =
    ["coco128-seg", "VisDrone", "GlobalWheat2020", "Argoverse", "Objects365", "SKU-110K", "xView"];

/// Data sets that `yolo` generates.
const BUILT_IN: [&str; 1] = ["shapes"];

/// The folders that are searched for files named by options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The working directory of the command, absolute.
    pub working_dir: PathBuf,
    /// The folder that has one folder per data set.
    pub data_sets: PathBuf,
}

impl Places {
    /// The yaml of a built-in or downloaded data set.
    pub fn builtin_yaml(&self, name: &str) -> PathBuf {
        self.data_sets.join(name).join(format!("{name}.yaml"))
    }
}

/// Whether `data` names a data set that `yolo` generates. The caller does so, at
/// [`Places::builtin_yaml`], before loading it.
pub fn is_builtin(data: &str) -> bool {
    BUILT_IN.contains(&data)
}

/// The downloadable data set that a `--data` argument names: `voc`, `VOC.yaml` and `data/VOC.yaml`
/// are all `VOC`.
pub fn fetchable(data: &str) -> Option<&'static str> {
    FETCHABLE.into_iter().find(|known| known.eq_ignore_ascii_case(&stem(data)))
}

/// Whether a `--data` argument names an existing file or folder.
pub fn is_file(data: &str, places: &Places) -> bool {
    !data.trim().is_empty()
        && [&places.working_dir, &places.data_sets].iter().any(|at| at.join(data).exists())
}

/// `data/VOC.yaml` → `VOC`.
fn stem(data: &str) -> String {
    let name = Path::new(data).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.trim_end_matches(".yaml").trim_end_matches(".yml").to_owned()
}

/// `--data` must name something.
///
/// # Errors
/// When it is empty.
pub fn check_argument(data: &str) -> Result<(), PlanError> {
    if data.trim().is_empty() {
        return Err(PlanError::usage("--data is empty").with_hint("pass a data YAML, or `--data shapes`"));
    }
    Ok(())
}

pub(super) fn find_yaml(data: &str, places: &Places) -> Result<PathBuf, PlanError> {
    check_argument(data)?;
    if is_builtin(data) {
        let path = places.builtin_yaml(data);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(PlanError::new(format!(
                "the built-in data set {data} has not been generated: {} does not exist",
                path.display()
            )))
        };
    }
    let here = places.working_dir.join(data);
    let candidates = [here.clone(), places.data_sets.join(data)];
    if let Some(found) = candidates.iter().find(|path| path.is_file()) {
        if found.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
            return Err(PlanError::new(format!("--data {data} is an archive, not a data YAML"))
                .with_hint("unpack it and pass the data YAML inside"));
        }
        return Ok(clean(found));
    }
    let folder = candidates.iter().find(|path| path.is_dir());
    // The folder of a downloaded data set has the same name as the data set.
    if let Some(folder) = folder.filter(|_| fetchable(data).is_none()) {
        let mut yamls = yamls_in(folder);
        yamls.sort();
        let error = PlanError::new(format!("--data {data} is a folder, not a data YAML"));
        return Err(match yamls.as_slice() {
            [] => error.with_hint("pass a data YAML with the keys train, val and names"),
            some => error.with_hint(format!("pass one of the YAML files in it: {}", some.join(", "))),
        });
    }
    if let Some(known) = fetchable(data) {
        let yaml = places.builtin_yaml(known);
        if yaml.is_file() {
            return Ok(yaml);
        }
        return Err(PlanError::new(format!("the data set {known} is not on this machine")).with_hint(
            format!("download it with `yolo setup --data {known}`, or train on `--data shapes`"),
        ));
    }
    let stem = stem(data);
    if YOLOV5_DATA_SETS.iter().any(|known| known.eq_ignore_ascii_case(&stem)) {
        return Err(PlanError::new(format!(
            "the data set {stem} is not on this machine, and yolo cannot download it by name"
        ))
        .with_hint(format!(
            "download its images and pass its data YAML, or use a data set that yolo can download: {}",
            format::choice(&FETCHABLE)
        )));
    }
    let [here, among] = candidates.map(|path| clean(&path));
    // An absolute path is the same in both folders.
    let why = if here == among {
        format!("{} does not exist", here.display())
    } else {
        format!("neither {} nor {} exists", here.display(), among.display())
    };
    let provided: Vec<&str> = BUILT_IN.into_iter().chain(FETCHABLE).collect();
    Err(PlanError::new(format!("the data set {data} was not found: {why}")).with_hint(format!(
        "pass the path of a data YAML, or a data set that yolo provides: {}",
        format::choice(&provided)
    )))
}

fn yamls_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"))
        .collect()
}
