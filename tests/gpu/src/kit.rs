//! The unpacked kit: its programs, test programs, data set and weights, and the manifest that `pack`
//! wrote.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use crate::error::KitError;

/// Version of the manifest; a program reads only its own.
const VERSION: u32 = 1;

/// What `pack` packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format: 1.
    pub version: u32,
    /// The version of `yolo`.
    pub program: String,
    /// The commit of the source, with `+` if it was changed.
    pub commit: String,
    /// The day of the build: `2026-11-22`.
    pub built: String,
    /// The crates whose test programs are in `tests/`.
    pub tests: Vec<String>,
    /// Whether BCCD was packed.
    #[serde(default)]
    pub data: bool,
    /// Whether pretrained weights were packed.
    #[serde(default)]
    pub weights: bool,
}

/// An unpacked kit.
#[derive(Debug, Clone)]
pub struct Kit {
    root: PathBuf,
    /// What it contains.
    pub manifest: Manifest,
}

impl Kit {
    /// Opens the kit in this folder.
    ///
    /// # Errors
    /// When a file is missing or the manifest is of another version.
    pub fn open(root: &Path) -> Result<Self, KitError> {
        let path = root.join("manifest.json");
        let text = std::fs::read_to_string(&path)
            .map_err(|_| KitError::Incomplete { what: "manifest", path: path.clone() })?;
        let invalid =
            |why: String| KitError::Invalid { what: "manifest of this kit", path: path.clone(), why };
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if manifest.version != VERSION {
            return Err(invalid(format!("its version is {}, not {VERSION}", manifest.version)));
        }
        let kit = Self { root: root.to_owned(), manifest };
        let tests = kit.manifest.tests.iter().map(|name| kit.test_program(name));
        for program in [kit.program("yolo"), kit.program("yolo-trainer")].into_iter().chain(tests) {
            // Permissions are lost when an archive is unpacked on some file systems.
            if rustix::fs::access(&program, Access::EXEC_OK).is_err() {
                return Err(KitError::Incomplete { what: "executable program", path: program });
            }
        }
        let packed = [
            (kit.manifest.data, kit.bccd(), "data/bccd/bccd.yaml"),
            (kit.manifest.weights, kit.weights(), "weights/yolov5n.pt"),
        ];
        match packed.into_iter().find(|(was_packed, found, _)| *was_packed && found.is_none()) {
            None => Ok(kit),
            Some((_, _, name)) => Err(KitError::Incomplete { what: "file", path: kit.root.join(name) }),
        }
    }

    /// A program of the kit.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(name)
    }

    /// The test program of a crate.
    pub fn test_program(&self, name: &str) -> PathBuf {
        self.root.join("tests").join(name)
    }

    /// The BCCD data set, if it was packed.
    pub fn bccd(&self) -> Option<PathBuf> {
        Some(self.root.join("data/bccd/bccd.yaml")).filter(|path| path.is_file())
    }

    /// The newer libnccl of the second archive, if it was unpacked too.
    pub fn nccl(&self) -> Option<PathBuf> {
        Some(self.root.join("nccl/libnccl.so.2")).filter(|path| path.is_file())
    }

    /// The folder of the third archive, with the Python original, if it was unpacked too.
    pub fn original(&self) -> Option<PathBuf> {
        Some(self.root.join("original")).filter(|folder| folder.join("measure.py").is_file())
    }

    /// The pretrained weights of yolov5n, if they were packed.
    pub fn weights(&self) -> Option<PathBuf> {
        Some(self.root.join("weights/yolov5n.pt")).filter(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(manifest: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("manifest.json"), manifest).unwrap();
        folder
    }

    #[test]
    fn an_incomplete_kit_is_refused_with_what_is_missing() {
        let empty = tempfile::tempdir().unwrap();
        assert!(Kit::open(empty.path()).unwrap_err().to_string().contains("has no manifest"));
        let manifest = r#"{"version":1,"program":"0.1.0","commit":"abc","built":"2026-11-22","tests":[]}"#;
        let without_programs = folder_with(manifest);
        let message = Kit::open(without_programs.path()).unwrap_err().to_string();
        assert!(message.contains("has no executable program") && message.contains("bin/yolo"), "{message}");
    }

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        let manifest = r#"{"version":9,"program":"0.1.0","commit":"abc","built":"2026-11-22","tests":[]}"#;
        let message = Kit::open(folder_with(manifest).path()).unwrap_err().to_string();
        assert!(message.contains("its version is 9, not 1"), "{message}");
        let message = Kit::open(folder_with("{}").path()).unwrap_err().to_string();
        assert!(message.contains("missing field"), "{message}");
    }
}
