//! The stamp of an installed libtorch: its sources, and the size and SHA-256 of every library. Later runs
//! compare the sizes, which takes no time. Invariant: the stamp is published together with the files, so
//! a directory without one is incomplete.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::installation::{A_HEADER, LIBTORCH_VERSION};

const FILE: &str = "yolo-setup.json";
const FORMAT: u32 = 1;

/// What the integrity of the files rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Trust {
    /// Hashes pinned in this program.
    Pinned,
    /// The hash of the whole wheel, from the index.
    WholeWheel,
    /// The encrypted connection to the server.
    Tls,
    /// The mirror that the user named.
    Mirror,
}

impl Trust {
    /// The weaker of two.
    pub(super) fn weaker(self, other: Self) -> Self {
        let order = [Self::Pinned, Self::WholeWheel, Self::Tls, Self::Mirror];
        let rank = |trust| order.iter().position(|one| *one == trust);
        if rank(self) >= rank(other) { self } else { other }
    }

    /// As a sentence about what was fetched.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Pinned => "all files match yolo's pinned hashes",
            Self::WholeWheel => "the wheels match the hashes of their index",
            Self::Tls => "yolo has no pinned hashes for it; its integrity rests on the encrypted connection",
            Self::Mirror => "yolo has no pinned hashes for it; its integrity rests on your mirror",
        }
    }
}

/// The stamp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    format: u32,
    version: String,
    pub(super) variant: String,
    /// Addresses without credentials.
    pub(super) sources: Vec<String>,
    pub(super) trust: Trust,
    pub(super) headers: bool,
    pub(super) files: Vec<StampedFile>,
}

/// A library or a license.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StampedFile {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl Stamp {
    pub(super) fn new(
        variant: &str,
        sources: Vec<String>,
        trust: Trust,
        headers: bool,
        files: Vec<StampedFile>,
    ) -> Self {
        let (format, version, variant) = (FORMAT, LIBTORCH_VERSION.to_owned(), variant.to_owned());
        Self { format, version, variant, sources, trust, headers, files }
    }

    pub(super) fn write(&self, root: &Path) -> std::io::Result<()> {
        fs::write(root.join(FILE), serde_json::to_vec_pretty(self)?)
    }

    /// The stamp of a complete installation, or why there is none.
    pub(super) fn check(root: &Path, want_headers: bool) -> Result<Self, String> {
        let text = fs::read(root.join(FILE)).map_err(|error| format!("no stamp ({error})"))?;
        let stamp: Self =
            serde_json::from_slice(&text).map_err(|error| format!("unreadable stamp ({error})"))?;
        if stamp.format != FORMAT || stamp.version != LIBTORCH_VERSION {
            return Err(format!("stamp of format {}, libtorch {}", stamp.format, stamp.version));
        }
        for file in &stamp.files {
            match fs::metadata(root.join(&file.path)) {
                Ok(data) if data.len() == file.size => {}
                Ok(data) => return Err(format!("{} has {} bytes, not {}", file.path, data.len(), file.size)),
                Err(error) => return Err(format!("{}: {error}", file.path)),
            }
        }
        if want_headers && !(stamp.headers && root.join(A_HEADER).is_file()) {
            return Err("no headers, which building the trainer needs".into());
        }
        Ok(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_size_a_missing_file_and_missing_headers_are_seen() {
        let root = tempfile::tempdir().unwrap();
        assert!(Stamp::check(root.path(), false).unwrap_err().contains("no stamp"));
        let file = StampedFile { path: "a".into(), size: 3, sha256: String::new() };
        Stamp::new("cpu", vec![], Trust::Pinned, false, vec![file]).write(root.path()).unwrap();
        assert!(Stamp::check(root.path(), false).is_err());
        fs::write(root.path().join("a"), "four").unwrap();
        assert_eq!(Stamp::check(root.path(), false).unwrap_err(), "a has 4 bytes, not 3");
        fs::write(root.path().join("a"), "abc").unwrap();
        assert_eq!(Stamp::check(root.path(), false).unwrap().trust, Trust::Pinned);
        assert!(Stamp::check(root.path(), true).unwrap_err().contains("headers"));
    }
}
