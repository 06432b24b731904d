//! The description of a data set: YOLOv5's data yaml (spec §7), read, checked and resolved to
//! paths that exist, or a built-in set by name. The images themselves are read by `yolo-data`.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::PlanError;
use crate::yaml::{self, show};

/// Data sets that the program can fetch by name; the caller does, and writes their yamls.
pub const FETCHABLE: [&str; 4] = ["coco", "coco128", "coco8", "VOC"];

/// Data sets that YOLOv5 knows by the name of a yaml of its own, and this program does not.
const YOLOV5_DATA_SETS: [&str; 7] =
    ["coco128-seg", "VisDrone", "GlobalWheat2020", "Argoverse", "Objects365", "SKU-110K", "xView"];

mod source;

pub use source::{Description, Download};

/// The data sets that the program makes itself.
const BUILT_IN: [&str; 1] = ["shapes"];

/// A data set whose yaml was read and whose folders were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    /// The yaml it came from.
    pub yaml: PathBuf,
    /// Folders, list files or globs of training images, absolute.
    pub train: Vec<PathBuf>,
    /// The same for validation.
    pub val: Vec<PathBuf>,
    /// The same for the test split, where there is one.
    pub test: Vec<PathBuf>,
    /// Class names; the index is the class.
    pub names: Vec<String>,
}

/// Where files named by options are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The folder in which the user typed the command, absolute.
    pub working_dir: PathBuf,
    /// The folder that holds one folder a data set.
    pub data_sets: PathBuf,
}

impl Places {
    /// Where the yaml of a built-in data set lies once the caller has made it.
    pub fn builtin_yaml(&self, name: &str) -> PathBuf {
        self.data_sets.join(name).join(format!("{name}.yaml"))
    }
}

/// Whether `data` names a data set that the program makes itself. The caller makes it, in the
/// folder of [`Places::builtin_yaml`], before it is loaded.
pub fn is_builtin(data: &str) -> bool {
    BUILT_IN.contains(&data)
}

/// The data set that can be fetched under this word of `--data`, in its own spelling: `voc`,
/// `VOC.yaml` and `data/VOC.yaml` all mean `VOC`.
pub fn fetchable(data: &str) -> Option<&'static str> {
    FETCHABLE.into_iter().find(|known| known.eq_ignore_ascii_case(&stem(data)))
}

/// Whether a word of `--data` names a file or folder that is there, in the places where it is looked for.
pub fn is_file(data: &str, places: &Places) -> bool {
    !data.trim().is_empty()
        && [&places.working_dir, &places.data_sets].iter().any(|at| at.join(data).exists())
}

/// `data/VOC.yaml` → `VOC`.
fn stem(data: &str) -> String {
    let name = Path::new(data).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.trim_end_matches(".yaml").trim_end_matches(".yml").to_owned()
}

impl DataSet {
    /// Reads a data yaml, or a built-in set that was made, and finds its images' folders.
    ///
    /// # Errors
    /// When the yaml is missing or is not one, lacks train, val or names, or points nowhere.
    pub fn load(data: &str, places: &Places) -> Result<Self, PlanError> {
        Self::load_with_warnings(data, places).map(|(data_set, _)| data_set)
    }

    /// As [`Self::load`], with what the user should read once.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_with_warnings(data: &str, places: &Places) -> Result<(Self, Vec<String>), PlanError> {
        let path = find_yaml(data, places)?;
        let value = yaml::read(&path, "data set")?;
        let source = format!("the data set {}", path.display());
        let Value::Object(given) = &value else {
            return Err(PlanError::new(format!(
                "{source}: this is {}, not a table with train, val and names",
                show(&value)
            )));
        };
        let names = names(given, &source)?;
        let mut warnings = Vec::new();
        if let Some(nc) = given.get("nc").filter(|nc| nc.as_u64() != Some(names.len() as u64)) {
            warnings.push(format!(
                "{source}: nc is {}, but there are {} names; the names count",
                show(nc),
                names.len()
            ));
        }
        let splits = Splits::read(given, &source)?;
        let search = Search::new(given, &path, places, &source)?;
        let Some(found) = search.roots.iter().find_map(|root| splits.resolve(root)) else {
            return Err(search.nowhere(&splits, given, (&path, &source), places));
        };
        for path in &found.lost_test {
            warnings.push(format!("{source}: its test images {} do not exist", path.display()));
        }
        Ok((Self { yaml: path, train: found.train, val: found.val, test: found.test, names }, warnings))
    }
}

