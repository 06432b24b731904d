//! `yolo doctor`: has the facts of this machine, or of a recorded one, judged, and shows the findings
//! as text for people or as JSON for programs. It ends with 0 when no error was found, with 1 when
//! one was, and with 2 when it could not look: wrong words, or a file that is no recording.

mod deep;
mod explain;
mod fix;
pub(crate) mod intent;
mod json;
mod preflight;
mod reference;
mod report;
mod select;
mod text;
mod verbose;

pub(crate) use preflight::preflight;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use yolo_checks::{Host, Intent, Status};

use self::report::Report;
use self::select::Selection;
use crate::cli::DoctorArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::host;
use crate::printer::Printer;

/// Exit code of an examination that could not be made.
const MISUSE: u8 = 2;

/// A recording has tens of kilobytes, and files of up to a mebibyte each in the worst case.
const MOST_BYTES: u64 = 64 << 20;
const A_RECORDING: &str = "name a file that `yolo doctor --record FILE` wrote";

/// Examines, and says how it went.
pub(crate) fn doctor(args: &DoctorArgs, printer: &Printer) -> ExitCode {
    match answer(args, printer) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error, error.hint());
            ExitCode::from(MISUSE)
        }
    }
}

fn answer(args: &DoctorArgs, printer: &Printer) -> Result<ExitCode, CommandError> {
    if args.list {
        printer.result(explain::list(std::io::stdout().is_terminal()));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &args.explain {
        printer.result(explain::explain(name, std::io::stdout().is_terminal())?);
        return Ok(ExitCode::SUCCESS);
    }
    if args.reference {
        printer.result(reference::page().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if args.deep {
        return deep::deep(args, printer);
    }
    let selection = Selection::of(&args.only, &args.skip)?;
    let (host, intent) = subject(args)?;
    let mut report = Report::of(&host, &intent, &selection);
    // What lies in this home says nothing of a machine that was recorded.
    if let (false, Ok(places)) = (host.is_recorded(), YoloDirs::from_env()) {
        fix::settle(&mut report, &places);
    }
    if let Some(file) = &args.record {
        record(&host, &intent, file)?;
        printer.say(format_args!("recorded in {}", file.display()));
    }
    let show = |report: &Report<'_>, fixed| {
        let is_json = args.json;
        printer.result(if is_json {
            json::render(report, fixed)
        } else {
            text::render(report, args.verbose)
        });
    };
    if !args.fix {
        show(&report, None);
        return Ok(code_of(&report));
    }
    let places = YoloDirs::from_env()?;
    let fixed = fix::fix(&report, args, &places, printer)?;
    if !fixed.has_changed {
        show(&report, Some(fixed.steps));
        return Ok(code_of(&report));
    }
    // The machine is asked anew: what was mended must be seen to be so.
    printer.say("looking again");
    let host = host::this_host(&places);
    let mut report = Report::of(&host, &intent, &selection);
    fix::settle(&mut report, &places);
    show(&report, Some(fixed.steps));
    Ok(code_of(&report))
}

fn code_of(report: &Report<'_>) -> ExitCode {
    if report.count(Status::Error) > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The host to judge and the run that is meant: words after `--` win over those of a recording.
fn subject(args: &DoctorArgs) -> Result<(Host, Intent), CommandError> {
    let (host, recorded) = match &args.replay {
        Some(file) => replay(file)?,
        None => (host::this_host(&YoloDirs::from_env()?), None),
    };
    let intent = if args.run.is_empty() { recorded.unwrap_or_default() } else { intent::of_words(&args.run) };
    Ok((host, intent))
}

fn replay(file: &Path) -> Result<(Host, Option<Intent>), CommandError> {
    let unreadable = |source| CommandError::File {
        what: format!("the recording {} cannot be read", file.display()),
        source,
        hint: Some(A_RECORDING.to_owned()),
    };
    let misuse = |what: String| CommandError::Misuse { what, hint: A_RECORDING.to_owned() };
    // A pipe may never end, and opening one may never return.
    if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err(misuse(format!("{} is no recording: it is not a regular file", file.display())));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        let most = MOST_BYTES >> 20;
        return Err(misuse(format!("{} is no recording: it is larger than {most} MB", file.display())));
    }
    // Editors of Windows save it as UTF-16.
    Host::replay(&yolo_checks::facts::decode(&bytes))
        .map_err(|source| CommandError::Recording { file: file.to_owned(), source })
}

fn record(host: &Host, intent: &Intent, file: &Path) -> Result<(), CommandError> {
    let recording = host.record(intent, env!("CARGO_PKG_VERSION"));
    std::fs::write(file, format!("{recording:#}\n")).map_err(|source| CommandError::File {
        what: format!("the recording {} cannot be written", file.display()),
        source,
        hint: Some("name a file in a folder that you may write to".to_owned()),
    })
}
