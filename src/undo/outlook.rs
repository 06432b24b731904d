//! Whether a change can be undone now. The answer comes from the disk: what `yolo` wrote is compared with
//! what is there. A file that was edited since is merged line by line if the edits are elsewhere in it.

use std::io;
use std::path::Path;

use yolo_base::format;

use super::files;
use super::lines::{self, Lines};
use super::record::{Record, State, Step};
use crate::dirs::YoloDirs;
use crate::fetch::folder_size;

/// Whether a change can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It can.
    Possible {
        /// What will be done, one sentence each.
        how: Vec<String>,
        /// The bytes that it frees.
        frees: u64,
    },
    /// It was undone.
    Undone,
    /// Nothing of it is left.
    Gone,
    /// It was interrupted before anything was changed.
    NotMade,
    /// It is never undone.
    Stays {
        /// Why.
        why: String,
    },
    /// It is not undone as things are.
    Blocked {
        /// Why.
        why: String,
        /// What to do.
        hint: Option<String>,
        /// Whether `--force` undoes it all the same.
        can_force: bool,
        /// The later changes of the same file that have to be undone first.
        later: Vec<u64>,
    },
}

/// What one step finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing to do: it is as before the change.
    Before,
    /// It is as the change left it. The number of bytes that are freed.
    After(u64),
    /// It was edited since, and these bytes are what remains without the change.
    Merged(Vec<u8>),
    /// The same, where lines were only added at the beginning or the end. A later change of `yolo` that added them could
    /// then not be undone any more, because it notes what was above or below them.
    Extended(Vec<u8>),
    /// The file of variables was edited since: what remains of it without the lines of the change, or nothing.
    Lines(Option<Vec<u8>>),
    /// Something else is there; why it is not touched.
    Other { why: String, can_force: bool },
}

/// Judges a change. `all` are the records of the journal.
pub(super) fn outlook(record: &Record, journal: &Path, all: &[Record], dirs: &YoloDirs) -> Outlook {
    match (record.state, &record.stays) {
        (State::Undone, _) => return Outlook::Undone,
        (_, Some(why)) if record.steps.is_empty() => return Outlook::Stays { why: why.clone() },
        _ => {}
    }
    let folder = journal.join(record.number.to_string());
    let found: Vec<(&Step, Found)> =
        record.steps.iter().map(|step| (step, find_in(record, step, &folder, dirs))).collect();
    // Running ldconfig, or leaving a folder that is not empty, is nothing to do by itself.
    let is_left = |(step, found): &(&Step, Found)| {
        *found != Found::Before && !matches!(step, Step::Ldconfig | Step::Folder { .. })
    };
    let is_only_folders = record.steps.iter().all(|step| matches!(step, Step::Folder { .. }));
    let has_empty_folder = found.iter().any(|(_, found)| matches!(found, Found::After(_)));
    if !(found.iter().any(is_left) || is_only_folders && has_empty_folder) {
        if let Some(path) = record.paths().find(|path| is_only_folders && path.is_dir()) {
            return Outlook::Stays { why: format!("{} is not empty", path.display()) };
        }
        return if record.state == State::Begun { Outlook::NotMade } else { Outlook::Gone };
    }
    if let Some(later) = replaced_by(record, all) {
        return Outlook::Stays { why: format!("change {later} installed it again") };
    }
    for (step, found) in &found {
        let later = later_changes(record, step, all);
        match (found, later.as_slice()) {
            (Found::Other { why, can_force }, []) => {
                let hint = can_force.then(|| {
                    format!(
                        "edit the file yourself, or `yolo undo {} --force` restores the old one and keeps a copy of \
                         the current one",
                        record.number
                    )
                });
                return Outlook::Blocked { why: why.clone(), hint, can_force: *can_force, later };
            }
            (Found::Other { can_force, .. }, _) => return changed_later(record, later, *can_force),
            (Found::Extended(_), [_, ..]) => return changed_later(record, later, false),
            _ => {}
        }
    }
    let frees = found.iter().map(|(_, found)| if let Found::After(bytes) = found { *bytes } else { 0 }).sum();
    let how = found.iter().filter_map(|(step, found)| how(step, found)).collect();
    Outlook::Possible { how, frees }
}

/// The outlook of a change whose file later changes have changed as well.
fn changed_later(record: &Record, later: Vec<u64>, can_force: bool) -> Outlook {
    let numbers: Vec<String> = later.iter().map(u64::to_string).collect();
    let why = match numbers.as_slice() {
        [one] => format!("change {one} is in the same file and came later"),
        _ => format!("changes {} are in the same file and came later", format::list(&numbers)),
    };
    let which = if numbers.len() == 1 { "both" } else { "all of them" };
    let hint = Some(format!("`yolo undo {} {}` undoes {which}", numbers.join(" "), record.number));
    Outlook::Blocked { why, hint, can_force, later }
}

