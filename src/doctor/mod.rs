//! `yolo doctor`: runs the checks on this machine or a recording, and prints the findings as text or
//! as JSON. The exit status is 0 without errors among the findings, 1 with errors, and 2 if the
//! checks could not run: an invalid command line, or a file that is not a recording.

mod compare;
mod deep;
mod explain;
mod fix;
mod inside;
pub(crate) mod intent;
mod json;
mod preflight;
mod reference;
mod replay;
mod report;
mod select;
mod text;
mod verbose;
mod wsl_failure;

pub(crate) use preflight::preflight;
pub(crate) use wsl_failure::with_finding;

use std::io::IsTerminal as _;
use std::path::Path;

use yolo_base::exit;
use yolo_checks::{Host, Intent, Status};

use self::inside::Inside;
use self::replay::replay;
use self::report::Report;
use self::select::Selection;
use crate::cli::DoctorArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::in_wsl::{InWslError, Wsl};
use crate::machine;
use crate::printer::Printer;

/// Finds the WSL where the doctor in Windows asks the one inside, if it is to ask; a repair can change the answer.
pub(crate) type FindWsl<'a> = dyn Fn() -> Option<Result<Wsl, InWslError>> + 'a;

/// Runs the doctor and returns the exit status. In Windows, `wsl` is where it asks the doctor inside.
pub(crate) fn doctor(args: &DoctorArgs, wsl: &FindWsl<'_>, printer: &Printer) -> Result<u8, CommandError> {
    examine(args, wsl, printer).map_err(|error| CommandError::Doctor(Box::new(error)))
}

fn examine(args: &DoctorArgs, wsl: &FindWsl<'_>, printer: &Printer) -> Result<u8, CommandError> {
    if args.list {
        printer.result(explain::list(std::io::stdout().is_terminal()));
        return Ok(exit::SUCCESS);
    }
    if let Some(name) = &args.explain {
        printer.result(explain::explain(name, std::io::stdout().is_terminal())?);
        return Ok(exit::SUCCESS);
    }
    if args.reference {
        printer.result(reference::page().trim_end());
        return Ok(exit::SUCCESS);
    }
    if !args.compare.is_empty() {
        return compare::compare(args, printer);
    }
    if args.deep {
        return deep::deep(args, printer);
    }
    let selection = Selection::of(&args.only, &args.skip)?;
    let (host, intent) = subject(args)?;
    let mut report = Report::of(&host, &intent, &selection);
    // Files on this machine say nothing about a recorded one.
    if let (false, Ok(dirs)) = (host.is_recorded(), YoloDirs::from_env()) {
        fix::mark_applied(&mut report, &dirs);
    }
    let ask = || wsl().map(|wsl| Inside::ask(&wsl, args));
    // Where no libtorch runs, no WSL helps, and its hint to set one up would be wrong.
    let inside = if host.is_recorded() || !host.has_libtorch_build() { None } else { ask() };
    if let Some(said) = inside.as_ref().and_then(Inside::said) {
        host.hear(&said.command, said.status, &said.output);
    }
    if let Some(file) = &args.record {
        record(&host, &intent, file)?;
        printer.say(format_args!("recorded in {}", file.display()));
    }
    join(&mut report, inside.as_ref(), &selection);
    let show = |report: &Report<'_>, inside: Option<&Inside>, fixed| {
        let is_json = args.json;
        printer.result(if is_json {
            json::render(report, fixed, inside)
        } else {
            text::render(report, inside, args.verbose)
        });
    };
    if !args.fix {
        show(&report, inside.as_ref(), None);
        return Ok(exit_status(&report, inside.as_ref()));
    }
    let dirs = YoloDirs::from_env()?;
    let fixed = fix::fix(&report, args, &dirs, printer)?;
    if !fixed.has_changed {
        show(&report, inside.as_ref(), Some(fixed.steps));
        return Ok(exit_status(&report, inside.as_ref()));
    }
    // The checks run again on fresh facts, so that the report shows whether the changes helped.
    printer.say("checking again");
    let host = machine::this_host(&dirs);
    let mut report = Report::of(&host, &intent, &selection);
    fix::mark_applied(&mut report, &dirs);
    // WSL may be found, and start, now that it is repaired.
    let inside = match inside {
        Some(before) if before.said().is_some() => ask(),
        inside => inside,
    };
    join(&mut report, inside.as_ref(), &selection);
    show(&report, inside.as_ref(), Some(fixed.steps));
    Ok(exit_status(&report, inside.as_ref()))
}

/// Windows needs less if the doctor inside WSL has answered. If WSL did not start, it has said why.
fn join(report: &mut Report<'_>, inside: Option<&Inside>, selection: &Selection) {
    let Some(inside) = inside else { return };
    if inside.why_not().is_none() {
        report.leave_out(&inside::SETTLED);
    }
    let said = inside.said();
    let failure = said.and_then(|said| yolo_checks::wsl_failure(report.host, &said.command, &said.output));
    if let Some(finding) = failure.filter(|finding| selection.wants(finding.id)) {
        report.put(finding);
    }
}

fn exit_status(report: &Report<'_>, inside: Option<&Inside>) -> u8 {
    let is_error = |finding: &yolo_checks::Finding| finding.status == Status::Error;
    let has_errors = inside.is_some_and(|inside| inside.findings(&report.findings()).iter().any(is_error));
    if has_errors || report.count(Status::Error) > 0 { exit::FAILURE } else { exit::SUCCESS }
}

/// The host to check and the planned run: options after `--` override those of a recording.
fn subject(args: &DoctorArgs) -> Result<(Host, Intent), CommandError> {
    let (host, recorded) = match &args.replay {
        Some(file) => replay(file)?,
        None => (machine::this_host(&YoloDirs::from_env()?), None),
    };
    let intent =
        if args.run.is_empty() { recorded.unwrap_or_default() } else { intent::of_arguments(&args.run) };
    Ok((host, intent))
}

fn record(host: &Host, intent: &Intent, file: &Path) -> Result<(), CommandError> {
    // So that any recording can be compared with others.
    yolo_checks::compare::read_facts(host, intent);
    let recording = host.record(intent, env!("CARGO_PKG_VERSION"));
    std::fs::write(file, format!("{recording:#}\n")).map_err(|source| CommandError::File {
        what: format!("cannot write the recording {}", file.display()),
        source,
        hint: Some("name a file in a writable folder".to_owned()),
    })
}
