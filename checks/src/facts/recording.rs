//! A host as a file: questions with their raw answers, as JSON that people can read and write
//! (docs/recording.md documents the format). Writing redacts. Reading accepts any subset of the
//! sections, and reports why a file is not a recording.

use serde_json::{Map, Value, json};

use super::host::Host;
use super::question::{Question, Section};
use super::redact::Redaction;
use crate::intent::Intent;

/// The version of the format: increased when a section is removed or changes its meaning.
pub const VERSION: u64 = 1;

/// Keys of a recording that are not facts.
const OTHERS: [&str; 5] = ["version", "yolo", "comment", "intent", "$schema"];

/// Why a file is not a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// Not valid JSON.
    #[error("it is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Valid JSON, but not an object.
    #[error("it is not a JSON object")]
    Object,
    /// A test's host, which is a difference from a recording.
    #[error(
        "it is a host of the tests, which is merged into a recording: it has \"base\" and no \"version\""
    )]
    Difference,
    /// The report of `yolo doctor --json`, which has findings but no facts.
    #[error("it is a report of `yolo doctor --json`, which does not contain the facts")]
    Report,
    /// No version, or one that is newer than this program.
    #[error("its \"version\" is {0}, but this yolo reads version {VERSION}")]
    Version(String),
    /// An unknown key.
    #[error("it has an unknown section \"{0}\"{hint}", hint = nearest(.0))]
    Section(String),
    /// A table that is not an object.
    #[error("its section \"{0}\" must be an object that maps names to answers")]
    Table(&'static str),
    /// The options of the run are not valid.
    #[error("its \"intent\" is not valid: {0}")]
    Intent(serde_json::Error),
}

fn nearest(section: &str) -> String {
    let lower = section.to_lowercase();
    let near = Section::ALL
        .iter()
        .map(|section| section.name())
        .find(|name| name.starts_with(lower.trim_end_matches('s')) || lower.starts_with(name));
    near.map_or(String::new(), |name| format!("; did you mean \"{name}\"?"))
}

impl Host {
    /// A recorded host, and the options of the run if the recording has them.
    ///
    /// # Errors
    /// When the text is not a recording.
    pub fn replay(text: &str) -> Result<(Self, Option<Intent>), RecordingError> {
        Self::from_value(serde_json::from_str(text.trim_start_matches('\u{feff}'))?)
    }

    /// Like [`Host::replay`], for JSON that is already parsed.
    ///
    /// # Errors
    /// When it is not a recording.
    pub fn from_value(value: Value) -> Result<(Self, Option<Intent>), RecordingError> {
        let Value::Object(mut sections) = value else { return Err(RecordingError::Object) };
        if sections.get("version").and_then(Value::as_u64) != Some(VERSION) {
            if sections.contains_key("base") {
                return Err(RecordingError::Difference);
            }
            if sections.contains_key("schema") && sections.contains_key("findings") {
                return Err(RecordingError::Report);
            }
            let version = sections.get("version").map_or("missing".to_owned(), ToString::to_string);
            return Err(RecordingError::Version(version));
        }
        let intent = match sections.remove("intent") {
            None | Some(Value::Null) => None,
            Some(intent) => Some(serde_json::from_value(intent).map_err(RecordingError::Intent)?),
        };
        let recorded_by = sections.get("yolo").and_then(Value::as_str).map(ToOwned::to_owned);
        let mut answers = Vec::new();
        let has_environment = sections.contains_key(Section::Env.name());
        for (name, content) in sections {
            if OTHERS.contains(&name.as_str()) {
                continue;
            }
            let Some(section) = Section::ALL.into_iter().find(|section| section.name() == name) else {
                return Err(RecordingError::Section(name));
            };
            if section.is_table() {
                let Value::Object(rows) = content else { return Err(RecordingError::Table(section.name())) };
                answers.extend(rows.into_iter().map(|(row, answer)| (Question::row(section, row), answer)));
            } else {
                answers.push((Question::one(section), content));
            }
        }
        let mut host = Self::recorded(answers, has_environment);
        host.recorded_by = recorded_by;
        Ok((host, intent))
    }

    /// All answers so far, as a recording without names, addresses and secrets.
    pub fn record(&self, intent: &Intent, yolo: &str) -> Value {
        self.record_and(intent, yolo, &[]).0
    }

