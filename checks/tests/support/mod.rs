//! Reads the recorded hosts in `tests/hosts`; its README describes the format.

#![allow(dead_code, clippy::unwrap_used, reason = "each test crate uses a part; a test fails by panicking")]

pub(crate) mod reports;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use yolo_checks::{Area, Finding, Host, Intent, Status, entry};

/// A recorded host: a base with a patch.
pub(crate) struct Case {
    /// The file name without its extension.
    pub(crate) name: String,
    /// The area, which is the name of the folder.
    pub(crate) area: String,
    /// A sentence that describes the host.
    pub(crate) about: String,
    /// The patched recording.
    pub(crate) recording: Value,
    /// The planned run.
    pub(crate) intent: Intent,
    /// The ids that must be found. Any other warning or error of the area is a failure.
    pub(crate) expect: Vec<String>,
    /// The ids that must not be found.
    pub(crate) not: Vec<String>,
}

impl Case {
    pub(crate) fn host(&self) -> Host {
        Host::from_value(self.recording.clone()).unwrap_or_else(|error| panic!("{}: {error}", self.name)).0
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// The names of all bases.
pub(crate) fn base_names() -> Vec<String> {
    json_files(&folder().join("bases")).iter().map(|path| stem(path)).collect()
}

/// The recording of a base.
pub(crate) fn base_recording(name: &str) -> Value {
    read(&folder().join("bases").join(format!("{name}.json")))
}

/// A base, as a host.
pub(crate) fn base(name: &str) -> Host {
    Host::from_value(base_recording(name)).unwrap_or_else(|error| panic!("{name}: {error}")).0
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let of_area = |area: Area| {
        json_files(&folder().join(area.name())).into_iter().map(move |path| case(area.name(), &path))
    };
    Area::ALL.into_iter().flat_map(of_area).collect()
}

fn case(area: &str, path: &Path) -> Case {
    const KEYS: [&str; 7] = ["about", "base", "patch", "without", "intent", "expect", "not"];
    let file = read(path);
    let name = stem(path);
    for key in file.as_object().unwrap().keys() {
        assert!(KEYS.contains(&key.as_str()), "{name}: a host has no key \"{key}\"");
    }
    let ids = |key: &str| -> Vec<String> {
        let ids = file[key].as_array().into_iter().flatten();
        ids.map(|id| {
            let id = id.as_str().unwrap();
            assert!(entry(id).is_some(), "{name}: the catalogue has no {id}");
            id.to_owned()
        })
        .collect()
    };
    Case {
        area: area.to_owned(),
        about: file["about"].as_str().unwrap_or_else(|| panic!("{name} has no \"about\"")).to_owned(),
        recording: recording(&file),
        intent: intent(&name, &file),
        expect: ids("expect"),
        not: ids("not"),
        name,
    }
}

/// The recording of a file that has a base and a patch.
fn recording(file: &Value) -> Value {
    let mut recording = base_recording(file["base"].as_str().unwrap());
    for place in file["without"].as_array().into_iter().flatten() {
        remove(&mut recording, place.as_array().unwrap());
    }
    if let Some(patch) = file.get("patch") {
        merge(&mut recording, patch);
    }
    recording
}

/// The planned run of such a file.
fn intent(name: &str, file: &Value) -> Intent {
    file.get("intent").map_or_else(Intent::default, |intent| {
        serde_json::from_value(intent.clone()).unwrap_or_else(|error| panic!("{name}: {error}"))
    })
}

/// Removes the value at a path of keys from a recording.
fn remove(value: &mut Value, place: &[Value]) {
    let (last, parents) = place.split_last().unwrap();
    let mut value = value;
    for parent in parents {
        value = match parent {
            Value::Number(index) => &mut value[usize::try_from(index.as_u64().unwrap()).unwrap()],
            name => &mut value[name.as_str().unwrap()],
        };
    }
    let removed = value.as_object_mut().and_then(|map| map.remove(last.as_str().unwrap()));
    assert!(removed.is_some(), "the base has no {last} to remove");
}

/// Merges a patch into a recording. Objects are merged, elements of a list by their index
/// (`"devices": {"0": …}`). Anything else is replaced; `null` is a value, since it means that something
/// does not exist.
pub(crate) fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Array(items), Value::Object(patch))
            if patch.keys().all(|key| key.parse::<usize>().is_ok_and(|index| index < items.len())) =>
        {
            for (index, patch) in patch {
                merge(&mut items[index.parse::<usize>().unwrap()], patch);
            }
        }
        (Value::Object(map), Value::Object(patch)) if !patch.contains_key("error") => {
            for (key, patch) in patch {
                merge(map.entry(key.clone()).or_insert(Value::Null), patch);
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

/// Whether a finding reports what its entry in the catalogue is about, rather than that all is well.
pub(crate) fn is_produced(finding: &Finding) -> bool {
    let usual = entry(finding.id).unwrap().status;
    finding.status != Status::Skipped && (finding.status != Status::Ok || usual == Status::Ok)
}
