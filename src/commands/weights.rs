//! `yolo weights`: shows what is in weights files, or how two differ.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use yolo_base::exit;

use crate::cli::WeightsArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, weights_text as show};
use crate::setup::installed_weights;
use crate::weights_file::{self, Description};

/// The weights of a run folder, the best before the last.
const OF_RUN: [&str; 2] = ["weights/best.pt", "weights/last.pt"];

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
        let description = found(file, &dirs).and_then(|path| Ok(weights_file::describe(&path)?));
        match description {
            Ok(description) => described.push(description),
            Err(error) => errors.push(error),
        }
    }
    // A comparison needs both files; otherwise what can be described is.
    match described.as_slice() {
        [a, b] if args.diff => compare(a, b, args, printer),
        _ if args.diff => {}
        all if args.json => printer.result(pretty(&all)),
        [] => {}
        all => {
            let texts: Vec<String> = all.iter().map(|one| show::description(one, args.verbose)).collect();
            printer.result(texts.join("\n\n"));
        }
    }
    errors.extend(described.into_iter().filter_map(refusal));
    errors.iter().for_each(|error| printer.error(error));
    Ok(if errors.is_empty() { exit::SUCCESS } else { exit::FAILURE })
}

/// The error for a file that is described, but cannot be used.
fn refusal(file: Description) -> Option<CommandError> {
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
