//! Whether the data set's disk is fast enough and writable: network drives are slow and lose locks,
//! and a read-only folder cannot hold the cache of verified images.

use super::remote::{self, Remote};
use crate::checks::{Answer, Check, one_drive};
use crate::facts::view::data_set::{DataSet, Described, label_of, parent};
use crate::facts::{FileSystem, Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// Folders of a host that a virtual machine or a container shares, file by file.
const SHARED: [&str; 10] = [
    "9p",
    "drvfs",
    "v9fs",
    "virtiofs",
    "vboxsf",
    "vmhgfs",
    "fuse.vmhgfs-fuse",
    "prl_fs",
    "fuse.grpcfuse",
    "fakeowner",
];

pub(super) static CHECK: Check = Check {
    question: "Is the data set's disk fast enough for the ranks?",
    reports: &["disk.network", "disk.labels-read-only"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let mut findings = Vec::new();
    let set = match intent.data.as_deref().map(|word| host.data_set(word)) {
        Some(Ok(Described::Yaml(set))) => Some(set),
        _ => None,
    };
    // A data set given only by name is downloaded into yolo's own folder.
    if set.is_none() && intent.data.as_deref().is_some_and(|word| !word.contains(['/', '\\', '.'])) {
        return Ok(findings);
    }
    let images = set.as_ref().and_then(|set| folder_of_images(host, set));
    let places = host.places();
    // If the YAML file could not be read, assume that the data set is next to it.
    let next_to_yaml = || intent.data.as_deref().filter(|path| path.starts_with('/')).and_then(parent);
    let place = match images.clone().or_else(next_to_yaml) {
        Some(place) => Some(place),
        None => places.clone()?.working,
    };
    // A run in WSL, where another check says so, or of other programs.
    if host.is_windows() == Ok(true)
        && let Some(folder) =
            images.as_ref().or(intent.data.as_ref()).filter(|folder| one_drive::holds(folder))
    {
        let title =
            format!("{folder} is in a folder of OneDrive, which may have the images in the cloud only");
        findings.push(
            Finding::new("disk.network", title)
                .because(one_drive::CAUSE)
                .remedy(format!("{}; or move the data set out of the folder of OneDrive", one_drive::KEEP)),
        );
    }
    if let Some(folder) = place
        && let Ok(space) = host.file_system(&folder)
    {
        let kind = space.kind.as_deref().filter(|kind| remote::of_kind(kind).is_some());
        findings.extend(match kind {
            Some(kind) => Some(on_network(host, intent, &folder, kind)),
            None => shared(host, &folder, &space),
        });
    }
    if let Some(folder) = images.and_then(|images| parent(&label_of(&format!("{images}/x.jpg"))))
        && let Some(above) = parent(&folder)
    {
        let may_not = host.stat(&above).ok().flatten().and_then(|stat| stat.writable) == Some(false);
        let is_read_only =
            || host.file_system(&above).is_ok_and(|space| space.options.iter().any(|one| one == "ro"));
        if may_not || is_read_only() {
            findings.push(Finding::new("disk.labels-read-only", format!("{above} is not writable")));
        }
    }
    Ok(findings)
}

/// A data set in a folder that the host of a virtual machine or container shares. A check of WSL's reports Windows
/// drives there, in containers too.
fn shared(host: &Host, folder: &str, space: &FileSystem) -> Option<Finding> {
    let kind = space.kind.as_deref().filter(|kind| SHARED.contains(kind))?;
    let is_of_wsl = host.wsl().is_ok_and(|wsl| wsl.is_some()) && space.is_windows_drive();
    if is_of_wsl || host.place() == Place::Wsl || host.os().is_ok_and(|os| os != "linux") {
        return None;
    }
    let title = format!("{folder} is on a folder that the host shares with this system ({kind})");
    Some(
        Finding::new("disk.network", title)
            .because(
                "each file is read through the host, which is many times slower than a disk of this system",
            )
            .remedy("copy the data set to a disk of this system"),
    )
}

/// A data set on a network drive. Parallel file systems of clusters are fast, and are where data belongs.
fn on_network(host: &Host, intent: &Intent, folder: &str, kind: &str) -> Finding {
    let remote = remote::of_kind(kind);
    if remote == Some(Remote::Parallel) {
        let title = format!("{folder} is on a parallel file system ({kind})");
        return Finding::new("disk.network", title)
            .because("such a file system reads fast, but opens many small files slowly")
            .remedy("nothing while the GPUs are busy; otherwise `--cache ram` keeps the images in memory");
    }
    let finding = match remote {
        Some(Remote::GoogleDrive) => {
            let title = format!("{folder} is on Google Drive ({kind})");
            let to = if host.place() == Place::Colab {
                "/content, the disk of the notebook"
            } else {
                "a local disk"
            };
            return Finding::new("disk.network", title)
                .because("each image is a request to Google, so an epoch takes hours instead of minutes")
                .remedy(format!(
                    "pack the data set into one archive on Google Drive, copy that to {to}, and unpack it there; the \
                     results may stay on Google Drive, with --project"
                ));
        }
        _ => Finding::new("disk.network", format!("{folder} is on a network drive ({kind})")),
    };
    // Images and labels are copied together: the folder that contains both.
    let whole = folder.rfind("/images").map(|at| &folder[..at]);
    let places = host.places().unwrap_or_default();
    let is_local = |path: &String| {
        let kind = host.file_system(path).ok().and_then(|space| space.kind);
        kind.is_none_or(|kind| remote::of_kind(&kind).is_none() && !SHARED.contains(&kind.as_str()))
    };
    match (places.data.filter(is_local), whole) {
        (Some(data), Some(whole)) => {
            let name = whole.rsplit('/').next().unwrap_or(whole);
            let copy = format!("{data}/datasets/{name}");
            let to = quote(&format!("{data}/datasets/"));
            finding.command(format!("cp -r {} {to}", quote(whole))).remedy(moved(
                &whole_path(intent, places.working.as_deref()),
                whole,
                &copy,
            ))
        }
        _ => finding,
    }
}

/// The folder of the YAML file; a name without a folder is relative to where `yolo` was started.
fn whole_path(intent: &Intent, working: Option<&str>) -> String {
    let yaml = intent.data.as_deref().unwrap_or_default();
    match working {
        Some(working) if !yaml.starts_with('/') => format!("{}/{yaml}", working.trim_end_matches('/')),
        _ => yaml.to_owned(),
    }
}

/// What to do about the YAML file, which may be in the copied folder and may name it.
fn moved(yaml: &str, whole: &str, copy: &str) -> String {
    let inside = yaml.strip_prefix(whole).filter(|rest| rest.starts_with('/'));
    let copied = inside.map(|rest| format!("{copy}{rest}"));
    let then =
        copied.as_ref().map_or(String::new(), |yaml| format!(", and train with --data {}", quote(yaml)));
    format!(
        "copy the data set to a local disk, set `path: {copy}` in {}{then}",
        copied.as_deref().unwrap_or(yaml)
    )
}

/// The first folder of training images.
fn folder_of_images(host: &Host, set: &DataSet) -> Option<String> {
    let entry = set.entries("train").into_iter().next()?;
    set.place(host, &entry).ok().flatten().filter(|path| !path.ends_with(".txt"))
}
