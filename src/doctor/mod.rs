//! `yolo doctor`: has the facts of this machine, or of a recorded one, judged, and shows the findings
//! as text for people or as JSON for programs.

mod intent;
mod json;
mod text;

use std::path::Path;
use std::process::ExitCode;

use yolo_checks::{Host, Intent, Status, judge};

use crate::cli::DoctorArgs;
use crate::error::CommandError;
use crate::host;
use crate::places::Places;
use crate::printer::Printer;

/// Looks at this machine. The exit code is 1 when an error was found.
pub(crate) fn doctor(args: &DoctorArgs, printer: &Printer) -> Result<ExitCode, CommandError> {
    let (host, intent) = subject(args)?;
    let findings = judge(&host, &intent);
    if let Some(file) = &args.record {
        record(&host, &intent, file)?;
        printer.say(format_args!("recorded in {}", file.display()));
    }
    printer.result(if args.json { json::render(&findings) } else { text::render(&findings, args.verbose) });
    let failed = findings.iter().any(|finding| finding.status == Status::Error);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The host to judge and the run that is meant: words after `--` win over those of a recording.
fn subject(args: &DoctorArgs) -> Result<(Host, Intent), CommandError> {
    let (host, recorded) = match &args.replay {
        Some(file) => replay(file)?,
        None => (host::this_host(&Places::from_env()?), None),
    };
    let intent = if args.run.is_empty() { recorded.unwrap_or_default() } else { intent::of_words(&args.run) };
    Ok((host, intent))
}

fn replay(file: &Path) -> Result<(Host, Option<Intent>), CommandError> {
    let text = std::fs::read_to_string(file).map_err(|source| CommandError::File {
        what: format!("the recording {} cannot be read", file.display()),
        source,
        hint: Some("name a file that `yolo doctor --record FILE` wrote".to_owned()),
    })?;
    Host::replay(&text).map_err(|source| CommandError::Recording { file: file.to_owned(), source })
}

fn record(host: &Host, intent: &Intent, file: &Path) -> Result<(), CommandError> {
    let recording = host.record(intent, env!("CARGO_PKG_VERSION"));
    std::fs::write(file, format!("{recording:#}\n")).map_err(|source| CommandError::File {
        what: format!("the recording {} cannot be written", file.display()),
        source,
        hint: Some("name a file in a folder that you may write to".to_owned()),
    })
}
