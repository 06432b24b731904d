//! A libtorch on this machine that a trainer can run with, wherever it came from.

use std::path::PathBuf;

use super::variant::Variant;
use crate::dirs::YoloDirs;

/// The version of libtorch that tch 0.24 binds to.
pub const LIBTORCH_VERSION: &str = "2.11.0";

/// A header that shows that the headers are installed.
pub(super) const A_HEADER: &str = "include/torch/extension.h";

/// A libtorch that a trainer can run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libtorch {
    /// The directory that contains `lib`.
    pub root: PathBuf,
    /// The directory of the shared libraries.
    pub lib_dir: PathBuf,
    /// The headers, if they are installed.
    pub include: Option<PathBuf>,
    /// `cpu`, `cu130`, …; for a libtorch that `LIBTORCH` names, taken from its version.
    pub variant: String,
    /// Whether `libtorch_cuda.so` is among the libraries.
    pub has_cuda: bool,
}

impl Libtorch {
    /// The installed variant at `root`.
    pub(super) fn at(root: PathBuf, variant: Variant) -> Self {
        let include = root.join("include");
        Self {
            lib_dir: root.join("lib"),
            include: root.join(A_HEADER).is_file().then_some(include),
            variant: variant.name().to_owned(),
            has_cuda: root.join("lib/libtorch_cuda.so").exists(),
            root,
        }
    }
}

/// Where a variant is, or will be installed.
pub(super) fn root_of(dirs: &YoloDirs, variant: Variant) -> PathBuf {
    dirs.libtorch().join(format!("{LIBTORCH_VERSION}-{}", variant.name()))
}
