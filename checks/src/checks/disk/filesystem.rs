//! Whether the data set's disk is fast enough and writable: network drives are slow and lose locks,
//! and a read-only folder cannot hold the cache of verified images.

use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{DataSet, Described, label_of, parent};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

/// Network file systems, as named in /proc/mounts.
const NETWORK: [&str; 19] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "ceph",
    "lustre",
    "beegfs",
    "gpfs",
    "wekafs",
    "fuse.glusterfs",
    "afs",
    // Google Drive in a notebook of Colab.
    "fuse.drive",
    "fuse.google-drive-ocamlfuse",
    "fuse.blobfuse2",
];

/// Folders of a host that a virtual machine or a container shares, file by file.
const SHARED: [&str; 8] =
    ["9p", "drvfs", "v9fs", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse", "fuse.grpcfuse", "fakeowner"];

/// Those of clusters, which many machines read at the same time.
const PARALLEL: [&str; 5] = ["ceph", "lustre", "beegfs", "gpfs", "wekafs"];

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
    let place_of_data = place.clone();
    if let Some(folder) = place
        && let Ok(space) = host.file_system(&folder)
        && let Some(kind) = space.kind.filter(|kind| NETWORK.contains(&kind.as_str()))
    {
        findings.push(on_network(host, intent, &folder, &kind));
    } else if let Some(folder) = shared(host, place_of_data.as_deref()) {
        findings.push(folder);
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

/// A data set in a folder that the host of a virtual machine or container shares. WSL has a check of its own.
fn shared(host: &Host, folder: Option<&str>) -> Option<Finding> {
    let folder = folder.filter(|_| host.place() != Place::Wsl && host.os().is_ok_and(|os| os == "linux"))?;
    let kind = host.file_system(folder).ok()?.kind.filter(|kind| SHARED.contains(&kind.as_str()))?;
    let is_in_wsl = host.is_wsl2() == Ok(true);
    let (whose, cause, remedy) = if is_in_wsl {
        (
            "a Windows drive that is mounted into this container",
            "each file is read through a file server of Windows: the first epoch takes many times longer, and the GPU waits",
            "copy the data set to a volume of Docker or to the Linux files of a WSL distribution, and mount that instead",
        )
    } else {
        (
            "a folder that the host shares with this system",
            "each file is read through the host, which is many times slower than a disk of this system",
            "copy the data set to a disk of this system",
        )
    };
    let finding = Finding::new("disk.network", format!("{folder} is on {whose} ({kind})"))
        .because(cause)
        .remedy(remedy);
    Some(if is_in_wsl { finding.status(Status::Warning) } else { finding })
}

/// A data set on a network drive. Parallel file systems of clusters are fast, and are where data belongs.
fn on_network(host: &Host, intent: &Intent, folder: &str, kind: &str) -> Finding {
    if PARALLEL.contains(&kind) {
        let title = format!("{folder} is on a parallel file system ({kind})");
        return Finding::new("disk.network", title)
            .because("such a file system reads fast, but opens many small files slowly")
            .remedy("nothing while the GPUs are busy; otherwise `--cache ram` keeps the images in memory");
    }
    let finding = Finding::new("disk.network", format!("{folder} is on a network drive ({kind})"));
    // Images and labels are copied together: the folder that contains both.
    let whole = folder.rfind("/images").map(|at| &folder[..at]);
    let places = host.places().unwrap_or_default();
    let is_local = |path: &String| {
        let kind = host.file_system(path).ok().and_then(|space| space.kind);
        kind.is_none_or(|kind| !NETWORK.contains(&kind.as_str()))
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
