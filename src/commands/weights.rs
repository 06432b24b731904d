//! `yolo weights`: shows what is in weights files, or how two differ.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use torch_checkpoint::{Problem, WeightsError};
use yolo_base::{Hint as _, exit};

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
    Unknown(Unknown),
}

/// A file that is not described.
#[derive(Serialize)]
struct Unknown {
    /// As the command line names it.
    file: PathBuf,
    /// Why not.
    error: String,
    /// What to do next.
    hint: Option<String>,
    #[serde(skip)]
    said: CommandError,
}

impl Unknown {
    fn new(file: &Path, said: CommandError) -> Self {
        let hint = said.hint().map(Cow::into_owned);
        Self { file: file.to_owned(), error: said.to_string(), hint, said }
    }
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

    /// The text on stdout; `None` of a file about which there is only an error.
    fn text(&self, verbose: bool) -> Option<String> {
        Some(match self {
            Self::Weights(one) => show::description(one, verbose),
            Self::Onnx(one) => onnx_text::description(one, verbose),
            Self::Unknown(_) => return None,
        })
    }
}

/// The error for a file that cannot be described. This command reads more formats than the reader of checkpoints.
fn unknown(error: WeightsError) -> CommandError {
    let what = match error.problem() {
        Problem::Unknown => {
            let file = error.path().display();
            format!("{file} is neither a PyTorch checkpoint, a safetensors file nor an ONNX file")
        }
        Problem::Text(_) | Problem::EmptyZip | Problem::NoPickle(_) => error.to_string(),
        _ => return error.into(),
    };
    let hint = "give a PyTorch checkpoint (.pt), a .safetensors file or an .onnx file";
    CommandError::Weights { what, hint: Some(hint.to_owned()) }
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
    let described: Vec<Described> = args
        .files
        .iter()
        .map(|file| {
            let described = found(file, &dirs).and_then(|path| Described::of(&path));
            described.unwrap_or_else(|error| Described::Unknown(Unknown::new(file, error)))
        })
        .collect();
    let mut errors = Vec::new();
    // A comparison needs both files; otherwise what can be described is.
    match described.as_slice() {
        [Described::Weights(a), Described::Weights(b)] if args.diff => compare(a, b, args, printer),
        [Described::Onnx(a), Described::Onnx(b)] if args.diff => compare_onnx(a, b, args, printer),
        [Described::Unknown(_), _] | [_, Described::Unknown(_)] if args.diff => {}
        _ if args.diff => errors.push(CommandError::Failed {
            what: "an ONNX file cannot be compared with one of another format".to_owned(),
            hint: "compare two .onnx files, or two of the others".to_owned(),
        }),
        all if args.json => printer.result(pretty(&all)),
        all => {
            let texts: Vec<String> = all.iter().filter_map(|one| one.text(args.verbose)).collect();
            if !texts.is_empty() {
                printer.result(texts.join("\n\n"));
            }
        }
    }
    errors.extend(described.into_iter().filter_map(refusal));
    errors.iter().for_each(|error| printer.error(error));
    Ok(if errors.is_empty() { exit::SUCCESS } else { exit::FAILURE })
}

/// The error for a file that is not described, or that is and cannot be used.
fn refusal(file: Described) -> Option<CommandError> {
    match file {
        Described::Unknown(file) => Some(file.said),
        Described::Onnx(_) => None,
        Described::Weights(file) => {
            let what = format!("{} {}", file.file.display(), file.refused?);
            Some(CommandError::Weights { what, hint: file.hint })
        }
    }
}

fn compare(a: &Description, b: &Description, args: &WeightsArgs, printer: &Printer) {
    let (facts, tensors) = weights_file::diff(a, b);
    printer.result(match args.json {
        true => pretty(&json!({ "files": [a.file, b.file], "facts": facts, "tensors": tensors })),
        false => show::differences([&a.file, &b.file], &facts, tensors.as_ref(), args.verbose),
    });
}

fn compare_onnx(a: &OnnxDescription, b: &OnnxDescription, args: &WeightsArgs, printer: &Printer) {
    let (facts, tensors) = onnx::diff(a, b);
    printer.result(match args.json {
        true => pretty(&json!({ "files": [a.file, b.file], "facts": facts, "tensors": tensors })),
        false => show::differences([&a.file, &b.file], &facts, Some(&tensors), args.verbose),
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
