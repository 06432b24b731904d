//! Folders of yolo that cannot be created, because this user may not write to the folder above: a container
//! whose user has no home folder, a home that belongs to another user, or the home of a service.

use std::collections::BTreeSet;

use yolo_base::env::{HOME, YOLO_HOME};

use super::{in_container, root_squash, unlock};
use crate::facts::view::data_set::parent;
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::shell_quote::quote;
use crate::status::Status;

/// A folder that does not exist and cannot be created.
pub(super) struct Impossible {
    purpose: &'static str,
    folder: String,
    status: Status,
    /// The nearest folder above that exists, to which this user may not write.
    above: String,
}

impl Impossible {
    /// The folder, if it cannot be created; `None` also if that is unknown.
    pub(super) fn find(host: &Host, purpose: &'static str, folder: String, status: Status) -> Option<Self> {
        let mut above = parent(&folder)?;
        loop {
            match host.stat(&above) {
                Ok(Some(stat)) => {
                    let may_not = stat.writable == Some(false);
                    // The check of the disks reports those that are mounted read-only.
                    let is_read_only = || {
                        host.file_system(&above)
                            .is_ok_and(|disk| disk.options.iter().any(|option| option == "ro"))
                    };
                    return (may_not && !is_read_only()).then_some(Self { purpose, folder, status, above });
                }
                Ok(None) => {}
                // What is inside a folder of another user is hidden.
                Err(why) if why.0.to_lowercase().contains("permission denied") => {}
                Err(_) => return None,
            }
            above = parent(&above).filter(|next| *next != above)?;
        }
    }
}

/// Whether a path is inside a folder, and not the folder itself.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| !rest.is_empty())
}

/// The home is this user's, but folders in it are not writable, such as a `.local` that root has created. A folder
/// elsewhere, to which XDG_CACHE_HOME may point, is not this user's to take.
fn in_home(host: &Host, finding: Finding, home: &str, all: &[Impossible]) -> Finding {
    let folders: BTreeSet<&str> =
        all.iter().map(|one| one.above.as_str()).filter(|above| is_below(above, home)).collect();
    folders.into_iter().fold(finding, |finding, folder| match host.stat(folder) {
        Ok(Some(stat)) => unlock::with_remedy(host, finding, folder, &stat),
        _ => finding,
    })
}

/// One finding for all of them: they have the same cause.
pub(super) fn cannot_create(host: &Host, all: &[Impossible]) -> Option<Finding> {
    let first = all.iter().max_by_key(|one| one.status)?;
    let title = format!(
        "{} ({}) cannot be created: this user has no permission to write to {}",
        first.folder, first.purpose, first.above
    );
    let finding = Finding::new("disk.own-folder-locked", title).status(first.status);
    let others = all.iter().filter(|one| one.folder != first.folder);
    let finding = others
        .fold(finding, |finding, one| finding.seen(format!("nor can {} ({})", one.folder, one.purpose)));
    if let Some(finding) = root_squash::explained(host, &finding, &first.above) {
        return Some(finding);
    }
    if let Some(finding) = in_container::forbidden_by_selinux(host, &finding, &first.above) {
        return Some(finding);
    }
    let home = host.env(HOME).ok().flatten().filter(|home| is_below(&first.folder, home));
    if let Some(home) = home.as_ref().filter(|home| is_below(&first.above, home)) {
        return Some(in_home(host, finding, home, all));
    }
    let Some(home) = home.filter(|_| host.env(YOLO_HOME).is_ok_and(|own| own.is_none())) else {
        let stat = host.stat(&first.above).ok().flatten();
        let finding = stat
            .and_then(|stat| in_container::of_another_owner(host, &finding, &first.above, &stat))
            .unwrap_or_else(|| finding.remedy("set YOLO_HOME to a folder that this user may write to"));
        return Some(finding);
    };
    let user = host
        .user()
        .ok()
        .and_then(|user| user.uid)
        .map_or_else(|| "this user".to_owned(), |uid| format!("user {uid}"));
    let finding = finding.because(format!(
        "HOME is {home}, to which {user} may not write: that is not this user's home folder, as in a container whose \
         image does not know the user, or after `sudo` without `-H`"
    ));
    let working = host.places().ok().and_then(|places| places.working);
    let may_write =
        |folder: &String| host.stat(folder).ok().flatten().is_some_and(|stat| stat.writable == Some(true));
    let better = working.filter(may_write);
    let program = match host.place() {
        _ if host.rental().is_some() => None,
        Place::Docker | Place::DockerInWsl => Some("docker"),
        Place::Podman => Some("podman"),
        _ => None,
    };
    Some(match (program, better) {
        (Some(program), Some(folder)) => {
            let folder = quote(&folder);
            finding
                .remedy(format!(
                    "start the container with a HOME that this user may write to, such as {folder}; in this \
                     container, YOLO_HOME does the same for yolo alone"
                ))
                .command(format!("{program} run -e HOME={folder} …"))
                .command(format!("export YOLO_HOME={folder}/.yolo"))
        }
        (Some(program), None) => finding
            .remedy("start the container with a folder of the host as HOME, which the user of the container may write to")
            .command("mkdir -p \"$HOME/yolo\"  # on the host")
            .command(format!("{program} run {} -v \"$HOME/yolo\":/yolo -e HOME=/yolo -w /yolo …", match program {
                "podman" => "--userns=keep-id",
                _ => "--user \"$(id -u):$(id -g)\"",
            })),
        (None, better) if host.place() == Place::Pod && host.rental().is_none() => {
            let place = better.unwrap_or_else(|| "/tmp".to_owned());
            finding
                .remedy(format!(
                    "give the pod a HOME that its user may write to, in the specification of its container, preferably on a volume (an emptyDir \
                     and /tmp are lost with the pod); {YOLO_HOME} does the same for yolo alone"
                ))
                .command(format!("env: [{{ name: HOME, value: {place} }}]"))
                .command(format!("export {YOLO_HOME}={}", quote(&format!("{}/.yolo", place.trim_end_matches('/')))))
        }
        (None, Some(folder)) => finding
            .remedy("set YOLO_HOME to a folder that this user may write to, or HOME to the user's own home folder")
            .command(format!("export YOLO_HOME={}/.yolo", quote(&folder))),
        (None, None) => finding
            .remedy("set YOLO_HOME to a folder that this user may write to, or HOME to the user's own home folder"),
    })
}
