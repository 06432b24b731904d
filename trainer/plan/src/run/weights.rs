//! The files that `--weights` names, and the strides that follow from their names alone.

use std::path::{Path, PathBuf};

use super::{Need, PlanContext};
use crate::error::PlanError;
use crate::model::{MIN_STRIDE, builtin};

/// The default of YOLOv5's val.py and detect.py.
const DEFAULT: &str = "yolov5s.pt";

/// An argument of `--weights`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsName {
    /// Weights that YOLOv5 publishes, by their name without `.pt`.
    Published(String),
    /// A URL.
    Address(String),
    /// Anything else: a path.
    Path(PathBuf),
}

impl WeightsName {
    /// Parses an argument: `yolov5s`, `yolov5s.pt`, `https://…`, `path/to/best.pt`.
    pub fn parse(argument: &str) -> Self {
        let name = argument.strip_suffix(".pt").unwrap_or(argument);
        if builtin::names().iter().any(|known| known == name) {
            Self::Published(name.to_owned())
        } else if argument.contains("://") {
            Self::Address(argument.to_owned())
        } else {
            Self::Path(PathBuf::from(argument))
        }
    }
}

/// The file that an argument of `--weights` names. `None` if it must be fetched first, which is added
/// to `missing`.
///
/// # Errors
/// When there is no such file and nothing to fetch.
pub(super) fn find(
    argument: &str,
    context: &PlanContext,
    missing: &mut Vec<Need>,
) -> Result<Option<PathBuf>, PlanError> {
    const HINT: &str = "name a .pt or .safetensors file, a URL, or a pretrained model such as yolov5n.pt";
    if argument.is_empty() {
        return Err(PlanError::usage("--weights is empty: there is no model").with_hint(HINT));
    }
    let path = context.places.working_dir.join(argument);
    if path.is_file() {
        return Ok(Some(path));
    }
    if path.is_dir() {
        return Err(PlanError::new(format!("--weights {argument} is a folder, not a weights file"))
            .with_hint("name a file in it, for example weights/best.pt in a run folder"));
    }
    if let Some(fetched) = context.fetched.get(argument) {
        return Ok(Some(fetched.clone()));
    }
    if let WeightsName::Path(_) = WeightsName::parse(argument) {
        return Err(PlanError::new(format!("--weights {argument}: {} does not exist", path.display()))
            .with_hint(HINT));
    }
    missing.push(Need::Weights(argument.to_owned()));
    Ok(None)
}

/// The files that the arguments of `--weights` name, YOLOv5's default if there are none. Those that must be fetched
/// first are added to `missing`.
///
/// # Errors
/// As [`find`].
pub(super) fn find_all(
    arguments: &[String],
    context: &PlanContext,
    missing: &mut Vec<Need>,
) -> Result<Vec<PathBuf>, PlanError> {
    let default = [DEFAULT.to_owned()];
    let arguments = if arguments.is_empty() { &default } else { arguments };
    let found = arguments.iter().map(|argument| find(argument, context, missing));
    Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The largest of [`largest_stride`] of several files.
pub(super) fn largest_stride_of(paths: &[PathBuf]) -> usize {
    paths.iter().map(|path| largest_stride(path)).max().unwrap_or(MIN_STRIDE)
}

/// The largest stride of a model that only its weights describe, guessed from the name: the
/// pretrained models ending in 6 have stride 64. The trainer reads the real one from the file.
pub(super) fn largest_stride(path: &Path) -> usize {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let is_p6 = builtin::names().iter().any(|name| name.ends_with('6') && stem.starts_with(name.as_str()));
    if is_p6 { 64 } else { MIN_STRIDE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_urls_and_paths_are_distinguished() {
        assert_eq!(WeightsName::parse("yolov5s.pt"), WeightsName::Published("yolov5s".into()));
        assert_eq!(WeightsName::parse("yolov5x6"), WeightsName::Published("yolov5x6".into()));
        assert_eq!(WeightsName::parse("https://h/best.pt"), WeightsName::Address("https://h/best.pt".into()));
        assert_eq!(WeightsName::parse("runs/best.pt"), WeightsName::Path("runs/best.pt".into()));
    }

    #[test]
    fn the_largest_stride_is_guessed_from_the_name() {
        let stride = |name: &str| largest_stride(Path::new(name));
        assert_eq!([stride("yolov5n6.pt"), stride("a/yolov5s.pt"), stride("best.pt")], [64, 32, 32]);
    }
}
