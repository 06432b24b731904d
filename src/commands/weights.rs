//! `yolo weights`: shows what is in weights files, or how two differ.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use torch_checkpoint::{Problem, WeightsError};
use yolo_base::exit;

use crate::cli::WeightsArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, onnx_text, weights_text as show};
use crate::setup::installed_weights;
use crate::weights_file::onnx::{self, OnnxDescription};
use crate::weights_file::{self, Description};

/// The weights of a run folder, the best before the last.
const OF_RUN: [&str; 2] = ["weights/best.pt", "weights/last.pt"];

/// What is said about a file.
#[derive(Serialize)]
#[serde(untagged)]
enum Described {
    Weights(Box<Description>),
    Onnx(Box<OnnxDescription>),
}

impl Described {
    /// The content of a file decides, and its name only what is said about one that is neither.
    fn of(path: &Path) -> Result<Self, CommandError> {
        let error = match weights_file::describe(path) {
            Ok(found) => return Ok(Self::Weights(Box::new(found))),
            Err(error) => error,
        };
        let may_be_onnx = match error.problem() {
            Problem::Onnx => true,
            Problem::Io { .. } | Problem::NotAFile => false,
            _ => onnx::is_onnx(path),
        };
        if !may_be_onnx {
            return Err(unknown(error));
        }
        onnx::describe(path).map(|found| Self::Onnx(Box::new(found))).map_err(|why| CommandError::Weights {
            what: format!("{} {why}", path.display()),
            hint: Some("export or download it again".to_owned()),
        })
    }

    fn text(&self, verbose: bool) -> String {
        match self {
            Self::Weights(one) => show::description(one, verbose),
            Self::Onnx(one) => onnx_text::description(one, verbose),
        }
    }
}

/// The error for a file that cannot be described. This command reads more formats than the reader of checkpoints.
fn unknown(error: WeightsError) -> CommandError {
    match error.problem() {
        Problem::Text(_) | Problem::Unknown | Problem::EmptyZip | Problem::NoPickle(_) => {
            CommandError::Weights {
                what: error.to_string(),
                hint: Some(
                    "give a PyTorch checkpoint (.pt), a .safetensors file or an .onnx file".to_owned(),
                ),
            }
        }
        _ => error.into(),
    }
}

/// Describes or compares files, and returns the exit status.
pub(super) fn weights(args: &WeightsArgs, printer: &Printer) -> Result<u8, CommandError> {
    if args.diff && args.files.len() != 2 {
        return Err(CommandError::Usage {
            what: format!("--diff compares two files, not {}", args.files.len()),
            hint: "give two files: `yolo weights --diff A.pt B.pt`".to_owned(),
        });
    }
    let dirs = YoloDirs::from_env()?;
    let (mut described, mut errors) = (Vec::new(), Vec::new());
    for file in &args.files {
        let description = found(file, &dirs).and_then(|path| Described::of(&path));
        match description {
            Ok(description) => described.push(description),
            Err(error) => errors.push(error),
        }
    }
    // A comparison needs both files; otherwise what can be described is.
    match described.as_slice() {
        [Described::Weights(a), Described::Weights(b)] if args.diff => compare(a, b, args, printer),
        [Described::Onnx(a), Described::Onnx(b)] if args.diff => printer.result(match args.json {
            true => pretty(&json!({ "files": [a.file, b.file], "facts": onnx::diff(a, b) })),
            false => onnx_text::differences(a, b),
        }),
        [_, _] if args.diff => errors.push(CommandError::Failed {
            what: "an ONNX file cannot be compared with one of another format".to_owned(),
            hint: "compare two .onnx files, or two of the others".to_owned(),
        }),
        _ if args.diff => {}
        all if args.json => printer.result(pretty(&all)),
        [] => {}
        all => {
            let texts: Vec<String> = all.iter().map(|one| one.text(args.verbose)).collect();
            printer.result(texts.join("\n\n"));
        }
    }
    errors.extend(described.into_iter().filter_map(refusal));
    errors.iter().for_each(|error| printer.error(error));
    Ok(if errors.is_empty() { exit::SUCCESS } else { exit::FAILURE })
}

/// The error for a file that is described, but cannot be used.
fn refusal(file: Described) -> Option<CommandError> {
    let Described::Weights(file) = file else { return None };
    let what = format!("{} {}", file.file.display(), file.refused?);
    Some(CommandError::Weights { what, hint: file.hint })
}

fn compare(a: &Description, b: &Description, args: &WeightsArgs, printer: &Printer) {
    let (facts, tensors) = weights_file::diff(a, b);
    printer.result(match args.json {
        true => pretty(&json!({ "files": [a.file, b.file], "facts": facts, "tensors": tensors })),
        false => show::differences([&a.file, &b.file], &facts, tensors.as_ref(), args.verbose),
    });
}

fn pretty(value: &impl Serialize) -> String {
    // Serializing to memory fails only for maps with keys that are not text, of which there are none.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The file that an argument names: a file, the weights of a run folder, or installed weights.
fn found(argument: &Path, dirs: &YoloDirs) -> Result<PathBuf, CommandError> {
    if argument.is_dir() {
        return OF_RUN.iter().map(|name| argument.join(name)).find(|path| path.is_file()).ok_or_else(|| {
            CommandError::Failed {
                what: format!("{} is a folder without {}", argument.display(), OF_RUN.join(" and ")),
                hint: "give a weights file, or the folder of a run".to_owned(),
            }
        });
    }
    if !argument.exists()
        && let Some(installed) = installed_weights(argument, dirs)
    {
        return Ok(installed);
    }
    Ok(argument.to_owned())
}
