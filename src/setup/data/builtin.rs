//! Built-in data sets: they are generated instead of downloaded.

use std::path::PathBuf;

use yolo_plan::dataset;

use crate::setup::error::SetupError;

/// Generates the built-in data set that `data` names, or the files that it lacks. Returns its folder
/// if the data set was not there before; any other `data` is left alone.
///
/// # Errors
/// When a file cannot be written.
pub fn make_builtin(data: Option<&str>, places: &dataset::Places) -> Result<Option<PathBuf>, SetupError> {
    let Some(name) = data.filter(|name| dataset::is_builtin(name)) else { return Ok(None) };
    let yaml = places.builtin_yaml(name);
    let is_new = !yaml.exists();
    let folder = yaml.parent().unwrap_or(&places.data_sets);
    yolo_data::shapes::generate(folder, &|_| ())?;
    Ok(is_new.then(|| folder.to_owned()))
}
