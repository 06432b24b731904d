//! `yolo doctor --compare`: what differs between recorded machines, and which differences matter. The
//! exit status is 1 if a difference stops a run on all of them. `compare.schema.json` describes the
//! JSON; tests validate real output against it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use yolo_base::exit;
use yolo_checks::compare::{Comparison, Machine};
use yolo_checks::{Host, Intent, Status};

use super::intent;
use super::replay::replay;
use crate::cli::DoctorArgs;
use crate::error::CommandError;
use crate::printer::{Printer, comparison_text};

/// Incremented when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Compares the recordings and returns the exit status.
pub(super) fn compare(args: &DoctorArgs, printer: &Printer) -> Result<u8, CommandError> {
    refuse_repeated(&args.compare)?;
    let recorded: Vec<(Host, Option<Intent>)> =
        args.compare.iter().map(|file| replay(file)).collect::<Result<_, _>>()?;
    // Options after `--` are those of all machines.
    let given = (!args.run.is_empty()).then(|| intent::of_arguments(&args.run));
    let names = names(&args.compare);
    let (hosts, intents): (Vec<Host>, Vec<Intent>) = recorded
        .into_iter()
        .map(|(host, intent)| (host, given.clone().or(intent).unwrap_or_default()))
        .unzip();
    let machines: Vec<Machine<'_>> = names
        .iter()
        .zip(&hosts)
        .zip(&intents)
        .map(|((name, host), intent)| Machine { name, host, intent })
        .collect();
    let comparison = yolo_checks::compare::compare(&machines);
    printer.result(if args.json {
        format!("{:#}", of(&comparison))
    } else {
        comparison_text(&comparison, args.verbose)
    });
    Ok(if comparison.count(Status::Error) > 0 { exit::FAILURE } else { exit::SUCCESS })
}

/// The comparison for programs.
fn of(comparison: &Comparison) -> Value {
    json!({
        "schema": SCHEMA,
        "yolo": env!("CARGO_PKG_VERSION"),
        "summary": {
            "errors": comparison.count(Status::Error),
            "warnings": comparison.count(Status::Warning),
            "infos": comparison.count(Status::Info),
        },
        "machines": comparison.machines,
        "differences": comparison.differences,
        "findings": comparison.findings,
        "shared_findings": comparison.shared_findings,
        "equal": comparison.equal,
        "unknown": comparison.unknown,
    })
}

/// What the output calls the machines: the names of their files, with their folders if two files have
/// the same name.
fn names(files: &[PathBuf]) -> Vec<String> {
    let short = files.iter().map(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
    let short: Vec<String> = short.collect::<Option<_>>().unwrap_or_default();
    if short.iter().collect::<BTreeSet<_>>().len() == files.len() {
        return short;
    }
    files.iter().map(|file| file.display().to_string()).collect()
}

/// A file that is named twice, by any path, is a mistake.
fn refuse_repeated(files: &[PathBuf]) -> Result<(), CommandError> {
    // A file that does not exist is reported when it is read.
    let place = |file: &Path| std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    for (number, file) in files.iter().enumerate() {
        if let Some(first) = files[..number].iter().find(|first| place(first) == place(file)) {
            return Err(CommandError::Usage {
                what: if first == file {
                    format!("--compare names {} twice", file.display())
                } else {
                    format!("--compare names one file twice: {} is {}", file.display(), first.display())
                },
                hint: "record each machine in a file of its own with `yolo doctor --record FILE`".to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_shown_only_where_they_tell_files_apart() {
        let of = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["one/a.json", "two/b.json"]), ["a.json", "b.json"]);
        assert_eq!(of(&["one/a.json", "two/a.json"]), ["one/a.json", "two/a.json"]);
        assert_eq!(of(&["a.json", "one/b.json", "two/b.json"]), ["a.json", "one/b.json", "two/b.json"]);
    }
}
