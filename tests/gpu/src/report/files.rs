//! Writes a report into its folder, and reads one.

use std::path::Path;

use super::markdown::page;
use super::types::{Report, VERSION};
use crate::error::KitError;
use crate::redact::redacted;

/// Writes `report.json` and `report.md`, without anything that identifies the machine. Texts of `hidden` are
/// replaced by the names next to them.
///
/// # Errors
/// When the folder cannot be written.
pub fn write(report: &Report, folder: &Path, hidden: &[(String, &str)]) -> Result<(), KitError> {
    fs_err::create_dir_all(folder)?;
    let value = serde_json::to_value(report).map_err(std::io::Error::from)?;
    let value = redacted(&value, hidden);
    let report: Report = serde_json::from_value(value.clone()).map_err(std::io::Error::from)?;
    let text = serde_json::to_string_pretty(&value).map_err(std::io::Error::from)?;
    replace(&folder.join("report.json"), &(text + "\n"))?;
    replace(&folder.join("report.md"), &page(&report))?;
    Ok(())
}

/// Writes a file under another name first, so that it is complete or absent.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let part = path.with_extension("part");
    fs_err::write(&part, text)?;
    fs_err::rename(&part, path)
}

/// Reads a report.
///
/// # Errors
/// When the file cannot be read, or is not a report of this version.
pub fn read(path: &Path) -> Result<Report, KitError> {
    let text = fs_err::read_to_string(path)?;
    let invalid =
        |why: String| KitError::Invalid { what: "report of the GPU kit", path: path.to_owned(), why };
    let report: Report = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    if report.version != VERSION {
        return Err(invalid(format!("its version is {}, and this kit reads {VERSION}", report.version)));
    }
    Ok(report)
}
