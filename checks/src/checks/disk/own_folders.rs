//! Whether `yolo` can store its files: the folder in YOLO_HOME exists, and this user may write to
//! the folders for libtorch, weights, data sets, settings and the cache.

use yolo_base::env::YOLO_HOME;

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
    reports: &["disk.own-folders", "disk.own-folder-missing", "disk.own-folder-locked", "disk.noexec"],
    preflight: true,
    run,
};

/// Data folders that setup fills, and their purposes.
const FILLED: [(&str, &str); 3] =
    [("libtorch", "libtorch"), ("weights", "weights"), ("datasets", "data sets")];
/// Read, write and search for the owner.
const OWNER: u32 = 0o700;

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
    if let Some(finding) = places.data.as_deref().and_then(|data| without_programs(host, data)) {
        return Ok(vec![finding]);
    }
    let folders = [
        ("libtorch, weights and data sets", places.data.clone(), Status::Error),
        ("settings", places.config, Status::Warning),
        ("the cache", places.cache, Status::Warning),
    ];
    let mut known = 0;
    for (purpose, folder, status) in folders {
        let Some(folder) = folder else { continue };
        // A folder that does not exist yet is created when needed.
        let Some(stat) = host.stat(&folder)? else {
            // The other folders are below the same home.
            if findings.is_empty() {
                findings
                    .extend(not_to_be_created(host, &folder, purpose).map(|finding| finding.status(status)));
            }
            continue;
        };
        known += 1;
        if stat.writable == Some(false) {
            findings.push(locked(host, &folder, purpose, &stat).status(status));
        }
    }
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

/// A folder that does not exist and cannot be created, as for a user of a container whose home is `/`.
fn not_to_be_created(host: &Host, folder: &str, purpose: &str) -> Option<Finding> {
    let mut above = parent(folder)?;
    let stat = loop {
        match host.stat(&above).ok()? {
            Some(stat) => break stat,
            None if above == "/" => return None,
            None => above = parent(&above)?,
        }
    };
    if stat.writable != Some(false) {
        return None;
    }
    let title = format!("{folder} ({purpose}) cannot be created: {above} is not writable");
    let finding = Finding::new("disk.own-folder-locked", title);
    Some(
        finding
            .because("this user's home folder does not exist or belongs to somebody else, which is usual in containers")
            .remedy("set YOLO_HOME to a folder of your own, such as one on a volume, or set HOME")
            .command("export YOLO_HOME=/tmp/yolo"),
    )
}

/// A disk from which no program and no library can be started, as some clusters mount their scratch space.
fn without_programs(host: &Host, data: &str) -> Option<Finding> {
    let disk =
        host.file_system(data).ok().filter(|disk| disk.options.iter().any(|option| option == "noexec"))?;
    let title = format!("{data} is on a disk from which programs cannot be started (noexec)");
    let mount = disk.mount.unwrap_or_else(|| data.to_owned());
    Some(Finding::new("disk.noexec", title).seen(format!("{mount} is mounted with noexec")))
}

fn locked(host: &Host, folder: &str, purpose: &str, stat: &Stat) -> Finding {
    let mode = stat.mode.as_deref().unwrap_or("of unknown permissions");
    let title = format!("{folder} ({purpose}) is not writable");
    let user = host.user().ok().and_then(|user| user.uid);
    let read_only =
        host.file_system(folder).is_ok_and(|disk| disk.options.iter().any(|option| option == "ro"));
    let finding = Finding::new("disk.own-folder-locked", title).seen(format!(
        "permissions {mode}, owner {}",
        stat.uid.map_or("unknown".to_owned(), |uid| uid.to_string())
    ));
    if read_only {
        return finding
            .because("its disk is mounted read-only")
            .remedy("remount the disk as writable, or set YOLO_HOME to a folder on another disk");
    }
    match (stat.uid, user) {
        (Some(owner), Some(user)) if owner == user => finding
            .command(format!("chmod u+rwx {}", quote(folder)))
            .change(Change::Permissions { path: folder.to_owned(), add: OWNER }),
        (Some(0), Some(user)) => finding
            .because("it belongs to root, perhaps after `sudo yolo`, and this user may not write to it")
            .command(format!("sudo chown -R {user} {}", quote(folder))),
        _ => finding.because("it belongs to another user"),
    }
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
        assert_eq!(changes, &[Change::Permissions { path: "/y/data/libtorch".to_owned(), add: OWNER }]);
    }
}
