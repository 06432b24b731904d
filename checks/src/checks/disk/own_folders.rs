//! Whether `yolo` can store its files: the folder in YOLO_HOME exists, and this user may write to
//! the folders for libtorch, weights, data sets, settings and the cache.

use yolo_base::env::YOLO_HOME;

use super::new_folders::{Impossible, cannot_create};
use super::unlock;
use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{is_absolute, join, parent};
use crate::facts::{Host, Stat};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Are yolo's own folders writable?",
    reports: &["disk.own-folders", "disk.own-folder-missing", "disk.own-folder-locked"],
    preflight: true,
    run,
};

/// Data folders that setup fills, and their purposes.
const FILLED: [(&str, &str); 3] =
    [("libtorch", "libtorch"), ("weights", "weights"), ("datasets", "data sets")];

fn run(host: &Host, _: &Intent) -> Answer {
    let places = host.places()?;
    let mut findings = Vec::new();
    if let Some(home) = host.env(YOLO_HOME)?.filter(|home| is_absolute(home))
        && host.stat(&home)?.is_none()
    {
        // A new folder is normal; one without a parent is a drive that is not mounted.
        let is_lost = match parent(&home).filter(|parent| parent != "/") {
            Some(parent) => host.stat(&parent)?.is_none(),
            None => false,
        };
        let status = if is_lost { Status::Warning } else { Status::Info };
        let command = if host.is_windows().unwrap_or(false) {
            format!("mkdir \"{home}\"")
        } else {
            format!("mkdir -p {}", quote(&home))
        };
        let title = format!("YOLO_HOME is {home}, which does not exist");
        findings.push(
            Finding::new("disk.own-folder-missing", title)
                .status(status)
                .command(command)
                .change(Change::MakeFolder { path: home }),
        );
        return Ok(findings);
    }
    let folders = [
        ("libtorch, weights and data sets", places.data.clone(), Status::Error),
        ("settings", places.config, Status::Warning),
        ("the cache", places.cache, Status::Warning),
    ];
    let mut known = 0;
    let mut impossible: Vec<Impossible> = Vec::new();
    for (purpose, folder, status) in folders {
        let Some(folder) = folder else { continue };
        let stat = match host.stat(&folder) {
            Ok(Some(stat)) => stat,
            // A folder that does not exist yet is created when needed, if that is possible.
            Ok(None) => {
                impossible.extend(Impossible::find(host, purpose, folder, status));
                continue;
            }
            Err(why) => match Impossible::find(host, purpose, folder, status) {
                Some(found) => {
                    impossible.push(found);
                    continue;
                }
                None => return Err(why),
            },
        };
        known += 1;
        if stat.writable == Some(false) {
            findings.push(locked(host, &folder, purpose, &stat).status(status));
        }
    }
    findings.extend(cannot_create(host, &impossible));
    // If a folder is not writable, nothing can be done below it yet.
    let is_open = |data: &String| matches!(host.stat(data), Ok(Some(stat)) if stat.writable != Some(false));
    if let Some(data) = places.data.filter(is_open) {
        for (name, purpose) in FILLED {
            let folder = join(&data, name);
            if let Ok(Some(stat)) = host.stat(&folder)
                && stat.writable == Some(false)
            {
                findings.push(locked(host, &folder, purpose, &stat).status(Status::Error));
            }
        }
    }
    if findings.is_empty() && known > 0 {
        findings.push(Finding::ok("disk.own-folders", "yolo's own folders are writable"));
    }
    Ok(findings)
}

fn locked(host: &Host, folder: &str, purpose: &str, stat: &Stat) -> Finding {
    let title = format!("{folder} ({purpose}) is not writable");
    unlock::with_remedy(host, Finding::new("disk.own-folder-locked", title), folder, stat)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_folder_that_setup_fills_may_be_locked_by_itself() {
        let folder = |mode: &str, writable: bool| json!({ "kind": "folder", "mode": mode, "uid": 1000, "writable": writable });
        let (host, _) = Host::from_value(json!({
            "version": 1,
            "os": "linux",
            "user": { "uid": 1000, "name": "mara" },
            "places": { "data": "/y/data" },
            "env": {},
            "stats": { "/y/data": folder("0755", true), "/y/data/libtorch": folder("0500", false) },
        }))
        .unwrap();
        let findings = run(&host, &Intent::default()).unwrap();
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(
            (finding.id, finding.status, finding.title.as_str()),
            ("disk.own-folder-locked", Status::Error, "/y/data/libtorch (libtorch) is not writable")
        );
        let changes = &finding.remedy.as_ref().unwrap().changes;
        assert_eq!(changes, &[Change::Permissions { path: "/y/data/libtorch".to_owned(), add: 0o700 }]);
    }
}
