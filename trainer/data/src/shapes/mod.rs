//! Generates the built-in data set: discs, squares, triangles, stars and rings on textured backgrounds, so
//! that a first training run needs no download. Its bytes are the same on every platform: drawing uses
//! integer arithmetic and its own random numbers, and BMP files depend on no compressor. The result is an
//! ordinary YOLO data set that other programs can train on.

mod bmp;
mod canvas;
mod figure;
mod parameters;
mod rng;
mod scene;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::error::DataError;
use crate::scan::Progress;
use parameters::PARAMETERS;
use rng::Rng;

/// The class names, by class index.
pub const NAMES: [&str; 5] = ["disc", "square", "triangle", "star", "ring"];

/// The size of all files in bytes; a test verifies it.
pub const BYTES: u64 = 49_265_452;

/// Must be incremented with every change to the bytes of the set.
const VERSION: u32 = 1;
/// The file that marks a complete set and identifies it.
const STAMP: &str = "shapes.stamp";
/// The name of the data YAML.
const YAML: &str = "shapes.yaml";
const README: &str = "Shapes: the built-in data set of `yolo`, drawn by the program itself.\n\
Dedicated to the public domain (CC0-1.0): use it for anything.\n";

/// Generates the data set in `dir` unless it is there, and returns the path of its yaml.
///
/// The set is written to a staging folder next to `dir` and renamed, so `dir` is complete or absent.
///
/// # Errors
/// If the folder cannot be written, or `dir` contains other files.
pub fn generate(dir: &Path, progress: &(dyn Fn(Progress) + Sync)) -> Result<PathBuf, DataError> {
    let yaml = dir.join(YAML);
    if is_complete(dir) {
        return Ok(yaml);
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(DataError::io("create", parent))?;
    if dir.exists() && !may_replace(dir) {
        return Err(DataError::Occupied { path: dir.to_path_buf() });
    }
    let staging = tempfile::Builder::new()
        .prefix(".shapes-")
        .tempdir_in(parent)
        .map_err(DataError::io("create a folder in", parent))?;
    let set = staging.path().join("set");
    write_set(&set, progress)?;
    if dir.exists() {
        // A rename cannot replace a folder with files, so the old one moves to the staging folder and is
        // deleted with it.
        let old = staging.path().join("old");
        std::fs::rename(dir, &old).map_err(DataError::io("move aside", dir))?;
    }
    match std::fs::rename(&set, dir) {
        Ok(()) => Ok(yaml),
        // Another process has generated the same set in the meantime.
        Err(_) if is_complete(dir) => Ok(yaml),
        Err(error) => Err(DataError::io("create", dir)(error)),
    }
}

/// Whether `dir` has this version of the set with all images and labels.
fn is_complete(dir: &Path) -> bool {
    let Ok(stamp) = std::fs::read_to_string(dir.join(STAMP)) else { return false };
    let count = |folder: &str, extension: &str| {
        std::fs::read_dir(dir.join(folder)).map_or(0, |entries| {
            entries.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == extension)).count()
        })
    };
    stamp.starts_with(&stamp_start())
        && dir.join(YAML).is_file()
        && [("train", PARAMETERS.train), ("val", PARAMETERS.val)].into_iter().all(|(split, images)| {
            count(&format!("images/{split}"), "bmp") == images
                && count(&format!("labels/{split}"), "txt") == images
        })
}

/// Whether `dir` contains a generated set, complete or not.
pub fn is_generated(dir: &Path) -> bool {
    dir.join(STAMP).is_file()
}

/// Whether `dir` is empty or contains a generated set.
fn may_replace(dir: &Path) -> bool {
    is_generated(dir) || std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// The stamp without the hash.
fn stamp_start() -> String {
    format!("yolo shapes {VERSION} ")
}

/// Writes the set into a new folder.
fn write_set(dir: &Path, progress: &(dyn Fn(Progress) + Sync)) -> Result<(), DataError> {
    let splits = [("train", PARAMETERS.train, 0), ("val", PARAMETERS.val, PARAMETERS.train)];
    let total = PARAMETERS.train + PARAMETERS.val;
    let done = AtomicUsize::new(0);
    let mut hash = Sha256::new();
    for (split, count, first) in splits {
        let images = dir.join("images").join(split);
        let labels = dir.join("labels").join(split);
        for folder in [&images, &labels] {
            std::fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
        }
        let sums = (0..count)
            .into_par_iter()
            .map(|index| {
                let scene = scene::draw(&mut Rng::new(PARAMETERS.seed, (first + index) as u64), &PARAMETERS);
                let image = bmp::encode(&scene.image);
                let mut label = String::new();
                for object in &scene.objects {
                    // Writing to a string cannot fail.
                    let _ = writeln!(label, "{}", object.label(PARAMETERS.side as i64));
                }
                write(&images.join(format!("{index:04}.bmp")), &image)?;
                write(&labels.join(format!("{index:04}.txt")), label.as_bytes())?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                progress(Progress { done, total });
                Ok(<[u8; 32]>::from(Sha256::new().chain_update(&image).chain_update(&label).finalize()))
            })
            .collect::<Result<Vec<_>, DataError>>()?;
        sums.iter().for_each(|sum| hash.update(sum));
    }
    let mut yaml = String::from(
        "# The built-in data set of `yolo`; `path` is this file's folder.\npath: .\ntrain: images/train\nval: images/val\nnames:\n",
    );
    for (class, name) in NAMES.iter().enumerate() {
        let _ = writeln!(yaml, "  {class}: {name}");
    }
    write(&dir.join(YAML), yaml.as_bytes())?;
    write(&dir.join("README.txt"), README.as_bytes())?;
    let mut stamp = stamp_start();
    for byte in hash.finalize() {
        let _ = write!(stamp, "{byte:02x}");
    }
    stamp.push('\n');
    write(&dir.join(STAMP), stamp.as_bytes())
}

/// Writes one file.
fn write(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    std::fs::write(path, bytes).map_err(DataError::io("write", path))
}
