//! What `yolo.exe` tells the `yolo` that it starts in WSL, as JSON in an environment variable: WSL passes variables
//! unchanged, whatever is in them, and older programs ignore this one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yolo_base::env::YOLO_FROM_WINDOWS;

/// The content of the variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// The version of `yolo.exe`.
    pub(super) yolo: String,
    /// The distribution.
    pub(super) distribution: String,
    /// The working folder, as Windows writes it.
    pub(super) folder: String,
    /// Variables with paths that WSL translates, as Windows has them. WSL drops those that it cannot translate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) paths: BTreeMap<String, String>,
}

impl Marker {
    /// The value of the variable.
    pub(super) fn encode(&self) -> String {
        // A structure of strings cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The marker of this process, if `yolo.exe` started it.
    pub(super) fn of_this_process() -> Option<Self> {
        serde_json::from_str(&std::env::var(YOLO_FROM_WINDOWS).ok()?).ok()
    }
}
