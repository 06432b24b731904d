//! `yolo undo`: lists what `yolo` has changed on this host, and undoes changes. What can be undone is
//! shown first, and the user is asked.

use std::ffi::OsString;

use serde_json::{Value, json};
use yolo_base::{Hint as _, exit};

use crate::cli::{UndoArgs, Which};
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::in_wsl::{InWslError, Prompt, Wsl};
use crate::machine;
use crate::printer::{FoundItem, Printer, SetupView, undo_text as show};
use crate::setup::{self, WslError};
use crate::undo::{Hands, Listing, Outlook, Record, Undo, UndoError};

/// Lists or undoes changes, and returns the exit status. The list in Windows has a part of WSL.
pub(super) fn undo(
    args: &UndoArgs,
    wsl: &dyn Fn() -> Option<Result<Wsl, InWslError>>,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let dirs = YoloDirs::from_env()?;
    let listing = Listing::read(&dirs);
    if args.which.is_empty() {
        let found = found(&listing, &dirs);
        let inside = wsl().map(|wsl| {
            if let Ok(wsl) = &wsl {
                printer.say(format!("asking WSL ({}) what was changed inside it", wsl.distribution()));
            }
            inside(&wsl, args.json)
        });
        if args.json {
            let mut report = report(&listing, &dirs, &found, None);
            if let Some((distribution, answer)) = inside {
                report["wsl"] = match answer.map(|text| serde_json::from_str::<Value>(&text)) {
                    Ok(Ok(inside)) => json!({ "distribution": distribution, "report": inside }),
                    Ok(Err(error)) => json!({ "distribution": distribution, "error": error.to_string() }),
                    Err(why) => json!({ "distribution": distribution, "error": why }),
                };
            }
            printer.result(pretty(&report));
        } else {
            let mut text =
                show::list(&listing, |record| listing.outlook(record, &dirs), &found, &at_prompt());
            if let Some((distribution, answer)) = &inside {
                text.push_str(&show::inside_wsl(distribution.as_deref(), answer));
            }
            printer.result(text);
        }
        return Ok(exit::SUCCESS);
    }
    listing.damaged.iter().for_each(|one| printer.warning(show::damaged(one)));
    let numbers = numbers(&args.which, &listing, &dirs)?;
    let (planned, refused) = plan(&numbers, &listing, &dirs, args.force)?;
    if let ([], [first, ..]) = (planned.as_slice(), refused.as_slice()) {
        if args.json {
            printer.result(pretty(&report(&listing, &dirs, &[], Some(refused_json(&refused)))));
        }
        return Err(refusal(first).into());
    }
    let text = show::plan(&planned);
    if args.dry_run {
        let steps = planned.iter().map(|(record, how)| {
            json!({ "number": record.number, "result": "planned", "done": how, "why": null, "freed": null, "redo": null })
        });
        let results = steps.chain(refused_json(&refused)).collect();
        match args.json {
            true => printer.result(pretty(&report(&listing, &dirs, &[], Some(results)))),
            false => printer.result(text),
        }
        refused.iter().for_each(|one| printer.error(&refusal(one)));
        return Ok(if refused.is_empty() { exit::SUCCESS } else { exit::FAILURE });
    }
    printer.before_question(text);
    refused.iter().for_each(|one| printer.error(&refusal(one)));
    if !args.yes {
        confirm(planned.len(), printer)?;
    }
    let mut results = refused_json(&refused);
    let done = carry_out(&planned, args, &dirs, printer, &mut results);
    if args.json {
        printer.result(pretty(&report(&Listing::read(&dirs), &dirs, &[], Some(results))));
    }
    Ok(if done? && refused.is_empty() { exit::SUCCESS } else { exit::FAILURE })
}

