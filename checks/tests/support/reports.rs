//! Reads the machines of bug reports in `tests/reports`; the README there describes the format.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use yolo_checks::{Host, Intent};

/// A machine of a bug report: a base with a patch, and what an expert would say about it.
pub(crate) struct Report {
    /// The set that it is of, such as `unseen`.
    pub(crate) set: String,
    /// The file name without its extension.
    pub(crate) name: String,
    /// The ids that must be found. One that the catalogue does not have yet is missing.
    pub(crate) findings: Vec<String>,
    /// The ids of other warnings and errors that may be found.
    pub(crate) also: Vec<String>,
    /// At least one text of each list must be shown.
    pub(crate) must_say: Vec<Vec<String>>,
    /// None of these texts may be shown.
    pub(crate) must_not_say: Vec<String>,
    /// The planned run.
    pub(crate) intent: Intent,
    recording: Value,
}

impl Report {
    pub(crate) fn host(&self) -> Host {
        Host::from_value(self.recording.clone()).unwrap_or_else(|error| panic!("{}: {error}", self.name)).0
    }
}

/// What the author of a report wrote. `source`, `words` and `truth` are for readers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "some fields are only for readers, who must find them")]
struct Written {
    about: String,
    source: String,
    words: String,
    base: String,
    #[serde(default)]
    without: Value,
    #[serde(default)]
    patch: Value,
    #[serde(default)]
    intent: Value,
    healthy: bool,
    truth: String,
    must_say: Vec<Vec<String>>,
    must_not_say: Vec<String>,
}

/// Which findings are right, in `findings.json` of each set: the authors of reports do not know the ids.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Right {
    findings: Vec<String>,
    #[serde(default)]
    also: Vec<String>,
}

/// All reports of all sets: each has a file with what is right, and a folder of that name.
pub(crate) fn reports() -> Vec<Report> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let sets = super::json_files(&folder).into_iter().map(|path| super::stem(&path));
    sets.flat_map(|set| of_set(&folder, &set)).collect()
}

fn of_set(folder: &Path, set: &str) -> Vec<Report> {
    let right = super::read(&folder.join(format!("{set}.json")));
    let mut right: BTreeMap<String, Right> =
        serde_json::from_value(right).unwrap_or_else(|error| panic!("{set}.json: {error}"));
    let reports = super::json_files(&folder.join(set)).into_iter().map(|path| {
        let (name, file) = (super::stem(&path), super::read(&path));
        let written: Written =
            serde_json::from_value(file.clone()).unwrap_or_else(|error| panic!("{set}/{name}: {error}"));
        let Right { findings, also } =
            right.remove(&name).unwrap_or_else(|| panic!("{set}.json has no {name}"));
        assert_eq!(written.healthy, findings.is_empty(), "{set}/{name}: a healthy machine has no findings");
        Report {
            set: set.to_owned(),
            findings,
            also,
            must_say: written.must_say,
            must_not_say: written.must_not_say,
            intent: super::intent(&name, &file),
            recording: super::recording(&file),
            name,
        }
    });
    let reports = reports.collect();
    assert!(right.is_empty(), "{set}.json names reports that do not exist: {:?}", right.keys());
    reports
}
