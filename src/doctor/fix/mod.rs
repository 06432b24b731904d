//! `--fix`: shows the changes, asks, backs up what they replace, and makes them. Checks propose
//! changes as data; [`change`] has one function per kind of change. Where this user lacks the rights,
//! the exact command is printed instead.

mod change;
mod plan;
mod shell;
mod variables;

use serde_json::{Value, json};
use yolo_base::format::count;
use yolo_checks::{Change, shell_profile};

use self::plan::PlannedChange;
use super::report::Report;
use crate::cli::DoctorArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, wrap};
use crate::undo::{self, Journal};

/// The result of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeResult {
    /// Not made: `--dry-run`, or the answer was no.
    Planned,
    Done,
    Failed,
    /// It needs rights that this user lacks.
    ByHand,
}

/// What was done, for the JSON report, and whether the host should be checked again.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) steps: Value,
    pub(super) has_changed: bool,
}

/// Marks findings that an earlier `--fix` has fixed for every shell that reads its file.
pub(super) fn mark_applied(report: &mut Report<'_>, dirs: &YoloDirs) {
    let profile = shell_profile(report.host);
    for verdict in &mut report.verdicts {
        variables::mark_applied(&mut verdict.findings, profile, dirs);
    }
}

/// Fixes what can be fixed in the report.
pub(super) fn fix(
    report: &Report<'_>,
    args: &DoctorArgs,
    dirs: &YoloDirs,
    printer: &Printer,
) -> Result<Fixed, CommandError> {
    let changes = plan::of(report, dirs);
    if changes.is_empty() {
        printer.say("--fix: there is nothing to change");
        return Ok(Fixed { steps: json!([]), has_changed: false });
    }
    let own = changes.iter().filter(|change| change.by_hand.is_none()).count();
    show(&changes, printer);
    let confirmed = own > 0 && !args.dry_run && (args.yes || confirm(own, printer));
    let mut journal = Journal::of(dirs, "yolo doctor --fix");
    let results: Vec<(ChangeResult, Option<String>)> =
        changes.iter().map(|change| apply(change, confirmed, dirs, &mut journal, printer)).collect();
    let sets_variable = |(change, (result, _)): (&PlannedChange, &(ChangeResult, _))| {
        matches!(change.change, Change::Variable { .. }) && *result == ChangeResult::Done
    };
    if changes.iter().zip(&results).any(sets_variable) {
        let [here, everywhere] = shell::sourcing(&variables::file(dirs), shell_profile(report.host));
        printer.say("to apply the variables in this shell, type");
        printer.say(format_args!("  {here}"));
        printer.say("and to apply them in every new shell, type");
        printer.say(format_args!("  {everywhere}"));
    }
    // Not wrapped: the commands are copied.
    let numbers: Vec<String> = journal.numbers().iter().map(u64::to_string).collect();
    if let Some(script) = journal.script() {
        printer.say(format_args!("to undo: yolo undo {}", numbers.join(" ")));
        printer.say(format_args!("or, without yolo: {}", undo::script_call(&script)));
    }
    let steps = changes.iter().zip(results).map(|(change, result)| as_json(change, result)).collect();
    Ok(Fixed { steps: Value::Array(steps), has_changed: confirmed })
}

/// Shows the planned changes. `--quiet` does not hide them, since the question refers to them.
fn show(changes: &[PlannedChange], printer: &Printer) {
    let (own, by_hand): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.by_hand.is_none());
    if !own.is_empty() {
        printer.before_question("--fix will make these changes:");
        for (number, change) in own.iter().enumerate() {
            let text = format!("{} [{}]", change.text, change.id);
            printer.before_question(wrap(&format!("  {}. ", number + 1), &text));
            printer.before_question(wrap("     undo: ", &change.undo));
        }
    }
    if !by_hand.is_empty() {
        printer.before_question("These changes need other rights; run the commands yourself:");
        for change in by_hand {
            printer.before_question(wrap("  - ", &format!("{} [{}]", change.text, change.id)));
            let command = change.by_hand.iter();
            command.for_each(|command| printer.before_question(format_args!("      {command}")));
        }
    }
}

/// Makes one change if the user confirmed it.
fn apply(
    change: &PlannedChange,
    confirmed: bool,
    dirs: &YoloDirs,
    journal: &mut Journal,
    printer: &Printer,
) -> (ChangeResult, Option<String>) {
    if let Some(command) = &change.by_hand {
        return (ChangeResult::ByHand, Some(command.clone()));
    }
    if !confirmed {
        return (ChangeResult::Planned, None);
    }
    match change::apply(change, dirs, journal) {
        Ok(done) => {
            printer.say(wrap("done: ", &done));
            (ChangeResult::Done, None)
        }
        Err(why) => {
            printer.warning(format_args!("failed: {}: {why}", change.text));
            (ChangeResult::Failed, Some(why))
        }
    }
}

fn as_json(change: &PlannedChange, (result, why): (ChangeResult, Option<String>)) -> Value {
    json!({
        "id": change.id,
        "change": change.text,
        "result": match result {
            ChangeResult::Planned => "planned",
            ChangeResult::Done => "done",
            ChangeResult::Failed => "failed",
            ChangeResult::ByHand => "by-hand",
        },
        "why": why,
        "undo": (result == ChangeResult::Done).then_some(&change.undo),
    })
}

/// Asks the user to confirm.
fn confirm(changes: usize, printer: &Printer) -> bool {
    let these = if changes == 1 { "this" } else { "these" };
    match printer.ask(&format!("Make {these} {}?", count(changes, "change"))) {
        Some(true) => return true,
        Some(false) => printer.say("nothing was changed"),
        None => printer.say(
            "nothing was changed: there is no terminal to ask on; --yes makes the changes without asking",
        ),
    }
    false
}
