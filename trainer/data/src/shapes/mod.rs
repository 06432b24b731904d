//! The built-in data set: discs, squares, triangles, stars and rings on textured backgrounds, drawn by the
//! program, so that a first training run needs no download. It is the same to the byte on every platform:
//! drawing is integer arithmetic with our own random numbers, and files are BMP, whose bytes depend on no
//! compressor's version. The result is an ordinary YOLO folder that any other program can train on.

mod bmp;
mod canvas;
mod figure;
mod rng;
mod scene;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::error::DataError;
use crate::scan::Progress;
use rng::Rng;

/// Names of the classes; the index is the class.
pub const NAMES: [&str; 5] = ["disc", "square", "triangle", "star", "ring"];

/// The numbers that make the set what it is. Another value is another data set: raise `VERSION` with it.
pub(crate) struct Parameters {
    /// Side of the square images in pixels.
    pub(crate) side: usize,
    /// Images to train on.
    pub(crate) train: usize,
    /// Images to validate on.
    pub(crate) val: usize,
    /// Most objects in one image.
    pub(crate) objects: u32,
    /// Least and greatest diameter of an object in pixels.
    pub(crate) diameter: (i64, i64),
    /// One image in so many is background alone.
    pub(crate) empty_every: u32,
    /// Least part of an object, in per cent, that the border and later objects leave visible.
    pub(crate) visible_percent: i64,
    /// Start of the random numbers.
    pub(crate) seed: u64,
}

pub(crate) const PARAMETERS: Parameters = Parameters {
    side: 160,
    train: 512,
    val: 128,
    objects: 6,
    diameter: (14, 110),
    empty_every: 16,
    visible_percent: 55,
    seed: 0x59_4f_4c_4f,
};

/// Bytes of all files of the set, which a test counts.
pub const BYTES: u64 = 49_265_452;

/// Raised with every change that alters a byte of the set.
const VERSION: u32 = 1;
/// The file that says that a set is complete, and which.
const STAMP: &str = "shapes.stamp";
/// The data yaml's name.
const YAML: &str = "shapes.yaml";
const README: &str = "Shapes: the built-in data set of `yolo`, drawn by the program itself.\n\
Dedicated to the public domain (CC0-1.0): use it for anything.\n";

/// Makes the data set in `dir`, if it is not there, and returns the path of its yaml.
///
/// The set is written to a folder beside `dir` and renamed, so that `dir` is complete or absent.
///
/// # Errors
/// When the folder cannot be written, or `dir` holds something else.
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
    let fresh = tempfile::Builder::new()
        .prefix(".shapes-")
        .tempdir_in(parent)
        .map_err(DataError::io("create a folder in", parent))?;
    let set = fresh.path().join("set");
    write_set(&set, progress)?;
    if dir.exists() {
        // Moved aside first: a rename cannot replace a folder that holds files. It goes with `fresh`.
        let old = fresh.path().join("old");
        std::fs::rename(dir, &old).map_err(DataError::io("move aside", dir))?;
    }
    match std::fs::rename(&set, dir) {
        Ok(()) => Ok(yaml),
        // Another process made the set meanwhile; it is the same.
        Err(_) if is_complete(dir) => Ok(yaml),
        Err(error) => Err(DataError::io("create", dir)(error)),
    }
}

/// Whether `dir` holds this version of the set, with every image and label in its place.
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

/// Whether `dir` is empty, or a set that this program made.
fn may_replace(dir: &Path) -> bool {
    dir.join(STAMP).is_file() || std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// The stamp without the hash.
fn stamp_start() -> String {
    format!("yolo shapes {VERSION} ")
}

/// Writes the whole set into a folder that does not exist yet.
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
