//! Root on a file server: NFS gives root of another machine only the rights of others (`root_squash`, the default), so that
//! `sudo` or the root of a container has fewer rights there than the user to whom the files belong.

use crate::facts::{Host, Place};
use crate::finding::Finding;

/// The finding about a path that this user may not use, if this user is root and the path is on NFS.
pub(super) fn explained(host: &Host, finding: &Finding, path: &str) -> Option<Finding> {
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    let space = host.file_system(path).ok().filter(|_| is_root && host.os().is_ok_and(|os| os == "linux"))?;
    // Root of a container without root is the user who started it.
    if host.has_mapped_users() || !space.kind.as_deref().is_some_and(|kind| matches!(kind, "nfs" | "nfs4")) {
        return None;
    }
    let owner = host.stat(path).ok().flatten().and_then(|stat| stat.uid).filter(|uid| *uid != 0);
    let name =
        owner.map_or_else(|| "the owner of the folder".to_owned(), |uid| format!("its owner, user {uid}"));
    let is_of_sudo = host.env("SUDO_USER").is_ok_and(|user| user.is_some());
    let way = match host.place() {
        Place::Docker | Place::DockerInWsl => {
            "start the container as that user (`docker run --user UID:GID …`)".to_owned()
        }
        Place::Podman => "start the container as that user (`podman run --user UID:GID …`)".to_owned(),
        Place::Pod => "set `runAsUser` in the pod's `securityContext`".to_owned(),
        _ if is_of_sudo => "run yolo without sudo".to_owned(),
        _ => match owner {
            Some(uid) => format!("run yolo as that user (`sudo -u '#{uid}' yolo …`)"),
            None => "run yolo as that user".to_owned(),
        },
    };
    Some(
        finding
            .clone()
            .seen(format!("{} is on NFS, and this user is root", space.mount.as_deref().unwrap_or(path)))
            .because("the file server gives root of other machines only the rights of others, which are the last in the permissions (root_squash)")
            .remedy(format!(
                "use it as {name}: {way}; or let its owner open it to others (`chmod -R o+rX`, to write also `o+w`); or use a local \
                 disk; only the server's administrator can allow root (no_root_squash in /etc/exports)"
            )),
    )
}