/// What `yolo` has changed inside WSL, as the one there lists it, or why it does not.
fn inside(wsl: &Result<Wsl, InWslError>, json: bool) -> (Option<String>, Result<String, String>) {
    let wsl = match wsl {
        Ok(wsl) => wsl,
        Err(error) => return (None, Err(error.to_string())),
    };
    let arguments: &[&str] = if json { &["undo", "--json"] } else { &["undo"] };
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let answer = match wsl.output(&arguments) {
        Ok((exit::SUCCESS, output)) => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
        Ok((_, output)) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    (Some(wsl.distribution().to_owned()), answer)
}

/// What commands need at the Windows prompt at which this one was typed, so that they mean the changes in WSL.
fn at_prompt() -> String {
    Prompt::of_this_process()
        .map(|prompt| format!(" --distribution {}", prompt.distribution()))
        .unwrap_or_default()
}

/// The numbers that the user named, the newest first: a later change of a file is undone before an earlier.
fn numbers(which: &[Which], listing: &Listing, dirs: &YoloDirs) -> Result<Vec<u64>, UndoError> {
    let number = |one: &Which| match one {
        Which::Last => listing.last(dirs),
        Which::Number(number) => listing.record(*number).map(|record| record.number),
    };
    let mut numbers = which.iter().map(number).collect::<Result<Vec<u64>, _>>()?;
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.dedup();
    Ok(numbers)
}

/// A record with what will be done.
type Planned<'a> = (&'a Record, Vec<String>);
/// A record with why it stays.
type Refused<'a> = (&'a Record, Outlook);

fn plan<'a>(
    numbers: &[u64],
    listing: &'a Listing,
    dirs: &YoloDirs,
    force: bool,
) -> Result<(Vec<Planned<'a>>, Vec<Refused<'a>>), UndoError> {
    let (mut planned, mut refused): (Vec<Planned<'a>>, Vec<Refused<'a>>) = (Vec::new(), Vec::new());
    for number in numbers {
        let record = listing.record(*number)?;
        match listing.outlook(record, dirs) {
            Outlook::Possible { how, .. } => planned.push((record, how)),
            Outlook::Blocked { later, .. }
                if !later.is_empty() && later.iter().all(|number| numbers.contains(number)) =>
            {
                let all: Vec<String> = later.iter().map(u64::to_string).collect();
                planned.push((record, vec![format!("restore its files, after change {}", all.join(", "))]));
            }
            Outlook::Blocked { can_force: true, .. } if force => {
                let paths = record.paths().map(|path| format!("restore {}, and keep a copy", path.display()));
                planned.push((record, paths.collect()));
            }
            // Where an undo was interrupted at its very end, only the notes are left to write.
            Outlook::Gone if listing.is_interrupted(*number) => planned.push((record, Vec::new())),
            outlook => refused.push((record, outlook)),
        }
    }
    Ok((planned, refused))
}

fn confirm(count: usize, printer: &Printer) -> Result<(), CommandError> {
    let these = if count == 1 { "this change" } else { "these changes" };
    let what = match printer.ask(&format!("Undo {these}?")) {
        Some(true) => return Ok(()),
        Some(false) => "nothing was undone",
        None => "nothing was undone: there is no terminal to ask on",
    };
    Err(CommandError::Failed {
        what: what.to_owned(),
        hint: "`--yes` undoes without asking, `--dry-run` only shows what would be done".to_owned(),
    })
}