/// Whether nothing of a change was made.
pub(super) fn is_unmade(record: &Record, folder: &Path) -> bool {
    record.steps.iter().all(|step| match step {
        Step::File { path, before, .. } => {
            let is_before =
                saved(folder, before.as_deref()).and_then(|before| Ok(files::read(path)? == before));
            is_before.unwrap_or(false)
        }
        Step::Download { path, .. } | Step::Folder { path } => path.symlink_metadata().is_err(),
        Step::Permissions { path, before, .. } => files::mode_of(path) == Some(*before),
        Step::Ldconfig => true,
        Step::LinuxProgram { .. } => false,
    })
}

/// A copy in the folder of a record.
pub(super) fn saved(folder: &Path, name: Option<&str>) -> io::Result<Option<Vec<u8>>> {
    name.map(|name| std::fs::read(folder.join(name))).transpose()
}

/// As [`find()`], for a step of this record. The small file that belongs to a download, such as the one that
/// names the selected libtorch, may have changed since, which keeps nobody from removing the download.
pub(super) fn find_in(record: &Record, step: &Step, folder: &Path, dirs: &YoloDirs) -> Found {
    let belongs_to_download = matches!(step, Step::File { .. })
        && record.steps.iter().any(|step| matches!(step, Step::Download { .. }));
    match find(step, folder, dirs) {
        Found::Other { .. } | Found::Merged(_) | Found::Extended(_) if belongs_to_download => Found::Before,
        found => found,
    }
}

/// Compares what a step is about with what is there.
fn find(step: &Step, folder: &Path, dirs: &YoloDirs) -> Found {
    match step {
        Step::File { path, before, after } => file(path, before.as_deref(), after.as_deref(), folder)
            .and_then(|found| match found {
                Found::Before | Found::After(_) => Ok(found),
                _ if *path != dirs.variables() => Ok(found),
                _ => variables(path, before.as_deref(), after.as_deref(), folder, found),
            })
            .unwrap_or_else(|error| Found::Other {
                why: format!("{} cannot be compared: {error}", path.display()),
                can_force: false,
            }),
        Step::Download { path, sha256 } => download(path, sha256.as_deref(), dirs),
        Step::Folder { path } => match std::fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_none() {
                    Found::After(0)
                } else {
                    Found::Before
                }
            }
            Err(_) => Found::Before,
        },
        Step::Permissions { path, before, after } => match files::mode_of(path) {
            None => Found::Before,
            Some(mode) if mode == *before => Found::Before,
            Some(mode) if mode == *after => Found::After(0),
            Some(mode) => Found::Other {
                why: format!("the permissions of {} are {mode:o} by now, not {after:o}", path.display()),
                can_force: true,
            },
        },
        Step::Ldconfig | Step::LinuxProgram { .. } => Found::After(0),
    }
}

fn file(path: &Path, before: Option<&str>, after: Option<&str>, folder: &Path) -> io::Result<Found> {
    let (before, after) = (saved(folder, before)?, saved(folder, after)?);
    let present = files::read(path)?;
    if present == before {
        return Ok(Found::Before);
    }
    if present == after {
        return Ok(Found::After(0));
    }
    let (Some(present), Some(after)) = (&present, &after) else {
        let why = match present {
            None => format!("{} was removed since", path.display()),
            Some(_) => format!("there is a new {}", path.display()),
        };
        return Ok(Found::Other { why, can_force: true });
    };
    let before = before.as_deref().unwrap_or_default();
    if let Some(merged) = added_at_an_end(before, after, present) {
        return Ok(Found::Extended(merged));
    }
    // Only lines that the change wrote are undone: what it wrote is the ancestor of both.
    match diffy::merge_bytes(after, present, before) {
        Ok(merged) if merged != *present => Ok(Found::Merged(merged)),
        _ => Ok(Found::Other {
            why: format!("{} was edited since, in the same lines", path.display()),
            can_force: true,
        }),
    }
}

/// The file of variables, whose lines stand alone. `found` is what a comparison as of any other file has found.
fn variables(
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
    folder: &Path,
    found: Found,
) -> io::Result<Found> {
    let Some(present) = files::read(path)? else { return Ok(found) };
    let (before, after) = (saved(folder, before)?, saved(folder, after)?);
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    Ok(match lines::without(&before, &after, &present) {
        Lines::AsBefore => Found::Before,
        Lines::Without(rest) => Found::Lines(rest),
        Lines::Changed => found,
    })
}

