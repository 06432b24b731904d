//! Whether the run's results are kept where they do not outlive the machine: in memory, or on the temporary disk that a
//! cloud gives to an instance and empties when that is stopped.

use yolo_base::mounts;

use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{is_absolute, join};
use crate::facts::{Guest, Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do the results of a run stay on disk?",
    reports: &["disk.ephemeral"],
    preflight: false,
    run,
};

/// What Azure writes on its temporary disk.
const OF_AZURE: &str = "DATALOSS_WARNING_README.txt";
/// The model of Amazon's disks that belong to the host of an instance.
const OF_AMAZON: &str = "Amazon EC2 NVMe Instance Storage";

fn run(host: &Host, intent: &Intent) -> Answer {
    // Scratch folders of jobs and the disks of containers are like that on purpose.
    if !intent.run || host.os()? != "linux" || host.place() != Place::Machine || host.job().is_some() {
        return Ok(Vec::new());
    }
    let working = host.places().ok().and_then(|places| places.working);
    let folder = match (&intent.project, working) {
        (Some(project), Some(working)) => join(&working, project),
        (Some(project), None) if is_absolute(project) => project.clone(),
        (None, Some(working)) => working,
        _ => return Ok(Vec::new()),
    };
    let Ok(space) = host.file_system(&folder) else { return Ok(Vec::new()) };
    let mount = space.mount.clone().unwrap_or_else(|| folder.clone());
    if matches!(space.kind.as_deref(), Some("tmpfs" | "ramfs")) {
        let title = format!("the results of the run go to {folder}, which is in memory ({mount} is a tmpfs)");
        return Ok(vec![Finding::new("disk.ephemeral", title).status(Status::Warning)]);
    }
    let is_of_cloud = matches!(host.guest(), Some(Guest::Cloud(_)));
    if mount == "/" || !is_of_cloud || !is_temporary(host, &folder, &mount) {
        return Ok(Vec::new());
    }
    let title =
        format!("the results of the run go to {folder}, on the temporary disk of this instance ({mount})");
    Ok(vec![Finding::new("disk.ephemeral", title).because(
        "the disk belongs to the host of the instance: it is empty after the instance was stopped, moved or interrupted, though not \
         after a restart",
    )])
}

fn is_temporary(host: &Host, folder: &str, mount: &str) -> bool {
    if host.exists(&format!("{mount}/{OF_AZURE}")) == Ok(true) {
        return true;
    }
    let table = host.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
    let is_disk = mounts::source_of(&table, folder).is_some_and(|source| source.starts_with("/dev/"));
    let model = |disk: &String| host.text(&format!("/sys/block/{disk}/device/model")).ok().flatten();
    is_disk && host.disks_of(folder).iter().filter_map(model).any(|model| model.trim() == OF_AMAZON)
}
