//! The text of `yolo undo`: the list of changes, what will be done, and what was done.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use yolo_base::format::bytes;

use super::wrap;
use crate::undo::{Damaged, Listing, Outlook, Record, Undone};

/// Something that an older version left, without a note.
#[derive(Debug)]
pub(crate) struct FoundItem {
    /// What it is.
    pub(crate) what: String,
    /// Where it is.
    pub(crate) place: PathBuf,
    /// Its bytes, if that matters.
    pub(crate) size: Option<u64>,
    /// The command that removes it or puts it back.
    pub(crate) command: String,
}

/// All changes, the newest first. Commands end with `options`.
pub(crate) fn list(
    listing: &Listing,
    outlook: impl Fn(&Record) -> Outlook,
    found: &[FoundItem],
    options: &str,
) -> String {
    let mut lines: Vec<String> = Vec::new();
    if listing.records.is_empty() {
        lines.push("yolo has recorded no changes on this machine".to_owned());
    } else {
        lines.push("What yolo has changed on this machine, the last change first; times are UTC:".to_owned());
    }
    let (mut can, mut last) = (false, None);
    for record in &listing.records {
        let outlook = outlook(record);
        can |= matches!(outlook, Outlook::Possible { .. });
        // As `last` chooses: what undoes another change is only undone by its number.
        if record.undoes.is_none() && matches!(outlook, Outlook::Possible { .. } | Outlook::Blocked { .. }) {
            last.get_or_insert(matches!(outlook, Outlook::Possible { .. }));
        }
        lines.push(String::new());
        lines.push(wrap(&format!("{:>4}  ", record.number), &record.what));
        lines.push(format!("      {}, by `{}`", time(record.at), record.command));
        lines.extend(state(record, &outlook));
    }
    if !found.is_empty() {
        lines.push(String::new());
        lines.push("Found without a record, from versions of yolo that wrote none:".to_owned());
        for one in found {
            let size = one.size.map_or_else(String::new, |size| format!(", {}", bytes(size)));
            lines.push(wrap("  - ", &format!("{}{size}: {}", one.what, one.place.display())));
            lines.push(format!("      {}", one.command));
        }
    }
    if !listing.damaged.is_empty() {
        lines.push(String::new());
        lines.extend(listing.damaged.iter().map(|one| wrap("  ", &damaged(one))));
    }
    if can {
        lines.push(String::new());
        let how = match last {
            Some(true) => format!(
                "`yolo undo last{options}` undoes the last change, `yolo undo NUMBER{options}` any other one."
            ),
            _ => format!("`yolo undo NUMBER{options}` undoes one of them."),
        };
        lines.push(how);
    }
    lines.join("\n")
}

/// The part of the list in Windows that is about a distribution: the list of the program there, or why there is none.
pub(crate) fn inside_wsl(distribution: Option<&str>, answer: &Result<String, String>) -> String {
    let place = distribution.map_or_else(|| "WSL".to_owned(), |name| format!("WSL ({name})"));
    match answer {
        Ok(text) => format!("\n\nInside {place}:\n\n{text}"),
        Err(why) => {
            let why = why.lines().next().unwrap_or("yolo there did not answer").trim_end_matches(':');
            format!("\n\nInside {place}: not listed, because {}", why.trim_start_matches("error: "))
        }
    }
}

/// Whether a change can be undone.
fn state(record: &Record, outlook: &Outlook) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |text: &str| lines.push(wrap("      ", text));
    match outlook {
        Outlook::Possible { how, frees } => {
            let frees = if *frees > 0 { format!("; frees {}", bytes(*frees)) } else { String::new() };
            line(&format!("undo: {}{frees}", how.join(", ")));
            if let Some(why) = &record.stays {
                line(&format!("stays: {why}"));
            }
        }
        Outlook::Undone => line("undone"),
        Outlook::Gone => line("nothing of it is left"),
        Outlook::NotMade => line("interrupted or in progress; nothing is changed"),
        Outlook::Stays { why } => line(&format!("stays: {why}")),
        Outlook::Blocked { why, hint, .. } => {
            line(&format!("cannot be undone now: {why}"));
            if let Some(hint) = hint {
                line(hint);
            }
        }
    }
    // Not wrapped: the command is copied.
    if let (Some(command), Outlook::Stays { .. } | Outlook::Possible { .. }) = (&record.by_hand, outlook) {
        lines.push(format!("      by hand: {command}"));
    }
    lines
}

/// A record that cannot be read.
pub(crate) fn damaged(one: &Damaged) -> String {
    format!("the record {} is skipped: {}", one.file.display(), one.why)
}

/// What will be undone.
pub(crate) fn plan(planned: &[(&Record, Vec<String>)]) -> String {
    let mut lines = vec!["This will be undone:".to_owned()];
    for (record, how) in planned {
        lines.push(wrap(&format!("{:>4}  ", record.number), &record.what));
        lines.extend(how.iter().map(|one| wrap("      - ", one)));
    }
    lines.join("\n")
}

/// What was undone.
pub(crate) fn undone(number: u64, undone: &Undone) -> String {
    let freed = if undone.freed > 0 { format!(" ({} freed)", bytes(undone.freed)) } else { String::new() };
    let mut lines = vec![format!("change {number} is undone{freed}")];
    lines.extend(undone.done.iter().map(|done| wrap("  - ", done)));
    if let Some(why) = &undone.stays {
        lines.push(wrap("  stays: ", why));
    }
    if let Some(redo) = undone.redo {
        lines.push(format!("  `yolo undo {redo}` makes it again"));
    }
    lines.join("\n")
}

/// A time without its seconds.
fn time(at: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(at)).unwrap_or(UNIX_EPOCH);
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}
