//! The files that `--weights` names, and the strides that follow from their names alone.

use std::path::{Path, PathBuf};

use super::{Need, PlanContext};
use crate::error::PlanError;
use crate::model::builtin;

/// Where the weights of one argument are.
#[derive(Debug)]
pub(super) enum Weights {
    File(PathBuf),
    Missing(Need),
}

/// Finds the file that an argument of `--weights` names.
///
/// # Errors
/// When there is no such file and nothing to fetch.
pub(super) fn find(argument: &str, context: &PlanContext) -> Result<Weights, PlanError> {
    let path = context.places.working_dir.join(argument);
    if path.is_file() {
        return Ok(Weights::File(path));
    }
    if path.is_dir() {
        return Err(PlanError::new(format!("--weights {argument} is a folder, not a weights file"))
            .with_hint("name a file in it, for example weights/best.pt in a run folder"));
    }
    if let Some(fetched) = context.fetched.get(argument) {
        return Ok(Weights::File(fetched.clone()));
    }
    if is_published(argument) || argument.contains("://") {
        return Ok(Weights::Missing(Need::Weights(argument.to_owned())));
    }
    Err(PlanError::new(format!("--weights {argument}: {} does not exist", path.display()))
        .with_hint("name a .pt or .safetensors file, or train from scratch: --weights '' --cfg yolov5n"))
}

/// Whether an argument is a name under which YOLOv5 publishes weights: `yolov5s` or `yolov5s.pt`.
fn is_published(argument: &str) -> bool {
    let name = argument.strip_suffix(".pt").unwrap_or(argument);
    builtin::names().iter().any(|known| known == name)
}

/// The largest stride of a model that only its weights describe, guessed from the name: the
/// published models ending in 6 have stride 64. The trainer reads the real one from the file.
pub(super) fn stride(path: &Path) -> usize {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let is_p6 = builtin::names().iter().any(|name| name.ends_with('6') && stem.starts_with(name.as_str()));
    if is_p6 { 64 } else { 32 }
}
