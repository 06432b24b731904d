//! Whether a run reads or writes files on a Windows drive. WSL accesses those through a Windows file
//! server, which is many times slower for small files. The file system type decides, not the path,
//! because drives may be mounted anywhere.

use std::collections::BTreeMap;

use super::wsl_conf;
use crate::checks::{Answer, Check, one_drive};
use crate::facts::view::data_set::Described;
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the run avoid files on Windows drives?",
    reports: &["wsl.data-on-windows", "wsl.drive-permissions", "wsl.case-clash"],
    preflight: true,
    run,
};

/// What the results of runs are called.
const RUNS: &str = "the folder of runs";

fn run(host: &Host, intent: &Intent) -> Answer {
    let windows = host.is_windows()?;
    if !windows && host.wsl()?.is_none() {
        return Ok(Vec::new());
    }
    let places = host.places().unwrap_or_default();
    let working = places.working.clone().unwrap_or_default();
    let whole = |path: &str| {
        let absolute = path.starts_with('/') || path.contains(":\\") || working.is_empty();
        if absolute { path.to_owned() } else { format!("{}/{path}", working.trim_end_matches('/')) }
    };
    let yaml = intent.data.as_deref().filter(|name| name.contains(['/', '\\', '.'])).map(whole);
    // What is read again and again are the images, wherever the file is that describes them.
    let is_there = |path: &str| host.file_system(path).is_ok_and(|system| system.is_windows_drive());
    let data = yaml.as_ref().map(|yaml| {
        let elsewhere = images(host, yaml).filter(|images| !windows && is_there(images) != is_there(yaml));
        elsewhere.unwrap_or_else(|| yaml.clone())
    });
    let runs = intent.project.as_deref().map(whole).or(places.working);
    let folders = [
        ("the data set", data.clone()),
        ("libtorch and yolo's data sets", places.data),
        // Last, because its files are few.
        (RUNS, runs),
    ];
    let mut slow = Vec::new();
    let mut unknown = None;
    let mut known = false;
    for (what, path) in
        folders.into_iter().filter_map(|(what, path)| Some((what, path?))).filter(|_| !windows)
    {
        match host.file_system(&path) {
            Ok(system) if system.is_windows_drive() => slow.push((what, path, system)),
            Ok(_) => known = true,
            Err(why) => unknown = Some(why),
        }
    }
    if let (true, false, Some(why)) = (slow.is_empty(), known, unknown) {
        return Err(why);
    }
    let mut findings = Vec::new();
    if let Some((what, path, system)) = slow.first() {
        let kind = system.kind.as_deref().unwrap_or("9p");
        let mut finding =
            Finding::new("wsl.data-on-windows", format!("{what} is on a Windows drive: {path}")).seen(
                format!(
                    "file system {kind}, mounted at {}",
                    system.mount.as_deref().unwrap_or("a Windows drive")
                ),
            );
        for (what, path, _) in &slow[1..] {
            finding = finding.seen(format!("{what} too: {path}"));
        }
        let is_in_cloud = Some(path) == data.as_ref() && one_drive::holds(path);
        if is_in_cloud {
            finding = finding.because(one_drive::CAUSE);
        }
        findings.push(match Some(path) == data.as_ref() {
            // The files of a container are lost with it.
            _ if host.is_container() => finding.remedy(
                "copy it to a volume of Docker or to the Linux files of a WSL distribution, and mount that into the \
                 container instead",
            ),
            true if is_in_cloud => finding
                .remedy(format!(
                    "{}; then let yolo copy it to the Linux file system once, with --data-to-linux",
                    one_drive::KEEP
                ))
                .command(format!("yolo train --data {} --data-to-linux", quote(yaml.as_deref().unwrap_or(path)))),
            true => finding
                .remedy(
                    "let yolo copy it to the Linux file system once: --data-to-linux checks what it has copied, continues \
                     after an interruption, and later copies only what has changed",
                )
                .command(format!(
                    "yolo train --data {} --data-to-linux",
                    quote(yaml.as_deref().unwrap_or(path))
                )),
            // A few large files of results are no trouble, and nobody wants a copy of a whole folder.
            false if *what == RUNS => {
                let finding = if intent.data.is_some() { finding.status(Status::Info) } else { finding };
                finding.remedy(
                    "nothing, if you want the results there; data sets belong on the Linux file system, to which yolo copies them once \
                     with --data-to-linux; to keep results in Linux too, name a folder with `--project ~/runs`",
                )
            }
            false => finding.remedy(
                "set YOLO_HOME to a folder of the Linux file system, or unset it: yolo then installs there what it needs",
            ),
        });
        // A drive that fails has other problems than its permissions.
        let fails = |path: &str| {
            host.stat(path).is_err_and(|why| why.0.to_lowercase().contains("input/output error"))
        };
        if !slow.iter().any(|(_, path, _)| fails(path) || fails(folder_of(path))) {
            findings.extend(permissions(host, system, path));
        }
    }
    let is_slow = data.is_some_and(|data| slow.iter().any(|(_, path, _)| *path == data));
    if let Some(yaml) = yaml.filter(|_| windows || is_slow) {
        findings.extend(case_clash(host, &yaml));
    }
    Ok(findings)
}

/// The folder or list of the images of training that a YAML file names, if it is known.
fn images(host: &Host, yaml: &str) -> Option<String> {
    let Ok(Described::Yaml(set)) = host.data_set(yaml) else { return None };
    let entry = set.entries("train").into_iter().next()?;
    set.place(host, &entry).ok().flatten()
}

/// The folder of a YAML file.
fn folder_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((folder, file)) if file.contains(".y") && !folder.is_empty() => folder,
        _ => path,
    }
}

fn permissions(host: &Host, system: &FileSystem, path: &str) -> Option<Finding> {
    if system.options.is_empty() || system.options.iter().any(|option| option == "metadata") {
        return None;
    }
    let title = format!("the drive of {path} does not store Linux permissions: chmod has no effect there");
    let finding = Finding::new("wsl.drive-permissions", title);
    let conf = host.wsl_conf().ok();
    let options = conf.as_ref().and_then(|conf| conf.value("automount", "options"));
    let options = options.map(|set| set.trim().trim_matches('"')).filter(|set| !set.is_empty());
    let options = options.map_or_else(|| "metadata".to_owned(), |set| format!("{set},metadata"));
    let finding = finding.command(wsl_conf::set(host, "automount", "options", &format!("\"{options}\"")));
    Some(finding.command(super::SHUTDOWN))
}

/// Two images whose names differ only in case: Windows treats them, and their labels, as one file.
fn case_clash(host: &Host, data: &str) -> Option<Finding> {
    let yaml = host.text(data).ok().flatten()?;
    let parent = data.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder);
    let value = |key: &str| {
        let line = yaml.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let value = line.split(" #").next().unwrap_or(line).trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    let below = |root: &str, path: &str| {
        if path.starts_with('/') || path.contains(':') { path.to_owned() } else { format!("{root}/{path}") }
    };
    let root = value("path").map_or(parent.to_owned(), |path| below(parent, &path));
    for folder in ["train", "val"].iter().filter_map(|key| Some(below(&root, &value(key)?))) {
        let Ok(Some(names)) = host.folder(&folder) else { continue };
        let mut seen: BTreeMap<String, &String> = BTreeMap::new();
        for name in &names {
            if let Some(first) = seen.insert(name.to_lowercase(), name) {
                let title = format!("{first} and {name} in {folder} differ only in case");
                return Some(Finding::new("wsl.case-clash", title));
            }
        }
    }
    None
}
