//! The splits of a data YAML: what it lists, the folders where that may be, and what exists there.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use yolo_base::windows_paths::{self, Form};

use super::clean::clean;
use super::download::Download;
use super::lookup::Places;
use crate::error::PlanError;
use crate::yaml::{BACKSLASH, show};

/// The splits as the yaml lists them.
#[derive(Debug)]
pub(super) struct Splits {
    pub(super) train: Vec<String>,
    pub(super) val: Vec<String>,
    test: Vec<String>,
}

/// The splits, as paths that exist.
pub(super) struct Found {
    pub(super) train: Vec<PathBuf>,
    pub(super) val: Vec<PathBuf>,
    pub(super) test: Vec<PathBuf>,
    pub(super) missing_test: Vec<PathBuf>,
}

impl Splits {
    pub(super) fn read(fields: &Map<String, Value>, source: &str) -> Result<Self, PlanError> {
        let split = |key: &str, required: bool| {
            let bad = |value: &Value| {
                PlanError::new(format!(
                    "{source}: {key} is {}; it must be a path or a list of paths",
                    show(value)
                ))
            };
            match fields.get(key) {
                None | Some(Value::Null) if required => {
                    Err(PlanError::new(format!("{source}: {key} is missing"))
                        .with_hint(format!("add `{key}:` with the folder of its images")))
                }
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(Value::String(path)) if path.trim().is_empty() && !required => Ok(Vec::new()),
                Some(value @ Value::String(path)) => {
                    if path.trim().is_empty() {
                        Err(bad(value))
                    } else {
                        Ok(vec![path.clone()])
                    }
                }
                Some(value @ Value::Array(list)) if !list.is_empty() => list
                    .iter()
                    .map(|path| path.as_str().filter(|path| !path.trim().is_empty()).map(str::to_owned))
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| bad(value)),
                Some(other) => Err(bad(other)),
            }
        };
        Ok(Self { train: split("train", true)?, val: split("val", true)?, test: split("test", false)? })
    }

    /// The splits under `root`, if all of train and val exist there.
    pub(super) fn resolve(&self, root: &Path) -> Option<Found> {
        let all =
            |paths: &[String]| paths.iter().map(|path| existing(root, path)).collect::<Option<Vec<_>>>();
        let mut found = Found {
            train: all(&self.train)?,
            val: all(&self.val)?,
            test: Vec::new(),
            missing_test: Vec::new(),
        };
        for path in &self.test {
            match existing(root, path) {
                Some(there) => found.test.push(there),
                None => found.missing_test.push(clean(&root.join(path))),
            }
        }
        Some(found)
    }

    fn missing(&self, root: &Path) -> Vec<PathBuf> {
        self.train
            .iter()
            .chain(&self.val)
            .filter(|path| existing(root, path).is_none())
            .map(|path| clean(&root.join(path)))
            .collect()
    }
}

/// `path` under `root`. If `../x` does not exist, `x` is tried as well, as in YOLOv5, and then what the path means if it
/// was written in Windows.
pub(super) fn existing(root: &Path, path: &str) -> Option<PathBuf> {
    let there = |path: &str| {
        let full = root.join(path);
        // For a glob, the folder before the first wildcard must exist.
        let fixed: PathBuf = full
            .components()
            .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
            .collect();
        (full.exists() || (fixed != full && fixed.is_dir())).then(|| clean(&full))
    };
    let as_here = |path: &str| there(path).or_else(|| there(path.strip_prefix("../")?));
    as_here(path).or_else(|| as_here(&windows_paths::in_file(path)?))
}

/// The folders that are searched for the splits, in order.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) roots: Vec<PathBuf>,
    pub(super) absolute: bool,
}

