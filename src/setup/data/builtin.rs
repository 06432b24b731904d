//! Built-in data sets: they are generated instead of downloaded.

use std::fs;
use std::path::{Path, PathBuf};

use yolo_plan::dataset;

use crate::setup::context::Context;
use crate::setup::error::SetupError;
use crate::setup::noted::noted;
use crate::undo::Entry;

/// Generates the built-in data set that `data` names, or the files that it lacks. Returns its folder
/// if the data set was not there before; any other `data` is left alone.
///
/// # Errors
/// When a file cannot be written.
pub fn make_builtin(
    data: Option<&str>,
    places: &dataset::Places,
    context: &Context<'_>,
) -> Result<Option<PathBuf>, SetupError> {
    let Some(name) = data.filter(|name| dataset::is_builtin(name)) else { return Ok(None) };
    let yaml = places.builtin_yaml(name);
    let is_new = !yaml.exists();
    let folder = yaml.parent().unwrap_or(&places.data_sets);
    generate(name, folder, is_new, context)?;
    Ok(is_new.then(|| folder.to_owned()))
}

/// Generates a built-in data set, and notes it if it is new.
pub(in crate::setup) fn generate(
    name: &str,
    folder: &Path,
    is_new: bool,
    context: &Context<'_>,
) -> Result<(), SetupError> {
    let make = || yolo_data::shapes::generate(folder, &|_| ()).map(drop).map_err(SetupError::from);
    if !is_new {
        return make();
    }
    // Without a final slash.
    let folder: PathBuf = folder.components().collect();
    let what = format!("created the data set {name} in {}", folder.display());
    let describe = |entry: &mut Entry| stays(entry, &folder, name);
    noted((context.dirs, context.progress), what, describe, make)
}

/// Notes that a data set is never undone.
pub(super) fn stays(entry: &mut Entry, folder: &Path, name: &str) -> std::io::Result<()> {
    entry.place(folder);
    entry.stays("data sets are data, which undo never deletes", Some(format!("yolo setup --remove {name}")));
    Ok(())
}

/// The built-in data sets in the folder of all data sets, by name and directory.
pub(in crate::setup) fn generated_in(data_sets: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(data_sets) else { return Vec::new() };
    let named =
        entries.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    named
        .filter(|(name, folder)| dataset::is_builtin(name) && yolo_data::shapes::is_generated(folder))
        .collect()
}