/// The lines that were only added before or after everything else, with what was there before the change. A merge takes
/// lines next to each other for the same place. A section that the change began may hold the added lines, so it stays.
fn added_at_an_end(before: &[u8], after: &[u8], present: &[u8]) -> Option<Vec<u8>> {
    let sections =
        |text: &[u8]| text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"[")).count();
    let is_whole = |text: &[u8]| text.is_empty() || text.ends_with(b"\n");
    if sections(before) != sections(after) || !is_whole(before) || !is_whole(after) {
        return None;
    }
    match (present.strip_prefix(after), present.strip_suffix(after)) {
        (Some(rest), _) => Some([before, rest].concat()),
        (_, Some(start)) if is_whole(start) => Some([start, before].concat()),
        _ => None,
    }
}

// Invariant: only what setup can bring again is removed, never data sets, runs or a user's own weights.
fn download(path: &Path, sha256: Option<&str>, dirs: &YoloDirs) -> Found {
    let Ok(data) = path.symlink_metadata() else { return Found::Before };
    let other = |why: String| Found::Other { why, can_force: false };
    if !data.is_dir() {
        return match sha256 {
            Some(sum) if files::sha256_of(path).is_ok_and(|now| now == sum) => Found::After(data.len()),
            Some(_) => other(format!("{} is not the file that was installed", path.display())),
            // A download that was interrupted: the file may be older.
            None => other(format!("{} may be older than the interrupted change", path.display())),
        };
    }
    let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    let parent = path.parent();
    if is_plain && [dirs.libtorch().as_path(), dirs.cache()].iter().any(|place| parent == Some(*place)) {
        Found::After(folder_size(path))
    } else {
        other(format!("{} is not in a folder of libtorch or the cache", path.display()))
    }
}

/// The later change that installed the same thing.
fn replaced_by(record: &Record, all: &[Record]) -> Option<u64> {
    let place = |step: &Step| match step {
        Step::Download { path, .. } => Some(path.clone()),
        _ => None,
    };
    let own: Vec<_> = record.steps.iter().filter_map(place).collect();
    let is_later = |other: &&Record| other.number > record.number && other.is_in_force();
    let same = |other: &&Record| other.steps.iter().filter_map(place).any(|path| own.contains(&path));
    all.iter().filter(is_later).find(same).map(|other| other.number)
}

/// The later changes of the same file, the last one first.
fn later_changes(record: &Record, step: &Step, all: &[Record]) -> Vec<u64> {
    let is_same = |other: &Step| matches!(other, Step::File { .. }) && other.path() == step.path();
    let later = all.iter().filter(|other| other.number > record.number && other.state == State::Made);
    let mut numbers: Vec<u64> = later
        .filter(|other| other.undoes.is_none() && other.steps.iter().any(is_same))
        .map(|other| other.number)
        .collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers
}

/// What undoing a step does, as a sentence without a period.
fn how(step: &Step, found: &Found) -> Option<String> {
    let shown = step.path().map(|path| path.display().to_string()).unwrap_or_default();
    Some(match (step, found) {
        (_, Found::Before) => return None,
        (Step::File { .. }, Found::Lines(None)) => format!("remove {shown}, in which nothing else is left"),
        (Step::File { .. }, Found::Merged(_) | Found::Extended(_) | Found::Lines(_)) => {
            format!("remove yolo's lines from {shown}, which was edited since, and keep the others")
        }
        (Step::File { before: None, .. }, _) => format!("remove {shown}"),
        (Step::File { .. }, _) => format!("restore {shown}"),
        (Step::Download { .. }, _) => format!("remove {shown}, which `yolo setup` can install again"),
        (Step::Folder { .. }, _) => format!("remove the empty folder {shown}"),
        (Step::Permissions { before, .. }, _) => format!("set the permissions of {shown} to {before:o}"),
        (Step::Ldconfig, _) => "run ldconfig".to_owned(),
        (Step::LinuxProgram { distribution }, _) => {
            format!("remove /opt/yolo from the distribution {distribution}, and nothing else")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_at_the_end_are_kept_unless_a_section_of_the_change_holds_them() {
        let merged = |before: &str, after: &str, present: &str| {
            added_at_an_end(before.as_bytes(), after.as_bytes(), present.as_bytes())
                .map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(merged("", "A=1\n", "A=1\nB=2\n").as_deref(), Some("B=2\n"));
        assert_eq!(merged("C=3\n", "C=3\nA=1\n", "B=2\nC=3\nA=1\n").as_deref(), Some("B=2\nC=3\n"));
        assert_eq!(merged("", "[wsl2]\nmemory=8GB\n", "[wsl2]\nmemory=8GB\nswap=0\n"), None);
        assert_eq!(merged("", "A=1\n", "A=2\n"), None);
    }
}
