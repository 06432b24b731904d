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
    let downloaded = data::installed_in(&dirs.data_sets()).into_iter().map(|set| (set.name, set.root));
    let mut sets: Vec<(String, PathBuf)> = downloaded.chain(data::generated_in(&dirs.data_sets())).collect();
    sets.sort();
    found.extend(sets.into_iter().map(|(name, root)| item("data", name, root, false)));
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
pub fn remove(context: &Context<'_>, names: &[String]) -> Result<Vec<InstalledItem>, SetupError> {
    let all = installed_items(context.dirs);
    let mut found: Vec<InstalledItem> = Vec::new();
    let unknown: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| named(&all, name).is_empty() && *name != UNFINISHED)
        .collect();
    if !unknown.is_empty() {
        let what = unknown.iter().map(|name| if name.is_empty() { "\"\"" } else { name });
        let what = what.collect::<Vec<_>>().join(", ");
        let mut installed: Vec<&str> = all.iter().map(|item| item.name.as_str()).collect();
        installed.dedup();
        let installed = match installed.as_slice() {
            [] => "yolo has not installed anything yet".to_owned(),
            installed => format!("installed: {}", installed.join(", ")),
        };
        return Err(SetupError::NothingToRemove { what, installed });
    }
    for item in names.iter().flat_map(|name| named(&all, name)) {
        if !found.contains(item) {
            found.push(item.clone());
        }
    }
    let mut removed = Vec::new();
    for item in found {
        if remove_item(context, &item)? {
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
fn remove_item(context: &Context<'_>, item: &InstalledItem) -> Result<bool, SetupError> {
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
