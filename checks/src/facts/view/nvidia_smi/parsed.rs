//! The combined contents of several outputs of `nvidia-smi`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The answers of one card by their names in a recording.
type Answers = Map<String, Value>;

/// The combined contents of one or several outputs.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) driver_version: Option<String>,
    pub(super) cuda_version: Option<u64>,
    pub(super) devices: BTreeMap<usize, Answers>,
}

impl Parsed {
    pub(super) fn put(&mut self, device: usize, name: &str, answer: impl Into<Value>) {
        let answers = self.devices.entry(device).or_default();
        // One form may truncate a name that another has in full.
        let is_better = |old: &Value| old.as_str().is_some_and(|old| old.contains("...")) || old.is_null();
        if answers.get(name).is_none_or(is_better) {
            answers.insert(name.to_owned(), answer.into());
        }
    }

    /// Records a card that no longer responds.
    pub(super) fn lost(&mut self, device: usize, code: i64) {
        self.put(device, "error", code);
    }

    pub(super) fn version_of_cuda(&mut self, text: &str) {
        let mut parts = text.trim().split('.').map(str::parse::<u64>);
        if let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next())
            && major < 1000
            && minor < 100
        {
            self.cuda_version = Some(major * 1000 + minor * 10);
        }
    }
}
