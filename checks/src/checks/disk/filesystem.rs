//! Whether the data set lies on a disk that can feed ranks: network drives answer slowly and lose
//! their locks, and a folder that may not be written cannot keep the list of verified images.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, Described, label_of, parent};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// File systems that other machines serve, as /proc/mounts names them.
const NETWORK: [&str; 15] = [
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
    "fuse.glusterfs",
    "afs",
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
    // A data set that has a name only is fetched into yolo's own folder.
    if set.is_none() && intent.data.as_deref().is_some_and(|word| !word.contains(['/', '\\', '.'])) {
        return Ok(findings);
    }
    let images = set.as_ref().and_then(|set| folder_of_images(host, set));
    let places = host.places();
    // Where the yaml could not be read, the data set lies about it.
    let beside = || intent.data.as_deref().filter(|word| word.starts_with('/')).and_then(parent);
    let place = match images.clone().or_else(beside) {
        Some(place) => Some(place),
        None => places.clone()?.working,
    };
    if let Some(folder) = place
        && let Ok(space) = host.file_system(&folder)
        && let Some(kind) = space.kind.filter(|kind| NETWORK.contains(&kind.as_str()))
    {
        let title = format!("{folder} is on a network drive ({kind})");
        let finding = Finding::new("disk.network", title);
        // Images and labels are copied together: the folder that holds both.
        let whole = folder.rfind("/images").map(|at| folder[..at].to_owned());
        let working = places.as_ref().ok().and_then(|places| places.working.clone());
        findings.push(match (places.ok().and_then(|places| places.data), whole) {
            (Some(data), Some(whole)) => {
                let name = whole.rsplit('/').next().unwrap_or(&whole);
                let copy = format!("{data}/datasets/{name}");
                let to = quote(&format!("{data}/datasets/"));
                finding.command(format!("cp -r {} {to}", quote(&whole))).remedy(moved(
                    &whole_path(intent, working.as_deref()),
                    &whole,
                    &copy,
                ))
            }
            _ => finding,
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

/// Where the yaml lies; a name without a folder lies in the one that `yolo` was started in.
fn whole_path(intent: &Intent, working: Option<&str>) -> String {
    let yaml = intent.data.as_deref().unwrap_or_default();
    match working {
        Some(working) if !yaml.starts_with('/') => format!("{}/{yaml}", working.trim_end_matches('/')),
        _ => yaml.to_owned(),
    }
}

/// What to do with the yaml, which may lie in the folder that is copied and may name it.
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
