//! Plans the changes for the findings: each change once, described, with its undo, and as a command
//! for the user to run if this process lacks the rights.

use std::path::Path;

use yolo_base::env::LD_LIBRARY_PATH;
use yolo_checks::shell_quote::quote;
use yolo_checks::{Change, Edit};

use super::super::report::Report;
use super::variables;
use crate::dirs::YoloDirs;
use crate::undo::can_write;

/// The dynamic loader's list of additional folders in WSL.
pub(super) const LOADER_CONFIG: &str = "/etc/ld.so.conf.d/ld.wsl.conf";

/// One planned change.
#[derive(Debug)]
pub(super) struct PlannedChange {
    /// The finding that it fixes.
    pub(super) id: &'static str,
    pub(super) change: Change,
    pub(super) text: String,
    pub(super) undo: String,
    /// The command to run by hand, if the change needs other rights.
    pub(super) by_hand: Option<String>,
}

/// The changes that fix the findings.
pub(super) fn of(report: &Report<'_>, dirs: &YoloDirs) -> Vec<PlannedChange> {
    let mut changes: Vec<PlannedChange> = Vec::new();
    for finding in report.findings() {
        let Some(remedy) = &finding.remedy else { continue };
        for change in &remedy.changes {
            // Two findings may need the same change, and an earlier repair may have made it.
            if changes.iter().any(|planned| planned.change == *change) || variables::contains(dirs, change) {
                continue;
            }
            let undo = remedy.undo.clone().unwrap_or_default();
            let by_hand = by_hand(change, finding.id);
            // Without root, a variable has the same effect for this user as the loader's file for all.
            if let (Change::LoaderFolder { folder }, Some(_)) = (change, &by_hand) {
                let value = Some(format!("{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"));
                let change = Change::Variable { name: LD_LIBRARY_PATH.to_owned(), value };
                if !variables::contains(dirs, &change) {
                    let text = describe(&change, dirs);
                    changes.push(PlannedChange {
                        id: finding.id,
                        change,
                        text,
                        undo: undo.clone(),
                        by_hand: None,
                    });
                }
            }
            let text = describe(change, dirs);
            changes.push(PlannedChange { id: finding.id, change: change.clone(), text, undo, by_hand });
        }
    }
    // Folders are unlocked first: other changes may need to write there.
    changes.sort_by_key(|planned| {
        !matches!(planned.change, Change::MakeFolder { .. } | Change::Permissions { .. })
    });
    changes
}

fn describe(change: &Change, dirs: &YoloDirs) -> String {
    match change {
        Change::Settings { file, edits, .. } if edits.is_empty() => {
            format!("convert {file} to UTF-8, which every WSL version reads")
        }
        Change::Settings { file, edits, .. } => {
            let edits: Vec<String> = edits.iter().map(edit).collect();
            format!("in {file}: {}", edits.join(", "))
        }
        Change::Variable { name, value } => {
            let file = variables::file(dirs);
            match value {
                Some(value) => format!("set {name} to {value} in {}, which you then source", file.display()),
                None => format!("unset {name} in {}, which you then source", file.display()),
            }
        }
        Change::LoaderFolder { folder } => {
            format!("add {folder} to {LOADER_CONFIG} and run ldconfig, so that the loader searches it")
        }
        Change::MakeFolder { path } => format!("create the folder {path}"),
        Change::Permissions { path, add } => format!("add the permissions {add:o} to {path}"),
        Change::Remove { path } => format!("remove {path}"),
        Change::EndProcess { pid, name } => format!("end process {pid} ({name})"),
    }
}

fn edit(edit: &Edit) -> String {
    match &edit.value {
        Some(value) => format!("{} = {value} under [{}]", edit.key, edit.section),
        None => format!("remove {} from [{}]", edit.key, edit.section),
    }
}

/// The command to run by hand if this process lacks the rights for the change.
fn by_hand(change: &Change, id: &str) -> Option<String> {
    match change {
        Change::Settings { file, .. } if !can_write(Path::new(file)) => {
            let program =
                std::env::current_exe().map_or("yolo".to_owned(), |path| path.display().to_string());
            Some(format!("sudo {} doctor --fix --yes --only {id}", quote(&program)))
        }
        Change::LoaderFolder { folder } if !can_write(Path::new(LOADER_CONFIG)) => {
            Some(format!("echo {} | sudo tee -a {LOADER_CONFIG} && sudo ldconfig", quote(folder)))
        }
        Change::MakeFolder { path } => {
            let parent = Path::new(path).ancestors().skip(1).find(|parent| parent.exists());
            let can = parent.is_some_and(can_write);
            let path = quote(path);
            (!can).then(|| format!("sudo mkdir -p {path} && sudo chown \"$(id -u)\" {path}"))
        }
        _ => None,
    }
}
