//! What setup has installed on this machine, and its removal. An item is first renamed away, so that an
//! interrupted removal never leaves half of it in place.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dirs::YoloDirs;
use crate::fetch::{FetchError, FolderLock, folder_size, staging_dirs_in};
use crate::setup::context::Context;
use crate::setup::error::SetupError;
use crate::setup::libtorch::installed::{in_use, installed_variants, unselect};
use crate::setup::{data, weights};

/// The name of everything that interrupted runs left.
const UNFINISHED: &str = "unfinished";

/// Something that setup installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstalledItem {
    /// "libtorch", "weights", "data" or "unfinished".
    pub kind: &'static str,
    /// The name by which it is removed.
    pub name: String,
    /// Bytes on the disk.
    pub size: u64,
    /// Where it is.
    pub place: PathBuf,
    /// Whether runs use this variant of libtorch.
    pub in_use: bool,
}

/// All installed items, by kind and name.
pub fn installed_items(dirs: &YoloDirs) -> Vec<InstalledItem> {
    let selected = in_use(dirs);
    let item = |kind, name: String, place: PathBuf, in_use| InstalledItem {
        size: if place.is_dir() {
            folder_size(&place)
        } else {
            fs::metadata(&place).map_or(0, |data| data.len())
        },
        kind,
        name,
        place,
        in_use,
    };
    let mut found: Vec<InstalledItem> = installed_variants(dirs)
        .into_iter()
        .map(|(variant, root)| item("libtorch", variant.name().to_owned(), root, selected == Some(variant)))
        .collect();
    for path in files(&weights::folder(dirs)) {
        if weights::in_place(&path).is_some() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(item("weights", name, path, false));
        }
    }
    let mut sets = data::installed_in(&dirs.data_sets());
    sets.sort_by(|one, other| one.name.cmp(&other.name));
    found.extend(sets.into_iter().map(|set| item("data", set.name, set.root, false)));
    for folder in [dirs.libtorch(), weights::folder(dirs), dirs.data_sets()] {
        let left = staging_dirs_in(&folder).into_iter();
        found.extend(left.map(|path| item("unfinished", UNFINISHED.to_owned(), path, false)));
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Removes the items with these names and returns what was removed.
///
/// # Errors
/// When a name is unknown, before anything is removed; or when the disk fails.
pub fn remove(context: &Context<'_>, words: &[String]) -> Result<Vec<InstalledItem>, SetupError> {
    let all = installed_items(context.dirs);
    let mut found: Vec<InstalledItem> = Vec::new();
    let unknown: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| named(&all, word).is_empty() && *word != UNFINISHED)
        .collect();
    if !unknown.is_empty() {
        let what = unknown.iter().map(|word| if word.is_empty() { "\"\"" } else { word });
        let what = what.collect::<Vec<_>>().join(", ");
        let mut names: Vec<&str> = all.iter().map(|item| item.name.as_str()).collect();
        names.dedup();
        let installed = match names.as_slice() {
            [] => "yolo has not installed anything yet".to_owned(),
            names => format!("installed: {}", names.join(", ")),
        };
        return Err(SetupError::NothingToRemove { what, installed });
    }
    for item in words.iter().flat_map(|word| named(&all, word)) {
        if !found.contains(item) {
            found.push(item.clone());
        }
    }
    let mut removed = Vec::new();
    for item in found {
        if take_away(context, &item)? {
            removed.push(item);
        }
    }
    Ok(removed)
}

/// The items with a name.
fn named<'a>(all: &'a [InstalledItem], what: &str) -> Vec<&'a InstalledItem> {
    let is_it = |item: &&InstalledItem| {
        item.name == what
            || item.name.strip_suffix(".pt") == Some(what)
            || format!("{}-{}", item.kind, item.name) == what
    };
    all.iter().filter(is_it).collect()
}

/// Removes an item. Returns whether it still existed: an unfinished item may have been installed
/// meanwhile.
fn take_away(context: &Context<'_>, item: &InstalledItem) -> Result<bool, SetupError> {
    let folder = item.place.parent().unwrap_or(&item.place);
    // Waits for a setup that is working on it.
    let _lock = FolderLock::acquire(folder, context.progress)?;
    if item.kind == "weights" {
        weights::remove(&item.place)?;
        return Ok(true);
    }
    if item.place.symlink_metadata().is_err() {
        return Ok(false);
    }
    let aside = folder.join(format!(".incoming-removed-{}", std::process::id()));
    fs::rename(&item.place, &aside).map_err(SetupError::file("remove", &item.place))?;
    if item.in_use {
        unselect(context.dirs)?;
    }
    fs::remove_dir_all(&aside).map_err(FetchError::disk("remove", &aside))?;
    Ok(true)
}
