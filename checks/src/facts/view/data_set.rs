//! The data set of a run, without decoding images: its YAML file, the folders of its images, and a
//! sample of label and image files.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::facts::answer::{Fact, KnownPaths, MOST_NAMES, PathKind, Unknown};
use crate::facts::host::Host;
use crate::facts::view::drive_fault::DriveFault;

/// The data set that the program generates. This name always means that data set.
const BUILT_IN: &str = "shapes";
/// Data sets without a YAML file of the user: `--data` downloads them by these names.
const FETCHED: [&str; 4] = ["coco", "coco128", "coco8", "voc"];
/// The number of images in a sample: enough to find a mistake of an export, which is in every file.
const SAMPLE: usize = 32;
/// The maximum number of folders listed below a folder that the YAML file names.
const MOST_FOLDERS: usize = 24;
/// Supported extensions.
const IMAGES: [&str; 8] = ["bmp", "jpeg", "jpg", "mpo", "png", "tif", "tiff", "webp"];

/// A data set's description.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DataSet {
    /// The path of its YAML file.
    pub(crate) yaml: String,
    /// The contents of the YAML file.
    pub(crate) keys: Map<String, Value>,
    /// The base folders for relative paths of train and val, in the order in which they are tried.
    pub(crate) roots: Vec<String>,
}

/// What `--data` refers to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Described {
    /// A data set that the program generates or downloads.
    Named,
    /// No file exists at any of these paths.
    Missing(Vec<String>),
    /// A file that this user may not read.
    Forbidden(String),
    /// A file that is not usable, and why.
    Garbled(String, String),
    /// A description.
    Yaml(DataSet),
}

/// The images of a split.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Images {
    /// Paths, at most [`MOST_NAMES`] per folder.
    pub(crate) paths: Vec<String>,
    /// Files with an unsupported extension.
    pub(crate) others: Vec<String>,
    /// Whether there may be more: a folder is unknown or was not listed.
    pub(crate) is_partial: bool,
}

impl Host {
    /// The data set that an argument of `--data` names.
    pub(crate) fn data_set(&self, name: &str) -> Fact<Described> {
        if name == BUILT_IN {
            return Ok(Described::Named);
        }
        let places = match self.places() {
            Ok(places) => places,
            // An absolute path needs no base folder.
            Err(_) if name.starts_with('/') || drive_path(name).is_some() => KnownPaths::default(),
            Err(why) => return Err(why),
        };
        let mut tried = Vec::new();
        for root in [places.working.clone(), places.data.clone().map(|data| join(&data, "datasets"))] {
            let path = root.map_or_else(|| name.to_owned(), |root| join(&root, name));
            if tried.contains(&path) {
                continue;
            }
            match self.text(&path) {
                Ok(Some(text)) => return Ok(self.described(path, &text, &places)),
                // The folder of a downloaded data set has the same name.
                Err(_) if is_fetched(name) && self.folder(&path).is_ok_and(|names| names.is_some()) => {}
                Err(why) if is_forbidden(&why) || self.may_not_read(&path) => {
                    return Ok(Described::Forbidden(path));
                }
                Err(_) if self.is_folder(&path) => {
                    return Ok(Described::Garbled(path, "it is a folder, not a YAML file".to_owned()));
                }
                // The drive fails, which says more than that the contents are unknown.
                Err(why)
                    if DriveFault::of(&why.0).is_some()
                        || self.stat(&path).is_err_and(|why| DriveFault::of(&why.0).is_some()) =>
                {
                    return Err(why);
                }
                // A recording may know that a file exists without its contents.
                Err(why)
                    if why.0.contains("does not include")
                        && self.is_recorded()
                        && self.stat(&path).is_ok_and(|stat| stat.is_some()) =>
                {
                    return Err(why);
                }
                // A path that cannot be read as text is not a YAML file: it is too large, or a folder.
                Err(why) if self.stat(&path).is_ok_and(|stat| stat.is_some()) => {
                    return Ok(Described::Garbled(path, why.0));
                }
                Ok(None) => tried.push(path),
                Err(_) if is_fetched(name) => return Ok(Described::Named),
                // It is known not to be where the run looks first.
                Err(_) if !tried.is_empty() => {}
                Err(why) => return Err(why),
            }
        }
        Ok(if is_fetched(name) { Described::Named } else { Described::Missing(tried) })
    }

