//! Lists the images of a split and finds the label file of an image (spec §7). A split is given by folders,
//! which are searched recursively, txt files that list paths, and patterns. The images are sorted as YOLOv5
//! sorts them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use yolo_plan::dataset::{is_image, path_in_list};

use crate::error::DataError;

/// Lists the images of a split, sorted by path.
///
/// A root is a folder (searched recursively), an image, a txt file of paths, or a pattern with `*`, `?`, `[…]` or
/// `**`.
///
/// # Errors
/// If a root does not exist or cannot be read.
pub fn list_images(roots: &[PathBuf], split: &str) -> Result<Vec<PathBuf>, DataError> {
    let mut images = Vec::new();
    for root in roots {
        if root.is_dir() {
            walk(root, &mut BTreeSet::new(), &mut images)?;
        } else if root.is_file() {
            if is_image(root) {
                images.push(root.clone());
            } else {
                read_list(root, &mut images)?;
            }
        } else {
            expand(root, split, &mut images)?;
        }
    }
    // Python sorts paths as strings, not component by component, so `a-b/x` comes before `a/x`.
    images.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(images)
}

/// The label file of an image: the last `images` folder of its path becomes `labels`, its extension `txt`.
pub fn label_path(image: &Path) -> PathBuf {
    let mut parts: Vec<_> = image.components().collect();
    let folders = parts.len().saturating_sub(1);
    let labels = std::path::Component::Normal("labels".as_ref());
    // YOLOv5 replaces `/images/`, so the first component of a path does not count.
    if let Some(at) = (1..folders).rev().find(|&at| parts[at].as_os_str() == "images") {
        parts[at] = labels;
    }
    parts.iter().collect::<PathBuf>().with_extension("txt")
}

/// Adds all images below a folder. Symbolic links are followed, but each real folder is read only once.
/// Names that start with a dot are skipped, as in Python's `glob`.
fn walk(folder: &Path, seen: &mut BTreeSet<PathBuf>, images: &mut Vec<PathBuf>) -> Result<(), DataError> {
    let real = folder.canonicalize().map_err(DataError::io("open", folder))?;
    if !seen.insert(real) {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).map_err(DataError::io("list", folder))? {
        let entry = entry.map_err(DataError::io("list", folder))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(DataError::io("read the type of", &path))?;
        if kind.is_dir() || (kind.is_symlink() && path.is_dir()) {
            walk(&path, seen, images)?;
        } else if is_image(&path) {
            images.push(path);
        }
    }
    Ok(())
}

/// Adds the images of a list file, one path per line.
fn read_list(list: &Path, images: &mut Vec<PathBuf>) -> Result<(), DataError> {
    let text = yolo_base::text::read(list).map_err(DataError::io("read", list))?;
    let folder = list.parent().unwrap_or(Path::new(""));
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Relative paths are relative to the working folder of this process.
        let path = path_in_list(line, folder, Path::new(""));
        if is_image(&path) {
            images.push(path);
        }
    }
    Ok(())
}

/// Adds the images that match a pattern. A pattern without a match is an error, like a folder that does not
/// exist.
fn expand(pattern: &Path, split: &str, images: &mut Vec<PathBuf>) -> Result<(), DataError> {
    let missing = || DataError::Missing { split: split.to_owned(), path: pattern.to_path_buf() };
    let text = pattern.to_str().ok_or_else(missing)?;
    if !text.contains(['*', '?', '[']) {
        return Err(missing());
    }
    let matches = glob::glob(text).map_err(|error| DataError::Pattern {
        split: split.to_owned(),
        pattern: text.to_owned(),
        reason: error.to_string(),
    })?;
    let before = images.len();
    for path in matches {
        let path = path.map_err(|error| {
            let path = error.path().to_path_buf();
            DataError::Io { action: "list", path, source: error.into() }
        })?;
        if path.is_dir() {
            walk(&path, &mut BTreeSet::new(), images)?;
        } else if is_image(&path) {
            images.push(path);
        }
    }
    if images.len() == before { Err(missing()) } else { Ok(()) }
}
