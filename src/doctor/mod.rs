//! `yolo doctor`: collects the facts of this machine, has them judged, and shows the findings as
//! text for people or as JSON for programs.

mod json;
mod text;

use std::process::ExitCode;

use yolo_checks::{Intent, Status, judge};

use crate::cli::DoctorArgs;
use crate::error::CommandError;
use crate::host;
use crate::places::Places;
use crate::printer::Printer;

/// Looks at this machine. The exit code is 1 when an error was found.
pub(crate) fn doctor(args: &DoctorArgs, printer: &Printer) -> Result<ExitCode, CommandError> {
    let places = Places::from_env()?;
    let facts = host::facts(&places);
    let findings = judge(&facts, &Intent::default());
    printer.result(if args.json {
        json::render(&facts, &findings)
    } else {
        text::render(&findings, args.verbose)
    });
    let failed = findings.iter().any(|finding| finding.status == Status::Error);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