/// Undoes what was planned. Whether all of it succeeded; one failure does not keep the others.
fn carry_out(
    planned: &[Planned<'_>],
    args: &UndoArgs,
    dirs: &YoloDirs,
    printer: &Printer,
    results: &mut Vec<Value>,
) -> Result<bool, CommandError> {
    let view = SetupView::new(printer);
    let undo = Undo::begin(dirs, &WslHands, &view, args.force)?;
    let mut succeeded = true;
    for (record, _) in planned {
        let number = record.number;
        match undo.undo(number) {
            Ok(done) => {
                view.above(|| printer.say(show::undone(number, &done)));
                results.push(json!({
                    "number": number, "result": "done", "done": done.done, "why": done.stays,
                    "freed": done.freed, "redo": done.redo,
                }));
            }
            Err(error) => {
                succeeded = false;
                view.above(|| printer.error(&error));
                results.push(json!({
                    "number": number, "result": "failed", "done": [], "why": error.to_string(),
                    "freed": null, "redo": null,
                }));
            }
        }
    }
    Ok(succeeded)
}

/// What only setup can do.
struct WslHands;

impl Hands for WslHands {
    fn remove_linux_program(&self, distribution: &str) -> Result<bool, (String, Option<String>)> {
        let why = |error: WslError| (error.to_string(), error.hint().map(|hint| hint.into_owned()));
        setup::wsl::remove_program(distribution).map_err(why)
    }
}

fn refusal((record, outlook): &Refused<'_>) -> UndoError {
    let (why, hint) = match outlook {
        Outlook::Undone => ("it has already been undone".to_owned(), None),
        Outlook::Gone => ("nothing of it is left".to_owned(), None),
        Outlook::NotMade => ("it was interrupted before it changed anything".to_owned(), None),
        Outlook::Stays { why } => (why.clone(), record.by_hand.clone()),
        Outlook::Blocked { why, hint, .. } => (why.clone(), hint.clone()),
        Outlook::Possible { .. } => (String::new(), None),
    };
    UndoError::Refused { number: record.number, why, hint }
}

fn refused_json(refused: &[Refused<'_>]) -> Vec<Value> {
    let one = |one: &Refused<'_>| {
        json!({
            "number": one.0.number, "result": "refused", "done": [], "why": refusal(one).to_string(),
            "freed": null, "redo": null,
        })
    };
    refused.iter().map(one).collect()
}

/// What versions of `yolo` without a journal have left, as far as it can be told.
fn found(listing: &Listing, dirs: &YoloDirs) -> Vec<FoundItem> {
    let is_noted = |path: &std::path::Path| {
        listing.records.iter().any(|record| record.is_in_force() && record.paths().any(|noted| noted == path))
    };
    let mut found: Vec<FoundItem> = Vec::new();
    for item in setup::installed_items(dirs) {
        if is_noted(&item.place) || item.kind == "unfinished" {
            continue;
        }
        let command = format!("yolo setup --remove {}", item.name);
        found.push(FoundItem {
            what: format!("{} {}", item.kind, item.name),
            place: item.place,
            size: Some(item.size),
            command,
        });
    }
    for one in &listing.older {
        let command = crate::undo::script_call(&one.script);
        found.push(FoundItem {
            what: "backup of `yolo doctor --fix`".to_owned(),
            place: one.folder.clone(),
            size: None,
            command,
        });
    }
    let profile = machine::this_host(dirs).windows_profile().ok().map(std::path::PathBuf::from);
    if let Some(profile) = profile {
        let copy = profile.join(".wslconfig.before-yolo");
        if copy.is_file() && !is_noted(&copy) {
            let copy_command = if cfg!(windows) { "copy" } else { "cp" };
            found.push(FoundItem {
                what: "copy of .wslconfig before `yolo setup --wsl`".to_owned(),
                command: format!(
                    "{copy_command} \"{}\" \"{}\"",
                    copy.display(),
                    profile.join(".wslconfig").display()
                ),
                place: copy,
                size: None,
            });
        }
    }
    found
}

/// The report for programs, described by `src/undo/report.schema.json`.
fn report(listing: &Listing, dirs: &YoloDirs, found: &[FoundItem], results: Option<Vec<Value>>) -> Value {
    let changes: Vec<Value> = listing
        .records
        .iter()
        .map(|record| {
            let outlook = listing.outlook(record, dirs);
            let (state, why, how, frees) = match &outlook {
                Outlook::Possible { how, frees } => ("possible", None, how.as_slice(), Some(*frees)),
                Outlook::Undone => ("undone", None, [].as_slice(), None),
                Outlook::Gone => ("gone", None, [].as_slice(), None),
                Outlook::NotMade => ("not-made", None, [].as_slice(), None),
                Outlook::Stays { why } => ("stays", Some(why.as_str()), [].as_slice(), None),
                Outlook::Blocked { why, .. } => ("blocked", Some(why.as_str()), [].as_slice(), None),
            };
            json!({
                "number": record.number, "at": record.at, "command": record.command, "what": record.what,
                "paths": record.paths().collect::<Vec<_>>(), "undoes": record.undoes, "undo": state,
                "why": why, "how": how, "frees": frees, "stays": record.stays, "by_hand": record.by_hand,
            })
        })
        .collect();
    let damaged: Vec<Value> =
        listing.damaged.iter().map(|one| json!({ "file": one.file, "why": one.why })).collect();
    let found: Vec<Value> = found
        .iter()
        .map(|one| json!({ "what": one.what, "place": one.place, "size": one.size, "remove": one.command }))
        .collect();
    json!({
        "schema": 1, "yolo": env!("CARGO_PKG_VERSION"), "changes": changes, "found": found,
        "damaged": damaged, "undone": results,
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
