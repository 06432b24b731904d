//! Root on a file server: NFS gives root of another machine only the rights of others (`root_squash`, the default), so that
//! `sudo` or the root of a container has fewer rights there than the user to whom the files belong.

use crate::facts::{Host, Place};
use crate::finding::Finding;

/// The number that a user has in a user namespace that does not know them.
const OVERFLOW: u32 = 65_534;

/// The finding about a path that this user may not use, if this user is root and the path is on NFS.
pub(super) fn explained(host: &Host, finding: &Finding, path: &str) -> Option<Finding> {
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    let space = host.file_system(path).ok().filter(|_| is_root && host.os().is_ok_and(|os| os == "linux"))?;
    if !space.kind.as_deref().is_some_and(|kind| matches!(kind, "nfs" | "nfs4")) {
        return None;
    }
    let owner = host.stat(path).ok().flatten().and_then(|stat| stat.uid).filter(|uid| *uid != 0);
    // Root of a container without root is the user who started it, and may do nothing for those who are not known there.
    if host.has_mapped_users() {
        let unknown = owner.filter(|uid| *uid == OVERFLOW)?;
        return Some(
            finding
                .clone()
                .because(format!("it belongs to a user who does not exist in this container (number {unknown})"))
                .remedy(
                    "on the host, as the owner of the folder, open it to the user who starts the container; if you own it yourself, \
                     start the container with your own user (`podman run --userns=keep-id …`)",
                ),
        );
    }
    let name =
        owner.map_or_else(|| "the owner of the folder".to_owned(), |uid| format!("its owner, user {uid}"));
    let is_of_sudo = host.env("SUDO_USER").is_ok_and(|user| user.is_some());
    let way = match host.place() {
        _ if host.rental().is_some() => owner.map_or_else(
            || "run yolo as that user".to_owned(),
            |uid| {
                format!("run yolo as that user (`setpriv --reuid={uid} --regid={uid} --clear-groups yolo …`)")
            },
        ),
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
            .because("the file server treats root of other machines as a stranger (root_squash): only the permissions for \"others\" count")
            .remedy(format!(
                "use it as {name}: {way}; or copy it to a local disk as that user; its owner can make it readable for everybody \
                 (`chmod -R o+rX`); only the server's administrator can allow root (no_root_squash in /etc/exports)"
            )),
    )
}
