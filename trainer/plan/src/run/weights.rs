//! The files that `--weights` names, and the strides that follow from their names alone.

use std::path::PathBuf;

use crate::dataset::Places;
use crate::error::PlanError;
use crate::model::builtin;

/// The file that a word of `--weights` means.
///
/// # Errors
/// When it does not exist; the names of YOLOv5's own weights get a message of their own.
pub(super) fn find(word: &str, places: &Places) -> Result<PathBuf, PlanError> {
    let path = places.working_dir.join(word);
    if path.is_file() {
        return Ok(path);
    }
    if path.is_dir() {
        return Err(PlanError::new(format!("--weights {word} is a folder, not a file of weights"))
            .with_hint("name the file in it, for example weights/best.pt of a run folder"));
    }
    if is_published(word) {
        return Err(PlanError::new(format!(
            "the weights {word} are not on this machine, and fetching YOLOv5's weights is not built yet"
        ))
        .with_hint("name a file that you have, or train from scratch: --weights '' --cfg yolov5n"));
    }
    Err(PlanError::new(format!("there are no weights {word}: {} does not exist", path.display()))
        .with_hint("name a .pt or .safetensors file, or train from scratch: --weights '' --cfg yolov5n"))
}

/// Whether a word is a bare name under which YOLOv5 publishes detection weights.
fn is_published(word: &str) -> bool {
    word.strip_suffix(".pt").is_some_and(|name| builtin::names().iter().any(|known| known == name))
}

/// The largest stride of a model that only its weights describe, guessed from the name: the
/// published models ending in 6 have stride 64. The trainer knows better once it read them.
pub(super) fn stride(path: &std::path::Path) -> usize {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let is_p6 = builtin::names().iter().any(|name| name.ends_with('6') && stem.starts_with(name.as_str()));
    if is_p6 { 64 } else { 32 }
}
