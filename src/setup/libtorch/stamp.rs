//! What an installed libtorch says of itself: where it came from and every library's size and
//! SHA-256. A later run compares the sizes, which takes no time; a missing stamp means that nothing
//! complete is there, since the folder is published with it inside.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::installation::LIBTORCH_VERSION;

const FILE: &str = "yolo-setup.json";
const FORMAT: u32 = 1;

/// A header that a complete set of headers has.
pub(super) const A_HEADER: &str = "include/torch/extension.h";

/// On what the bytes' rightness rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Trust {
    /// Hashes written in this program.
    Pinned,
    /// The hash of the whole wheel that the index told.
    WholeWheel,
    /// The encrypted connection to the server alone.
    Tls,
    /// The mirror that the user has named.
    Mirror,
}

impl Trust {
    /// The one that promises less.
    pub(super) fn weaker(self, other: Self) -> Self {
        let order = [Self::Pinned, Self::WholeWheel, Self::Tls, Self::Mirror];
        let rank = |trust| order.iter().position(|one| *one == trust);
        if rank(self) >= rank(other) { self } else { other }
    }

    /// As a sentence about what was fetched.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Pinned => "every file has the hash that yolo expects",
            Self::WholeWheel => "the wheels have the hashes that their index told",
            Self::Tls => "its hashes are not known to yolo: it rests on the encrypted connection",
            Self::Mirror => "its hashes are not known to yolo: it rests on the mirror that you named",
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

/// A library or a licence.
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