fn find_yaml(data: &str, places: &Places) -> Result<PathBuf, PlanError> {
    if data.trim().is_empty() {
        return Err(PlanError::new("--data is empty").with_hint("name a data yaml, or use --data shapes"));
    }
    if is_builtin(data) {
        let path = places.builtin_yaml(data);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(PlanError::new(format!(
                "the built-in data set {data} has not been made: {} is missing",
                path.display()
            )))
        };
    }
    let here = places.working_dir.join(data);
    let candidates = [here.clone(), places.data_sets.join(data)];
    if let Some(found) = candidates.iter().find(|path| path.is_file()) {
        if found.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
            return Err(PlanError::new(format!("--data {data} is an archive"))
                .with_hint("unpack it and name the yaml in it"));
        }
        return Ok(clean(found));
    }
    let folder = candidates.iter().find(|path| path.is_dir());
    // The folder of a data set that was fetched has the name of the data set.
    if let Some(folder) = folder.filter(|_| fetchable(data).is_none()) {
        let mut yamls = yamls_in(folder);
        yamls.sort();
        let error =
            PlanError::new(format!("--data {data} is a folder, not the yaml that describes a data set"));
        return Err(match yamls.as_slice() {
            [] => error.with_hint("name a yaml with train, val and names"),
            some => error.with_hint(format!("in it lie {}", some.join(", "))),
        });
    }
    if let Some(known) = fetchable(data) {
        let yaml = places.builtin_yaml(known);
        if yaml.is_file() {
            return Ok(yaml);
        }
        return Err(PlanError::new(format!("the data set {known} is not on this machine"))
            .with_hint(format!("fetch it with `yolo setup --data {known}`, or train on --data shapes")));
    }
    let stem = stem(data);
    if YOLOV5_DATA_SETS.iter().any(|known| known.eq_ignore_ascii_case(&stem)) {
        return Err(PlanError::new(format!(
            "the data set {stem} is not on this machine, and yolo cannot fetch it by name"
        ))
        .with_hint("name its data yaml once you have its images, or fetch one that yolo knows: coco128, coco8, VOC, coco"));
    }
    let [here, among] = candidates.map(|path| clean(&path));
    // An absolute path is the same in both places.
    let why = if here == among {
        format!("{} does not exist", here.display())
    } else {
        format!("neither {} nor {} exists", here.display(), among.display())
    };
    Err(PlanError::new(format!("there is no data set {data}: {why}")).with_hint(
        "name a data yaml, use --data shapes, or fetch one that yolo knows: coco128, coco8, VOC, coco",
    ))
}

fn yamls_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"))
        .collect()
}