impl Search {
    pub(super) fn new(
        fields: &Map<String, Value>,
        yaml: &Path,
        places: &Places,
        source: &str,
    ) -> Result<Self, PlanError> {
        let path = match fields.get("path") {
            None | Some(Value::Null) => "",
            Some(Value::String(path)) => path.trim(),
            Some(other) => {
                return Err(PlanError::new(format!("{source}: path is {}; it must be a path", show(other))));
            }
        };
        if path.contains(char::is_control) {
            let shown = show(&Value::from(path));
            return Err(PlanError::new(format!(
                "{source}: path is {shown}, which contains characters that no path has"
            ))
            .with_hint(match path.contains('\n') && Form::of(path).is_none() {
                true => "write the path on one line, without `|`, `>` or a backslash in double quotes",
                false => BACKSLASH,
            }));
        }
        let is_of_windows = !cfg!(windows) && Form::of(path).is_some_and(|form| form.is_absolute());
        let here = windows_paths::in_file(path);
        if is_of_windows && here.is_none() {
            if let Some(why) = windows_paths::why_not_here(path) {
                return Err(PlanError::new(format!("{source}: path is {path}, and {why}")));
            }
            return Err(PlanError::new(format!(
                "{source}: path is {path}, a Windows path that leads nowhere here"
            ))
            .with_hint(
                "write where the data set is on this machine, or `path: .` for the folder of the YAML file",
            ));
        }
        let path = here.as_deref().unwrap_or(path);
        // On Windows, a path from the root of a drive counts as absolute, although it names no drive.
        if Path::new(path).has_root() {
            return Ok(Self { roots: vec![clean(Path::new(path))], absolute: true });
        }
        let yaml_dir = yaml.parent().unwrap_or(&places.working_dir);
        let mut roots: Vec<PathBuf> = Vec::new();
        let mut add = |root: PathBuf| {
            let root = clean(&root);
            if !roots.contains(&root) {
                roots.push(root);
            }
        };
        for place in [yaml_dir, &places.working_dir, &places.data_sets] {
            add(place.join(path));
        }
        // YOLOv5's YAML files have ../datasets/NAME, which here is NAME in the folder of data sets. Without
        // `path`, the folder has the name of the yaml.
        if let Some(name) = Path::new(path).file_name().or(yaml.file_stem()) {
            add(places.data_sets.join(name));
        }
        Ok(Self { roots, absolute: false })
    }

    /// The error if no root has train and val.
    pub(super) fn not_found(
        &self,
        splits: &Splits,
        download: &Download,
        yaml: &Path,
        places: &Places,
    ) -> PlanError {
        let list = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        let mut named = splits.train.iter().chain(&splits.val);
        if let Some((path, why)) = named.find_map(|path| Some((path, windows_paths::why_not_here(path)?))) {
            return PlanError::new(format!("the data set {}: it names {path}, and {why}", yaml.display()));
        }
        // The root with the fewest missing entries is most likely the one that the user means.
        let best =
            self.roots.iter().filter(|root| root.is_dir()).min_by_key(|root| splits.missing(root).len());
        let what = match best {
            Some(root)
                if self.absolute || splits.missing(root).len() < splits.train.len() + splits.val.len() =>
            {
                let missing = splits.missing(root);
                let verb = if missing.len() == 1 { "does" } else { "do" };
                format!("{} {verb} not exist", list(&missing))
            }
            _ if self.absolute => format!("path {} does not exist", list(&self.roots)),
            _ => {
                // Train and val are often the same folder.
                let mut searched: Vec<&str> = Vec::new();
                for path in splits.train.iter().chain(&splits.val) {
                    if !searched.contains(&path.as_str()) {
                        searched.push(path);
                    }
                }
                format!(
                    "cannot find the images: searched for {} in {}",
                    yolo_base::format::list(&searched),
                    list(&self.roots)
                )
            }
        };
        let error = PlanError::new(format!("the data set {}: {what}", yaml.display()));
        match download {
            Download::Archives(addresses) => error.with_hint(format!(
                "run `yolo setup --data {1}` to download it from {0}, or unpack it into {2} yourself",
                addresses.join(", "),
                yaml.display(),
                places.data_sets.display()
            )),
            Download::Code { kind, would } => error.with_hint(format!(
                "download the data yourself into {}; `download` in the YAML file is a {kind}, which is never run (it \
                 {would})",
                places.data_sets.display()
            )),
            Download::Refused { why, hint } => error.with_hint(format!("{why}; {hint}")),
            Download::Nothing => error.with_hint("correct `path`, `train` and `val` in the YAML file, or move the images there"),
        }
    }
}
