//! Whether the file systems of libtorch and of the trainer let programs be loaded from them: a file system that is
//! mounted `noexec` refuses libraries too, with `failed to map segment from shared object`.

use yolo_base::env::YOLO_HOME;

use crate::checks::{Answer, Check};
use crate::facts::{FileSystem, Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "May libtorch be loaded from its disk?",
    reports: &["libraries.noexec"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let is_named = places.libtorch_named.is_some();
    let libtorch = places.libtorch.or(places.data);
    let trainer = places.trainer.and_then(|path| Some(path.rsplit_once('/')?.0.to_owned()));
    let folders = [("libtorch", libtorch), ("yolo-trainer", trainer)];
    let refused = folders.into_iter().find_map(|(what, folder)| {
        let folder = folder?;
        let disk = host.file_system(&folder).ok()?;
        disk.options.iter().any(|option| option == "noexec").then_some((what, folder, disk))
    });
    let Some((what, folder, disk)) = refused else { return Ok(Vec::new()) };
    let mount = disk.mount.clone().unwrap_or_else(|| folder.clone());
    let title = format!("{what} cannot be loaded from {folder}: {mount} is mounted noexec");
    let finding = Finding::new("libraries.noexec", title);
    Ok(vec![remedy(host, finding, &mount, &disk, what == "libtorch" && is_named)])
}

fn remedy(host: &Host, finding: Finding, mount: &str, disk: &FileSystem, is_named: bool) -> Finding {
    let program = match host.place() {
        Place::Docker | Place::DockerInWsl => Some("docker"),
        Place::Podman => Some("podman"),
        _ => None,
    };
    // Docker mounts those of --tmpfs so unless told otherwise.
    if let (Some(program), Some("tmpfs")) = (program, disk.kind.as_deref()) {
        return finding
            .remedy("start the container with `exec` among the options of this file system, or with a volume instead")
            .command(format!("{program} run --tmpfs {mount}:exec …"));
    }
    let elsewhere = if is_named {
        "move the folder that LIBTORCH names to another file system, without noexec".to_owned()
    } else {
        format!("set {YOLO_HOME} to a folder on another file system, without noexec, and run `yolo setup`")
    };
    if mount == "/" || !host.is_own_machine() {
        return finding.remedy(elsewhere);
    }
    finding
        .remedy(format!(
            "{elsewhere}; or have {mount} mounted with exec, which lasts only if /etc/fstab says so too, and may be \
             against the rules of whoever administers this machine"
        ))
        .command(format!("sudo mount -o remount,exec {mount}"))
}
