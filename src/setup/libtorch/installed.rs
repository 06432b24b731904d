//! The libtorch that is installed: which variants there are, which of them runs use, and the one that
//! `LIBTORCH` names, which takes precedence.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::installation::{Libtorch, root_of};
use super::libtorch_variable;
use super::stamp::Stamp;
use super::variant::Variant;
use crate::dirs::YoloDirs;
use crate::setup::error::SetupError;

/// The file in the directory of all variants that names the one that runs use.
pub(in crate::setup) const SELECTED: &str = "selected";

/// Finds libtorch without installing anything: `None` when it is missing or incomplete.
///
/// # Errors
/// When `LIBTORCH` names something else.
pub fn find_libtorch(dirs: &YoloDirs) -> Result<Option<Libtorch>, SetupError> {
    find(dirs, None, false)
}

/// Finds a complete libtorch: the one that `LIBTORCH` names, else `variant`, else the selected variant,
/// else any.
pub(super) fn find(
    dirs: &YoloDirs,
    variant: Option<Variant>,
    want_headers: bool,
) -> Result<Option<Libtorch>, SetupError> {
    if let Some(path) = libtorch_variable::named() {
        return libtorch_variable::libtorch(&path, want_headers).map(Some);
    }
    let candidates = match variant.or_else(|| in_use(dirs)) {
        Some(variant) => vec![variant],
        None => Variant::ALL.into_iter().rev().collect(),
    };
    let complete = |variant: &Variant| Stamp::check(&root_of(dirs, *variant), want_headers).is_ok();
    let found = candidates.into_iter().find(complete);
    Ok(found.map(|variant| Libtorch::at(root_of(dirs, variant), variant)))
}

/// The installed variants and their directories.
pub fn installed_variants(dirs: &YoloDirs) -> Vec<(Variant, PathBuf)> {
    let all = Variant::ALL.into_iter().map(|variant| (variant, root_of(dirs, variant)));
    all.filter(|(_, root)| root.symlink_metadata().is_ok()).collect()
}

/// The variant that runs use, if one has been selected.
pub fn in_use(dirs: &YoloDirs) -> Option<Variant> {
    Variant::named(fs::read_to_string(dirs.libtorch().join(SELECTED)).ok()?.trim())
}

/// Makes runs use this variant.
///
/// # Errors
/// When the file that names it cannot be written.
pub fn select(dirs: &YoloDirs, variant: Variant) -> Result<(), SetupError> {
    if in_use(dirs) == Some(variant) {
        return Ok(());
    }
    let path = dirs.libtorch().join(SELECTED);
    let new = dirs.libtorch().join(format!(".{SELECTED}.{}", std::process::id()));
    fs::write(&new, variant.name()).map_err(SetupError::file("write", &new))?;
    fs::rename(&new, &path).map_err(SetupError::file("write", &path))
}

/// Forgets which variant runs use.
pub(in crate::setup) fn unselect(dirs: &YoloDirs) -> Result<(), SetupError> {
    let path = dirs.libtorch().join(SELECTED);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SetupError::file("remove", path)(error)),
        _ => Ok(()),
    }
}