    /// Whether a file exists that this user may not read.
    fn may_not_read(&self, path: &str) -> bool {
        let stat = self.stat(path).ok().flatten();
        stat.is_some_and(|stat| stat.kind == PathKind::File && stat.readable == Some(false))
    }

    fn is_folder(&self, path: &str) -> bool {
        self.stat(path).is_ok_and(|stat| stat.is_some_and(|stat| stat.kind == PathKind::Folder))
    }

    fn described(&self, yaml: String, text: &str, places: &KnownPaths) -> Described {
        let keys = match parse(text) {
            Ok(Value::Object(keys)) => keys,
            Ok(_) => {
                return Described::Garbled(
                    yaml,
                    "it is not a mapping with the keys train, val and names".to_owned(),
                );
            }
            Err(why) => return Described::Garbled(yaml, format!("it is not valid YAML: {why}")),
        };
        let path = keys.get("path").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let here = self.path_from_windows(path).filter(|here| self.exists(here) == Ok(true));
        let path = here.as_deref().unwrap_or(path);
        let folder = parent(&yaml).unwrap_or_default();
        let data = places.data.as_ref().map(|data| join(data, "datasets"));
        let starts = [Some(folder), places.working.clone(), data];
        let mut roots: Vec<String> = Vec::new();
        for root in starts.into_iter().flatten().map(|start| join(&start, path)) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Described::Yaml(DataSet { yaml, keys, roots })
    }

    /// The images below a folder or of a list file; `None` if the path is neither.
    pub(crate) fn images_of(&self, path: &str) -> Fact<Option<Images>> {
        let mut found = Images::default();
        if path.ends_with(".txt") {
            let Some(text) = self.text(path)? else { return Ok(None) };
            let root = parent(path).unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let here = |line: &str| self.path_from_windows(line).unwrap_or_else(|| line.to_owned());
            found.paths = lines.map(|line| join(&root, &here(line))).collect();
            return Ok(Some(found));
        }
        let mut folders = vec![path.to_owned()];
        let mut listed = 0;
        while let Some(folder) = folders.pop() {
            if listed == MOST_FOLDERS {
                found.is_partial = true;
                break;
            }
            let names = match self.folder(&folder) {
                Ok(Some(names)) => names,
                Ok(None) if listed == 0 => return Ok(None),
                Ok(None) => continue,
                Err(why) if listed == 0 => return Err(why),
                Err(_) => {
                    found.is_partial = true;
                    continue;
                }
            };
            listed += 1;
            found.is_partial |= names.len() >= MOST_NAMES;
            for name in names.iter().filter(|name| !name.starts_with('.')) {
                let path = join(&folder, name);
                match name.rsplit_once('.') {
                    None => folders.push(path),
                    Some((_, end)) if IMAGES.contains(&end.to_ascii_lowercase().as_str()) => {
                        found.paths.push(path)
                    }
                    Some(_) => found.others.push(path),
                }
            }
        }
        found.paths.sort();
        Ok(Some(found))
    }
}