/// Class names from a list, or from a table whose keys are the classes.
fn names(given: &Map<String, Value>, source: &str) -> Result<Vec<String>, PlanError> {
    let fail = |reason: String| PlanError::new(format!("{source}: {reason}"));
    let hint = "write the class names as a list, or as 0: name, 1: name, …";
    let named = |value: &Value, class: usize| match value {
        Value::String(name) => Ok(name.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        other => Err(fail(format!("the name of class {class} is {}, not a word", show(other)))),
    };
    let names = match given.get("names") {
        None | Some(Value::Null) => return Err(fail("names is missing".to_owned()).with_hint(hint)),
        Some(Value::Array(list)) => list
            .iter()
            .enumerate()
            .map(|(class, value)| named(value, class))
            .collect::<Result<Vec<_>, _>>()?,
        Some(Value::Object(table)) => {
            let mut names = vec![None; table.len()];
            for (key, value) in table {
                let class = key.parse::<usize>().map_err(|_| {
                    fail(format!("names has the key {key:?}, which is not the number of a class"))
                        .with_hint(hint)
                })?;
                let slot = names.get_mut(class).ok_or_else(|| {
                    fail(format!(
                        "names has a class {class}, but only {} names: classes count from 0 without gaps",
                        table.len()
                    ))
                })?;
                if slot.replace(named(value, class)?).is_some() {
                    return Err(fail(format!("names has class {class} twice")));
                }
            }
            // As many different classes below their number as there are names: none is missing.
            names.into_iter().flatten().collect()
        }
        Some(other) => {
            return Err(fail(format!("names is {}, not a list or a table", show(other))).with_hint(hint));
        }
    };
    if names.is_empty() {
        return Err(fail("names is empty".to_owned()).with_hint(hint));
    }
    Ok(names)
}

/// The splits as the yaml writes them.
#[derive(Debug)]
struct Splits {
    train: Vec<String>,
    val: Vec<String>,
    test: Vec<String>,
}

/// The splits where they exist.
struct Found {
    train: Vec<PathBuf>,
    val: Vec<PathBuf>,
    test: Vec<PathBuf>,
    lost_test: Vec<PathBuf>,
}

impl Splits {
    fn read(given: &Map<String, Value>, source: &str) -> Result<Self, PlanError> {
        let split = |key: &str, required: bool| {
            let bad = |value: &Value| {
                PlanError::new(format!("{source}: {key} is {}, not a path or a list of paths", show(value)))
            };
            match given.get(key) {
                None | Some(Value::Null) if required => {
                    Err(PlanError::new(format!("{source}: {key} is missing"))
                        .with_hint(format!("write {key}: with the folder of its images")))
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

    /// The splits under `root`, when train and val are all there.
    fn resolve(&self, root: &Path) -> Option<Found> {
        let all =
            |paths: &[String]| paths.iter().map(|path| existing(root, path)).collect::<Option<Vec<_>>>();
        let mut found =
            Found { train: all(&self.train)?, val: all(&self.val)?, test: Vec::new(), lost_test: Vec::new() };
        for path in &self.test {
            match existing(root, path) {
                Some(there) => found.test.push(there),
                None => found.lost_test.push(clean(&root.join(path))),
            }
        }
        Some(found)
    }

    fn lost(&self, root: &Path) -> Vec<PathBuf> {
        self.train
            .iter()
            .chain(&self.val)
            .filter(|path| existing(root, path).is_none())
            .map(|path| clean(&root.join(path)))
            .collect()
    }
}

/// `path` under `root`; where `../x` is missing, `x` is tried too, as YOLOv5 does.
fn existing(root: &Path, path: &str) -> Option<PathBuf> {
    let there = |path: &str| {
        let full = root.join(path);
        // Of a glob, the folder before the first wildcard must exist.
        let fixed: PathBuf = full
            .components()
            .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
            .collect();
        (full.exists() || (fixed != full && fixed.is_dir())).then(|| clean(&full))
    };
    there(path).or_else(|| there(path.strip_prefix("../")?))
}

/// The folders in which the splits are looked for, in order.
#[derive(Debug)]
struct Search {
    roots: Vec<PathBuf>,
    absolute: bool,
}

impl Search {
    fn new(
        given: &Map<String, Value>,
        yaml: &Path,
        places: &Places,
        source: &str,
    ) -> Result<Self, PlanError> {
        let path = match given.get("path") {
            None | Some(Value::Null) => "",
            Some(Value::String(path)) => path.trim(),
            Some(other) => {
                return Err(PlanError::new(format!("{source}: path is {}, not a path", show(other))));
            }
        };
        // On Windows a path from the root of a drive is absolute enough, though it does not name the drive.
        if Path::new(path).has_root() {
            return Ok(Self { roots: vec![clean(Path::new(path))], absolute: true });
        }
        let beside = yaml.parent().unwrap_or(&places.working_dir);
        let mut roots: Vec<PathBuf> = Vec::new();
        let mut add = |root: PathBuf| {
            let root = clean(&root);
            if !roots.contains(&root) {
                roots.push(root);
            }
        };
        for place in [beside, &places.working_dir, &places.data_sets] {
            add(place.join(path));
        }
        // YOLOv5's own yamls say ../datasets/NAME, which means NAME in the data sets' folder.
        // Without a folder of its own a set has the name of its yaml.
        if let Some(name) = Path::new(path).file_name().or(yaml.file_stem()) {
            add(places.data_sets.join(name));
        }
        Ok(Self { roots, absolute: false })
    }

    /// The message when no root holds train and val.
    fn nowhere(
        &self,
        splits: &Splits,
        given: &Map<String, Value>,
        (yaml, source): (&Path, &str),
        places: &Places,
    ) -> PlanError {
        let list = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        // The root that holds most tells the user best what is wrong.
        let best = self.roots.iter().filter(|root| root.is_dir()).min_by_key(|root| splits.lost(root).len());
        let what = match best {
            Some(root)
                if self.absolute || splits.lost(root).len() < splits.train.len() + splits.val.len() =>
            {
                format!("{} does not exist", list(&splits.lost(root)))
            }
            _ if self.absolute => format!("its path {} does not exist", list(&self.roots)),
            _ => format!(
                "its images are nowhere; looked for {} and {} in {}",
                splits.train.join(", "),
                splits.val.join(", "),
                list(&self.roots)
            ),
        };
        let error = PlanError::new(format!("{source}: {what}"));
        match source::download(given.get("download"), yaml.parent().unwrap_or(Path::new(""))) {
            Download::Archives(addresses) => error.with_hint(format!(
                "it can be downloaded from {}: run `yolo setup --data {}`, or unpack it into {}",
                addresses.join(", "),
                yaml.display(),
                places.data_sets.display()
            )),
            Download::Code { kind, would } => error.with_hint(format!(
                "its download is a {kind}, which is not run, since data sets are never code; it {would}: fetch \
                 the data yourself into {}",
                places.data_sets.display()
            )),
            Download::Refused { why, hint } => error.with_hint(format!("{why}; {hint}")),
            Download::Nothing => error.with_hint("correct path, train and val in the yaml, or move the images there"),
        }
    }
}

/// The path without `.` and with `..` taken against the folder before it, for messages and plans.
fn clean(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // Above a link `..` means another folder, so links are left as they are written.
            Component::ParentDir
                if matches!(result.components().next_back(), Some(Component::Normal(_)))
                    && !result.is_symlink() =>
            {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}
