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
    let mut described = Vec::new();
    let mut failed = None;
    for file in &args.files {
        match weights_file::describe(&found(file, &dirs)?) {
            Ok(description) => described.push(description),
            // The others are described first.
            Err(error) if !args.diff => failed = failed.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    match described.as_slice() {
        [a, b] if args.diff => compare(a, b, args, printer),
        all if args.json => printer.result(pretty(&all)),
        all => {
            let texts: Vec<String> = all.iter().map(|one| show::description(one, args.verbose)).collect();
            if !texts.is_empty() {
                printer.result(texts.join("\n\n"));
            }
        }
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    match described.into_iter().find(|one| one.refused.is_some()) {
        Some(Description { file, refused: Some(why), hint, .. }) => {
            Err(CommandError::Weights { what: format!("{} {why}", file.display()), hint })
        }
        _ => Ok(exit::SUCCESS),
    }
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
