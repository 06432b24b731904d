//! A command line that names no command to run: clap answers `--help` and `--version`, and says what is wrong with an
//! invalid one. Programs that asked for the events of a run with `--json` are told the latter as an event, too.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use yolo_plan::launcher::Layout;

use super::run::not_started;
use crate::error::CommandError;
use crate::in_wsl;
use crate::printer::{Printer, RunEvents};

/// Prints what clap says, and returns the exit status. `arguments` are those of the command line.
pub(super) fn answered(answer: clap::Error, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let answer = with_tip(answer, command(&arguments));
    let printer = Printer::new(false);
    if answer.use_stderr() && wants_events(&arguments) {
        not_started(Some(&RunEvents::new(&printer)), in_words(&answer));
    }
    printer.command_line(&answer);
    ExitCode::from(in_wsl::exit_status(u8::try_from(answer.exit_code()).unwrap_or(yolo_base::exit::USAGE)))
}

/// The command among these arguments: the first that is neither an option nor the value of `--distribution`.
fn command(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
    loop {
        match words.next()? {
            "--distribution" => drop(words.next()),
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
}

/// Says which option names a file that stands alone: `yolo export best.pt`.
fn with_tip(mut answer: clap::Error, command: Option<&str>) -> clap::Error {
    let takes_data = matches!(command, Some("train" | "val" | "bench"));
    let takes_weights = takes_data || command == Some("export");
    if answer.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(file)) = answer.get(ContextKind::InvalidArg)
        && let Some(option) = match Path::new(file).extension().and_then(|extension| extension.to_str()) {
            Some("pt" | "safetensors") if takes_weights => Some("--weights"),
            Some("yaml" | "yml") if takes_data => Some("--data"),
            _ => None,
        }
    {
        let tip = format!("to use this file, write '{option} {file}'");
        answer.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    answer
}

/// Whether these arguments ask for the events of a run. Of several ranks, the first reports.
fn wants_events(arguments: &[OsString]) -> bool {
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let arguments = &arguments[..end];
    let reports = match command(arguments) {
        Some("train" | "val" | "predict" | "detect" | "export") => true,
        Some("rank") => !Layout::read(&|name| std::env::var(name).ok()).is_ok_and(|layout| layout.rank > 0),
        _ => false,
    };
    reports && arguments.iter().any(|argument| argument == "--json")
}

/// The parts of clap's message: what is wrong, and its tip or how to get help.
fn in_words(answer: &clap::Error) -> CommandError {
    let text = answer.to_string();
    let mut parts = text.trim().split("\n\n").map(str::trim);
    let what = parts.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what).to_owned();
    let others: Vec<&str> = parts.collect();
    let tip = others.iter().find_map(|part| part.strip_prefix("tip: "));
    let hint = tip.or(others.last().copied()).unwrap_or_default().to_owned();
    CommandError::Usage { what, hint }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use yolo_base::Hint as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn only_commands_with_events_report_them() {
        let wants = |line: &str| wants_events(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(wants("train --epochs abc --json") && wants("--quiet val --json --bogus"));
        for other in ["train --epochs abc", "bench --json --bogus", "--json", "doctor -- train --json"] {
            assert!(!wants(other), "{other}");
        }
    }

    #[test]
    fn a_message_of_clap_has_a_reason_and_a_hint() {
        let words = |line: &str| {
            let answer = Cli::try_parse_from(line.split(' ')).unwrap_err();
            let error = in_words(&with_tip(answer, line.split(' ').nth(1)));
            (error.to_string(), error.hint().unwrap_or_default().into_owned())
        };
        let (what, hint) = words("yolo train --epochs abc");
        assert_eq!(what, "invalid value 'abc' for '--epochs <N>': not a whole number");
        assert_eq!(hint, "For more information, try '--help'.");
        let (what, hint) = words("yolo train --epohcs 3");
        assert_eq!(what, "unexpected argument '--epohcs' found");
        assert_eq!(hint, "a similar argument exists: '--epochs'");
        let (what, hint) = words("yolo export best.pt");
        assert_eq!(what, "unexpected argument 'best.pt' found");
        assert_eq!(hint, "to use this file, write '--weights best.pt'");
        let (_, hint) = words("yolo train --epochs 3 coco.yaml");
        assert_eq!(hint, "to use this file, write '--data coco.yaml'");
        let (_, hint) = words("yolo export coco.yaml");
        assert_eq!(hint, "For more information, try '--help'.");
    }
}