    /// A recording, and other texts with the same redaction.
    pub fn record_and(&self, intent: &Intent, yolo: &str, texts: &[Value]) -> (Value, Vec<Value>) {
        let mut file = Map::new();
        file.insert("version".into(), json!(VERSION));
        file.insert("yolo".into(), json!(yolo));
        file.insert("intent".into(), serde_json::to_value(intent).unwrap_or(Value::Null));
        // Every recording has these, asked or not.
        let _ = (self.os(), self.arch(), self.hostname(), self.user());
        // A replayed recording without an environment stays one.
        if self.has_environment {
            file.insert(Section::Env.name().into(), json!({}));
        }
        for (question, answer) in self.answers() {
            let name = question.section.name();
            if !question.section.is_table() {
                file.insert(name.into(), answer);
                continue;
            }
            // The environment omits variables that are not set.
            if question.section == Section::Env && answer.is_null() {
                continue;
            }
            let table = file.entry(name).or_insert_with(|| json!({}));
            if let Some(table) = table.as_object_mut() {
                table.insert(question.name, answer);
            }
        }
        let file = Value::Object(file);
        let mut redaction = Redaction::of(&file);
        let recording = redaction.recording(&file);
        (recording, texts.iter().map(|text| redaction.texts(text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Host::replay(text).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_is_not_a_recording_is_rejected_with_the_reason() {
        assert!(error("Ubuntu 22.04").starts_with("it is not valid JSON"));
        assert_eq!(error("[]"), "it is not a JSON object");
        assert_eq!(error("{}"), "its \"version\" is missing, but this yolo reads version 1");
        assert_eq!(
            error(r#"{"about": "", "base": "linux-gpu"}"#),
            "it is a host of the tests, which is merged into a recording: it has \"base\" and no \"version\""
        );
        assert_eq!(
            error(r#"{"schema": 1, "findings": []}"#),
            "it is a report of `yolo doctor --json`, which does not contain the facts"
        );
        assert_eq!(error(r#"{"version": 9}"#), "its \"version\" is 9, but this yolo reads version 1");
        assert_eq!(
            error(r#"{"version": 1, "file": {}}"#),
            "it has an unknown section \"file\"; did you mean \"files\"?"
        );
        assert_eq!(
            error(r#"{"version": 1, "env": []}"#),
            "its section \"env\" must be an object that maps names to answers"
        );
    }

    #[test]
    fn facts_that_a_recording_omits_are_unknown() {
        let (host, _) =
            Host::replay(r#"{"version": 1, "files": {"/etc/a": null, "/etc/b": "text"}}"#).unwrap();
        assert_eq!(host.text("/etc/a").unwrap(), None);
        assert_eq!(host.text("/etc/b").unwrap(), Some("text".to_owned()));
        assert_eq!(
            host.text("/etc/c").unwrap_err().0,
            "the recording does not include the contents of /etc/c"
        );
        assert!(host.env("HOME").is_err());
    }

    #[test]
    fn an_environment_and_a_listed_folder_are_complete() {
        let text = r#"{"version": 1, "env": {"A": "1"}, "folders": {"/dev": ["null", "shm"]}}"#;
        let (host, _) = Host::replay(text).unwrap();
        assert_eq!(host.env("B").unwrap(), None);
        assert!(host.exists("/dev/shm").unwrap());
        assert!(!host.exists("/dev/nvidia0").unwrap());
        assert!(!host.exists("/dev/nvidia-caps/cap0").unwrap());
        assert!(host.exists("/dev/shm/x").is_err());
    }

    #[test]
    fn a_file_system_is_inferred_from_a_parent_folder_or_the_mount_table() {
        let text = r#"{"version": 1, "filesystems": {"/mnt/d": {"type": "9p"}}, "files": {"/proc/self/mountinfo":
            "61 71 8:48 / / rw - ext4 /dev/sdd rw\n97 61 0:60 / /mnt/e rw,noatime - 9p E: rw"}}"#;
        let (host, _) = Host::replay(text).unwrap();
        let kind = |path: &str| host.file_system(path).unwrap().kind.unwrap();
        assert_eq!([kind("/mnt/d/birds/birds.yaml"), kind("/mnt/e/x"), kind("/home")], ["9p", "9p", "ext4"]);
        let (host, _) = Host::replay(r#"{"version": 1, "filesystems": {"/mnt/d": {"type": "9p"}}}"#).unwrap();
        assert!(host.file_system("/home").is_err());
    }

    #[test]
    fn a_recorded_error_is_the_reason_why_a_fact_is_unknown() {
        let text = r#"{"version": 1, "files": {"/a": {"error": "permission denied"}}}"#;
        let (host, _) = Host::replay(text).unwrap();
        assert_eq!(
            host.text("/a").unwrap_err().0,
            "the contents of /a could not be determined: permission denied"
        );
    }
}
