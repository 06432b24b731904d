//! Whether the folder for temporary files has enough space and allows programs to run, which
//! building the trainer and unpacking archives need.

use yolo_base::env::TMPDIR;
use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{FileSystem, Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// What a build and an unpacked archive may use at a time.
const COMFORTABLE: u64 = 1_000_000_000;

pub(super) static CHECK: Check = Check {
    question: "Is the folder for temporary files usable?",
    reports: &["disk.temporary"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? == "windows" {
        return Ok(Vec::new());
    }
    let named = host.env(TMPDIR).ok().flatten().filter(|folder| !folder.is_empty());
    let folder = named.unwrap_or_else(|| "/tmp".to_owned());
    if host.exists(&folder) == Ok(false) {
        let title = format!("TMPDIR is {folder}, which does not exist");
        let finding = Finding::new("disk.temporary", title);
        return Ok(vec![if host.place() == Place::Apptainer {
            finding
                .because("the variable comes from outside of the container, which does not show that folder")
                .remedy("start the container with the folder, or with another value of the variable")
                .command("apptainer exec --nv --bind \"$TMPDIR\" …  # on the host")
                .command("apptainer exec --nv --env TMPDIR=/tmp …  # on the host")
        } else {
            finding.command("unset TMPDIR")
        }]);
    }
    let space = host.file_system(&folder)?;
    let what = if space.options.iter().any(|option| option == "noexec") {
        "does not allow programs to run (noexec)".to_owned()
    } else {
        let of_user = share_of_user(host, &space);
        match of_user.or(space.available) {
            // A full disk shared with other folders is reported once, by their check.
            Some(free) if free < COMFORTABLE && !super::space::is_reported_elsewhere(host, &space) => {
                match of_user {
                    Some(_) => format!(
                        "has only {} left for this user, who may use four fifths of it (tmpfs with usrquota)",
                        format::bytes(free)
                    ),
                    None => format!("has only {} free", format::bytes(free)),
                }
            }
            _ => return Ok(Vec::new()),
        }
    };
    let finding = Finding::new("disk.temporary", format!("{folder}, for temporary files, {what}"));
    if super::make_room::is_layer_of_apptainer(host, &space) {
        return Ok(vec![
            finding
                .because(super::make_room::OF_LAYER)
                .remedy(
                    "start the container with a folder of the host's disk for /tmp and /var/tmp (--workdir), or without --contain, -C and \
                     --no-home, so that it has those of the host",
                )
                .command("apptainer exec --nv --contain --workdir <folder> …  # on the host"),
        ]);
    }
    let finding = match share_of_user(host, &space) {
        Some(_) if host.is_own_machine() && what.contains("usrquota") => finding
            .because(
                "systemd from 258 on mounts /tmp in memory with a quota of four fifths for each ordinary user: writing fails with `Disk \
                 quota exceeded` although `df` shows free space; what lies there takes memory from a run",
            )
            .remedy(
                "remove old files there, or use a folder on a disk; to have /tmp on the disk again, `sudo systemctl mask tmp.mount` and a \
                 restart",
            ),
        _ => finding,
    };
    Ok(vec![match host.places().ok().and_then(|places| places.cache) {
        Some(cache) => {
            let folder = quote(&format!("{cache}/tmp"));
            finding.command(format!("mkdir -p {folder}")).command(format!("export TMPDIR={folder}"))
        }
        None => finding,
    }])
}

/// What an ordinary user may still write to a file system in memory with systemd's quota, if that is less than what is free.
fn share_of_user(host: &Host, space: &FileSystem) -> Option<u64> {
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    let has_quota = space.options.iter().any(|option| option.split('=').next() == Some("usrquota"));
    if space.kind.as_deref() != Some("tmpfs") || !has_quota || is_root {
        return None;
    }
    // The files there are mostly this user's.
    let (total, free) = (space.total?, space.available?);
    Some(free.saturating_sub(total / 5))
}
