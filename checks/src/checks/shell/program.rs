//! Whether the `yolo` command starts this program. Ultralytics' Python package installs a command of
//! the same name, and the first one on PATH is used.

use yolo_base::env::PATH;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::join;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the `yolo` command start this program?",
    reports: &["shell.other-yolo"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    let Some(ours) = host.places()?.program else { return Ok(Vec::new()) };
    let path = host.env(PATH)?.unwrap_or_default();
    let is_windows = host.os()? == "windows";
    let (separator, name) = if is_windows { (';', "yolo.exe") } else { (':', "yolo") };
    let same = |path: &str| if is_windows { path.eq_ignore_ascii_case(&ours) } else { path == ours };
    let folders: Vec<&str> = path.split(separator).map(|folder| folder.trim_matches('"')).collect();
    for folder in folders.iter().filter(|folder| !folder.is_empty()) {
        let there = join(folder, name);
        if same(&there) {
            return Ok(Vec::new());
        }
        if host.exists(&there) != Ok(true) {
            continue;
        }
        let link = host.link(&there).ok().flatten().map(|target| join(folder, &target));
        if link.is_some_and(|target| same(&target)) {
            return Ok(Vec::new());
        }
        return Ok(vec![finding(host, &ours, &there, &folders)]);
    }
    Ok(Vec::new())
}

fn finding(host: &Host, ours: &str, other: &str, folders: &[&str]) -> Finding {
    let head = host.head(other).ok().flatten().unwrap_or_default();
    let head = String::from_utf8_lossy(&head);
    let whose = if head.contains("ultralytics") {
        "Ultralytics' Python program"
    } else if head.starts_with("#!") && head.lines().next().is_some_and(|line| line.contains("python")) {
        "a Python program"
    } else {
        "another program"
    };
    let folder = crate::facts::view::data_set::parent(ours).unwrap_or_default();
    let listed = folders.iter().any(|one| one.trim_end_matches(['/', '\\']) == folder);
    let title = format!("`yolo` starts {whose}, {other}");
    let finding = Finding::new("shell.other-yolo", title).seen(format!("this program is {ours}"));
    // A program started by its path, as `cargo run` does, need not be on PATH.
    let finding = if listed { finding } else { finding.status(Status::Info) };
    // The shell parses an alias twice, so a path that needs quotes needs them twice.
    let word = quote(ours);
    finding.command(if word == ours {
        format!("alias yolo={word}")
    } else {
        format!("alias yolo=\"{word}\"")
    })
}
