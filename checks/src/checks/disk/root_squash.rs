//! Root on a file server: NFS gives root of another machine no rights (`root_squash`, the default), so that `sudo` or the
//! root of a container may less there than the user to whom the files belong.

use crate::facts::{Host, Place};
use crate::finding::Finding;

/// The finding about a path that this user may not use, if this user is root and the path is on NFS.
pub(super) fn explained(host: &Host, finding: &Finding, path: &str) -> Option<Finding> {
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    let space = host.file_system(path).ok().filter(|_| is_root && host.os().is_ok_and(|os| os == "linux"))?;
    if !space.kind.as_deref().is_some_and(|kind| matches!(kind, "nfs" | "nfs4")) {
        return None;
    }
    let owner = host.stat(path).ok().flatten().and_then(|stat| stat.uid).filter(|uid| *uid != 0);
    let owner =
        owner.map_or_else(|| "the owner of the folder".to_owned(), |uid| format!("its owner, user {uid}"));
    let way = match host.place() {
        Place::Docker | Place::DockerInWsl => {
            "start the container as that user (`docker run --user UID:GID …`)"
        }
        Place::Podman => "start the container as that user (`podman run --userns=keep-id …`)",
        Place::Pod => "set `runAsUser` in the pod's `securityContext`",
        _ => "run yolo without sudo",
    };
    Some(
        finding
            .clone()
            .seen(format!("{} is on NFS, and this user is root", space.mount.as_deref().unwrap_or(path)))
            .because("the file server gives root of other machines no rights (root_squash), whatever the permissions say")
            .remedy(format!(
                "use it as {owner}: {way}; or use a local disk; only the server's administrator can allow root \
                 (no_root_squash in /etc/exports)"
            )),
    )
}