impl DataSet {
    /// The paths of `train`, `val` or `test`, as written.
    pub(crate) fn entries(&self, split: &str) -> Vec<String> {
        match self.keys.get(split) {
            Some(Value::String(path)) if !path.trim().is_empty() => vec![path.trim().to_owned()],
            Some(Value::Array(paths)) => {
                paths.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The candidates for a path of a split.
    pub(crate) fn candidates(&self, entry: &str) -> Vec<String> {
        let mut candidates: Vec<String> = Vec::new();
        for path in self.roots.iter().map(|root| join(root, entry)) {
            if !candidates.contains(&path) {
                candidates.push(path);
            }
        }
        candidates
    }

    /// The existing path of a split; unknown if a recording does not include it. If `../x` does not exist, `x` is
    /// tried as well, as the plan of a run does: exports of Roboflow have such paths.
    pub(crate) fn place(&self, host: &Host, entry: &str) -> Fact<Option<String>> {
        let mut unknown = None;
        let inside = entry.strip_prefix("../").map(|rest| self.candidates(rest)).unwrap_or_default();
        let candidates = self.candidates(entry);
        for path in candidates.iter().chain(&inside) {
            match host.exists(path) {
                Ok(true) => return Ok(Some(path.clone())),
                Ok(false) => {}
                Err(why) => unknown = unknown.or(Some(why)),
            }
        }
        // Who records a host by hand looks next to the YAML file, and not into all the places that yolo knows.
        let is_denied = |paths: &[String]| paths.first().is_none_or(|path| host.exists(path) == Ok(false));
        if host.is_recorded() && is_denied(&candidates) && is_denied(&inside) {
            unknown = None;
        }
        let here = host.path_from_windows(entry).map(|entry| self.candidates(&entry));
        let found = here.into_iter().flatten().find(|path| host.exists(path) == Ok(true));
        found.map_or_else(|| unknown.map_or(Ok(None), Err), |path| Ok(Some(path)))
    }

    /// The images of a split, all its paths together.
    pub(crate) fn images(&self, host: &Host, split: &str) -> Fact<Images> {
        let mut all = Images::default();
        for entry in self.entries(split) {
            let place = self.place(host, &entry)?;
            let place = place.ok_or_else(|| Unknown(format!("the images of {split} do not exist")))?;
            let images = host.images_of(&place)?.unwrap_or_default();
            all.paths.extend(images.paths);
            all.others.extend(images.others);
            all.is_partial |= images.is_partial;
        }
        Ok(all)
    }

    /// Whether it is certain that a split has no images.
    pub(crate) fn is_empty(&self, host: &Host, split: &str) -> bool {
        let Ok(images) = self.images(host, split) else { return false };
        // A folder may have a dot in its name. One path per extension is enough: folders do not have
        // the extensions of files.
        let mut extensions = BTreeSet::new();
        let mut others =
            images.others.iter().filter(|path| extensions.insert(path.rsplit('.').next().unwrap_or(path)));
        let is_file = |path: &String| match host.stat(path) {
            Ok(stat) => stat.is_none_or(|stat| stat.kind != PathKind::Folder),
            // A recording that lists a folder need not say what is not one.
            Err(_) => host.is_recorded() && !matches!(host.folder(path), Ok(Some(_))),
        };
        images.paths.is_empty() && !images.is_partial && others.all(is_file)
    }

    /// The number of class names; `None` if they are not valid.
    pub(crate) fn classes(&self) -> Option<usize> {
        match self.keys.get("names")? {
            Value::Array(names) => Some(names.len()),
            Value::Object(names) if self.misnumbered().is_none() => Some(names.len()),
            _ => None,
        }
    }

    /// How many numbers follow a box in labels with key points, by `kpt_shape: [17, 3]`.
    pub(crate) fn key_points(&self) -> Option<(usize, usize)> {
        let shape = self.keys.get("kpt_shape")?.as_array()?;
        let size = |at: usize| usize::try_from(shape.get(at)?.as_u64()?).ok().filter(|size| *size > 0);
        Some((size(0)?, size(1)?))
    }

    /// A key of `names` that is out of range: classes are numbered from 0 without gaps.
    pub(crate) fn misnumbered(&self) -> Option<&str> {
        let Some(Value::Object(names)) = self.keys.get("names") else { return None };
        let is_in_range = |key: &str| key.parse::<usize>().is_ok_and(|key| key < names.len());
        names.keys().map(String::as_str).find(|key| !is_in_range(key))
    }
}

/// An evenly spaced sample.
pub(crate) fn sample<T>(all: &[T]) -> impl Iterator<Item = &T> {
    let step = all.len().div_ceil(SAMPLE).max(1);
    all.iter().step_by(step)
}

/// The label file of an image: its last `images` folder becomes `labels`, its extension `txt`.
pub(crate) fn label_of(image: &str) -> String {
    let slash = if image.contains('\\') && !image.contains('/') { '\\' } else { '/' };
    let (from, to) = (format!("{slash}images{slash}"), format!("{slash}labels{slash}"));
    let moved = match image.rfind(&from) {
        Some(at) => format!("{}{to}{}", &image[..at], &image[at + from.len()..]),
        None => image.to_owned(),
    };
    let name = moved.rfind(slash).map_or(0, |at| at + 1);
    let stem = moved[name..].rfind('.').map_or(moved.len(), |at| name + at);
    format!("{}.txt", &moved[..stem])
}

/// The folder above a path.
pub(crate) fn parent(path: &str) -> Option<String> {
    let cut = path.trim_end_matches(['/', '\\']).rfind(['/', '\\'])?;
    Some(path[..cut.max(1)].to_owned())
}

/// A path below a folder, unless it is absolute; `.` and `..` are resolved as text.
pub(crate) fn join(folder: &str, path: &str) -> String {
    let joined = if is_absolute(path) || folder.is_empty() {
        path.to_owned()
    } else if folder.contains('\\') && !folder.contains('/') {
        format!("{}\\{path}", folder.trim_end_matches('\\'))
    } else {
        format!("{}/{path}", folder.trim_end_matches('/'))
    };
    if joined.contains('\\') {
        return joined.trim_end_matches('\\').to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." && parts.last().is_some_and(|last| *last != "..") {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("{}{}", if joined.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

/// Whether a path begins at the root, or on a drive of Windows.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '\\']) || drive_path(path).is_some()
}

/// The letter and rest of a path of Windows, such as `C:\birds`.
pub(crate) fn drive_path(path: &str) -> Option<(char, &str)> {
    let mut letters = path.chars();
    let drive = letters.next().filter(char::is_ascii_alphabetic)?;
    (letters.next() == Some(':')).then_some(())?;
    let rest = letters.as_str();
    rest.starts_with(['\\', '/']).then_some((drive, rest))
}

/// Whether the system said so, in its own words.
fn is_forbidden(why: &Unknown) -> bool {
    let why = why.0.to_ascii_lowercase();
    ["permission denied", "access is denied"].iter().any(|words| why.contains(words))
}

/// `voc`, `VOC.yaml` and `data/VOC.yaml` are one data set.
fn is_fetched(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let stem = file.trim_end_matches(".yaml").trim_end_matches(".yml");
    FETCHED.contains(&stem)
}

/// YAML as a value; the last of two equal keys wins, as in Python's reader.
fn parse(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_found_from_image_paths() {
        assert_eq!(label_of("/d/images/train/a.b.jpg"), "/d/labels/train/a.b.txt");
        assert_eq!(label_of("/images/x/images/1.png"), "/images/x/labels/1.txt");
        assert_eq!(label_of(r"D:\d\images\1.png"), r"D:\d\labels\1.txt");
        assert_eq!(label_of("/d.x/1"), "/d.x/1.txt");
    }

    #[test]
    fn paths_are_joined_as_text() {
        assert_eq!(join("/home/mara", "../otto/./d"), "/home/otto/d");
        assert_eq!(join("/home", "/data"), "/data");
        assert_eq!(join("/home", r"C:\data\"), r"C:\data");
        assert_eq!(join("/home/mara", ""), "/home/mara");
        assert_eq!(drive_path("C:/data"), Some(('C', "/data")));
    }

    #[test]
    fn a_relative_path_is_looked_for_in_three_places() {
        let (host, _) = Host::from_value(json!({
            "version": 1,
            "places": { "data": "/y", "working": "/w" },
            "files": { "/w/sets/d.yaml": "path: birds\ntrain: images\nval: images\nnames: [a, b]\n" },
        }))
        .unwrap();
        let Described::Yaml(set) = host.data_set("sets/d.yaml").unwrap() else { panic!("a data set") };
        assert_eq!(
            set.candidates("images"),
            ["/w/sets/birds/images", "/w/birds/images", "/y/datasets/birds/images"]
        );
        assert_eq!(set.classes(), Some(2));
        assert_eq!(host.data_set("VOC.yaml").unwrap(), Described::Named);
    }

    #[test]
    fn a_folder_of_the_same_name_does_not_hide_a_built_in_data_set() {
        let unreadable = json!({ "error": "Is a directory" });
        let (host, _) = Host::from_value(json!({
            "version": 1,
            "places": { "data": "/y", "working": "/w" },
            "files": { "/w/shapes": unreadable, "/w/coco128": unreadable, "/y/datasets/coco128": null },
            "folders": { "/w/shapes": ["shapes.yaml"], "/w/coco128": ["images"] },
        }))
        .unwrap();
        assert_eq!(host.data_set("shapes").unwrap(), Described::Named);
        assert_eq!(host.data_set("coco128").unwrap(), Described::Named);
    }

    #[test]
    fn a_sample_is_spread_over_all() {
        let all: Vec<usize> = (0..1000).collect();
        let some: Vec<&usize> = sample(&all).collect();
        assert!(some.len() <= SAMPLE && *some[some.len() - 1] > 900);
        assert_eq!(sample(&all[..3]).count(), 3);
    }

    proptest! {
        #[test]
        fn any_path_has_a_label(path in "(/|\\\\|images|\\.|\\PC){0,20}") {
            prop_assert!(label_of(&path).ends_with(".txt"));
            let _ = (join("/a", &path), join(&path, &path), parent(&path), drive_path(&path));
        }

        #[test]
        fn any_yaml_is_read(text in "(train: |path:|\\[|\\]|- |\n|\\{|\\}|&a|\\*a|\\PC){0,20}") {
            let _ = parse(&text);
        }
    }
}
