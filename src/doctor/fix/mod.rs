//! `--fix`: says what it will change, asks, keeps a backup with the way back, and changes. Checks
//! propose changes as data; here each kind of change has its one hand. What this user has no right
//! to do is printed as the exact command instead.

mod backup;
mod change;
mod plan;
mod shell;
mod variables;

use std::io::{BufRead as _, IsTerminal as _};

use serde_json::{Value, json};
use yolo_checks::Change;

use self::backup::Backup;
use self::plan::Step;
use super::report::Report;
use crate::cli::DoctorArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, wrap};

/// What became of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// `--dry-run`, or the answer was no.
    Planned,
    Done,
    Failed,
    /// It needs rights that this user has not.
    ByHand,
}

/// What was done, for the JSON report, and whether the host should be looked at again.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) steps: Value,
    pub(super) has_changed: bool,
}

/// Says of findings that an earlier repair mends them, where only a shell has to read its file.
pub(super) fn settle(report: &mut Report<'_>, places: &YoloDirs) {
    for verdict in &mut report.verdicts {
        variables::settle(&mut verdict.findings, places);
    }
}

/// Mends what the report says can be mended.
pub(super) fn fix(
    report: &Report<'_>,
    args: &DoctorArgs,
    places: &YoloDirs,
    printer: &Printer,
) -> Result<Fixed, CommandError> {
    let steps = plan::of(report, places);
    let (mine, by_hand): (Vec<&Step>, Vec<&Step>) = steps.iter().partition(|step| step.by_hand.is_none());
    if steps.is_empty() {
        printer.say("--fix: there is nothing that it can change here");
        return Ok(Fixed { steps: json!([]), has_changed: false });
    }
    if !mine.is_empty() {
        printer.say("--fix will change:");
        for (number, step) in mine.iter().enumerate() {
            printer.say(wrap(&format!("  {}. ", number + 1), &format!("{} [{}]", step.words, step.id)));
            printer.say(wrap("     way back: ", &step.undo));
        }
    }
    if !by_hand.is_empty() {
        printer.say("These need rights that you do not have here; type them yourself:");
        for step in &by_hand {
            printer.say(wrap("  - ", &format!("{} [{}]", step.words, step.id)));
            step.by_hand.iter().for_each(|command| printer.say(format_args!("      {command}")));
        }
    }
    let agreed = !mine.is_empty() && !args.dry_run && agreed(mine.len(), args.yes, printer);
    let mut results = Vec::new();
    let mut backup = Backup::of(places);
    for step in &steps {
        let (outcome, why) = match &step.by_hand {
            Some(command) => (Outcome::ByHand, Some(command.clone())),
            None if agreed => match change::apply(&step.change, places, &mut backup) {
                Ok(done) => {
                    printer.say(wrap("done: ", &done));
                    (Outcome::Done, None)
                }
                Err(why) => {
                    printer.warning(format_args!("not done: {}: {why}", step.words));
                    (Outcome::Failed, Some(why))
                }
            },
            None => (Outcome::Planned, None),
        };
        results.push(json!({
            "id": step.id,
            "change": step.words,
            "result": match outcome {
                Outcome::Planned => "planned",
                Outcome::Done => "done",
                Outcome::Failed => "failed",
                Outcome::ByHand => "by-hand",
            },
            "why": why,
            "undo": (outcome == Outcome::Done).then_some(&step.undo),
        }));
    }
    let is_done = |step: &&Step| matches!(step.change, Change::Variable { .. }) && step.by_hand.is_none();
    let has_variables =
        steps.iter().zip(&results).any(|(step, result)| is_done(&step) && result["result"] == "done");
    if has_variables {
        let [here, everywhere] = shell::sourcing(&variables::file(places));
        printer.say("variables count in this shell once you type");
        printer.say(format_args!("  {here}"));
        printer.say("and in every new shell once you type");
        printer.say(format_args!("  {everywhere}"));
    }
    // On a line of its own length: it is copied.
    if let Some(script) = backup.script() {
        printer.say(format_args!("the way back: {}", shell::call(&script)));
    }
    Ok(Fixed { steps: Value::Array(results), has_changed: agreed })
}

/// `--yes`, or a yes typed by a person.
fn agreed(count: usize, is_agreed: bool, printer: &Printer) -> bool {
    if is_agreed {
        return true;
    }
    if !std::io::stdin().is_terminal() {
        printer.say("nothing was changed: nobody is there to ask; add --yes to agree beforehand");
        return false;
    }
    let changes = super::text::number(count, "change");
    printer.say(format_args!("Make {} {changes}? [y/N]", if count == 1 { "this" } else { "these" }));
    let mut answer = String::new();
    // A terminal that is closed has not agreed.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !yes {
        printer.say("nothing was changed");
    }
    yes
}
