//! Folders that the user of a container may not use, although the same folder is open on the host: SELinux keeps containers
//! out of folders that are not labelled for them, and a folder that Docker or a volume made belongs to root, whoever the
//! container runs as.

use yolo_base::env::YOLO_HOME;
use yolo_base::mounts;

use crate::facts::{Host, Place, Stat};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// Types that SELinux gives the processes of containers which it keeps apart from the host.
const CONFINED: [&str; 3] = [":container_t:", ":container_init_t:", ":svirt_lxc_net_t:"];
/// File systems without labels of their own, which `:z` cannot change.
const WITHOUT_LABELS: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "fuseblk", "ntfs3", "exfat", "vfat", "fuse", "9p"];

/// A mount of the host in this container: where it is, its kind, and which folder of its file system it shows.
struct Bind {
    point: String,
    kind: String,
    root: String,
}

/// The mount that holds a path, if it is not the container's own root.
fn bind(host: &Host, path: &str) -> Option<Bind> {
    let table = host.text("/proc/self/mountinfo").ok()??;
    let mount =
        mounts::holding(&table, path).filter(|mount| mount.point != "/" && mount.kind != "overlay")?;
    let line = table.lines().rev().find(|line| {
        line.split(' ').nth(4).is_some_and(|point| point.replace("\\040", " ") == mount.point)
    })?;
    let root = line.split(' ').nth(3)?.replace("\\040", " ");
    Some(Bind { point: mount.point, kind: mount.kind, root })
}

/// Whether the permissions of a file or folder let this user do what its answer says they may not.
pub(super) fn is_against_mode(host: &Host, stat: &Stat) -> bool {
    let Some(mode) = stat.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok()) else {
        return false;
    };
    let Ok(user) = host.user() else { return false };
    let bits = if user.uid == Some(0) {
        0o7
    } else if user.uid.is_some() && stat.uid == user.uid {
        mode >> 6
    } else if stat.gid.is_some_and(|gid| user.groups.contains(&gid)) {
        mode >> 3
    } else {
        mode
    };
    stat.readable == Some(false) && bits & 0o4 != 0 || stat.writable == Some(false) && bits & 0o2 != 0
}

/// The finding about a path that SELinux keeps this container out of.
pub(super) fn forbidden_by_selinux(host: &Host, finding: &Finding, path: &str) -> Option<Finding> {
    if !matches!(host.place(), Place::Docker | Place::Podman) {
        return None;
    }
    let label = host.text("/proc/self/attr/current").ok().flatten()?;
    if !CONFINED.iter().any(|kind| label.contains(kind)) {
        return None;
    }
    let bind = bind(host, path)?;
    let is_read_only = host.file_system(path).is_ok_and(|disk| disk.options.iter().any(|one| one == "ro"));
    let contradicts = |path: &str| match host.stat(path) {
        Ok(stat) => stat.is_some_and(|stat| is_against_mode(host, &stat)),
        // What is above a mount is the container's own.
        Err(why) => path == bind.point && why.0.to_ascii_lowercase().contains("permission denied"),
    };
    if is_read_only || !(contradicts(path) || contradicts(&bind.point)) {
        return None;
    }
    let program = if host.place() == Place::Podman { "podman" } else { "docker" };
    let point = quote(&bind.point);
    let finding = finding
        .clone()
        .seen(format!("this process has the label {}", label.trim_matches(['\0', '\n', ' '])))
        .because(format!(
            "the permissions allow it, but SELinux lets a container use a folder of the host only if it is labelled for containers, \
             which {point} is not"
        ));
    let apart = format!("{program} run --security-opt label=disable …  # on the host");
    if WITHOUT_LABELS.iter().any(|kind| bind.kind == *kind || bind.kind.starts_with(&format!("{kind}."))) {
        return Some(
            finding
                .remedy(format!(
                    "start the container without this separation: its file system ({}) has no labels that could be changed",
                    bind.kind
                ))
                .command(apart),
        );
    }
    Some(
        finding
            .remedy(
                "start the container so that the folder is labelled for it (`:z`, or `:Z` for this container alone; in a compose file at \
                 the end of the volume too). Never do that with a home folder, /usr or a whole disk: all files in it get the new \
                 label; for those, and for very large data sets, start the container without this separation",
            )
            .command(format!("{program} run -v <folder>:{point}:z …  # on the host"))
            .command(apart),
    )
}

/// The finding about a folder of root or another user in a container whose user is an ordinary one. `None` outside of those, for
/// root, and if the folder is this user's own.
pub(super) fn of_another_owner(host: &Host, finding: &Finding, folder: &str, stat: &Stat) -> Option<Finding> {
    let user = host.user().ok()?;
    let uid = user.uid.filter(|uid| *uid != 0)?;
    let owner = stat.uid.filter(|owner| *owner != uid)?;
    if host.rental().is_some() || host.job().is_some() || host.workshop().is_some() {
        return None;
    }
    // The list of groups is sorted, and does not say which is the first.
    let gid = uid;
    let bind = bind(host, folder);
    let finding = finding.clone();
    let who = if owner == 0 { "root".to_owned() } else { format!("user {owner}") };
    match host.place() {
        Place::Pod => Some(in_pod(finding, bind.as_ref(), folder, (uid, gid, owner), &who)),
        Place::Docker | Place::DockerInWsl => {
            let why = format!("it belongs to {who}, and the container runs as user {uid}");
            let finding = if bind.is_some() && owner == 0 {
                finding.because(format!(
                    "{why}: Docker makes volumes, and folders of `-v` that do not exist yet, as root"
                ))
            } else {
                finding.because(why)
            };
            Some(match bind {
                None => of_image(finding, "docker", folder, (uid, gid)),
                Some(bind) => match volume(&bind.root) {
                    Some(volume) => finding
                        .remedy("give the volume to that user once, by a container of root, and start this container again")
                        .command(format!(
                            "docker run --rm --user root --entrypoint chown -v {volume}:/v <image> -R {uid}:{gid} /v  # on the host"
                        )),
                    // The files of a person stay theirs.
                    None if owner != 0 => finding
                        .remedy("start the container as the user who owns the folder of the host")
                        .command(format!(
                            "docker run --user {owner}:{} …  # on the host",
                            stat.gid.unwrap_or(owner)
                        )),
                    None => finding
                        .remedy(format!(
                            "give the folder of the host that is mounted at {} to that user; never do that with a folder of the \
                             system",
                            quote(&bind.point)
                        ))
                        .command(format!("sudo chown -R {uid}:{gid} <folder>  # on the host")),
                },
            })
        }
        Place::Podman => {
            let finding =
                finding.because(format!("it belongs to {who}, and the container runs as user {uid}"));
            Some(match bind {
                None => of_image(finding, "podman", folder, (uid, gid)),
                Some(bind) => {
                    let point = quote(&bind.point);
                    finding
                        .remedy(
                            "start the container with your own user, who then owns your folders in it; or let Podman give the folder to the \
                             user of the container (`:U`), which changes its owner on the host",
                        )
                        .command("podman run --userns=keep-id …  # on the host")
                        .command(format!("podman run -v <folder>:{point}:U …  # on the host"))
                }
            })
        }
        _ => None,
    }
}

/// A folder of the image itself.
fn of_image(finding: Finding, program: &str, folder: &str, (uid, gid): (u32, u32)) -> Finding {
    let folder = quote(folder);
    finding
        .remedy(format!(
            "give the folder to that user in the image (`RUN chown -R {uid}:{gid} {folder}` in the Dockerfile), or start the container \
             with a folder of the host in its place, which belongs to you"
        ))
        .command(format!("{program} run --user \"$(id -u):$(id -g)\" -v <folder>:{folder} …  # on the host"))
}

/// File systems whose server decides about owners, so that Kubernetes cannot change them.
const ON_A_SERVER: [&str; 6] = ["nfs", "nfs4", "cifs", "smb3", "fuse", "lustre"];

fn in_pod(
    finding: Finding,
    bind: Option<&Bind>,
    folder: &str,
    (uid, gid, owner): (u32, u32, u32),
    who: &str,
) -> Finding {
    let finding = finding.because(format!("it belongs to {who}, and the pod runs as user {uid}"));
    let Some(bind) = bind else {
        return finding
            .remedy(format!(
                "mount a volume for what the run writes, such as an emptyDir, which is lost with the pod, and use it with {YOLO_HOME} \
                 and --project; until then, {YOLO_HOME} in /tmp"
            ))
            .command(format!("export {YOLO_HOME}=/tmp/yolo"));
    };
    let is_on_a_server =
        ON_A_SERVER.iter().any(|kind| bind.kind == *kind || bind.kind.starts_with(&format!("{kind}.")));
    let point = &bind.point;
    let folder = quote(if folder.starts_with(point.as_str()) { point } else { folder });
    let init = format!(
        "initContainers: [{{ name: owner, image: busybox, securityContext: {{ runAsUser: 0 }}, command: [chown, -R, \"{uid}:{gid}\", \
         {folder}], volumeMounts: [{{ name: <volume>, mountPath: {folder} }}] }}]"
    );
    if is_on_a_server {
        let finding = finding
            .remedy(format!(
                "let the pod run as the owner of the volume's files, or give them to its user: Kubernetes' `fsGroup` changes nothing on {}; \
                 if the server squashes root, only its administrator can",
                bind.kind
            ))
            ;
        // A pod of root is refused in many clusters, and by servers that squash root.
        let finding = if owner == 0 {
            finding
        } else {
            finding.command(format!("securityContext: {{ runAsUser: {owner} }}"))
        };
        return finding.command(init);
    }
    finding
        .remedy(
            "let Kubernetes give the volume to the pod's group, in the specification of the pod; if its driver for volumes does not \
             do that, change the owner in an init container of root",
        )
        .command(format!("securityContext: {{ fsGroup: {gid} }}"))
        .command(init)
}

/// The name of a volume of Docker or Podman, from the folder that its mount shows.
fn volume(root: &str) -> Option<&str> {
    let (_, rest) = root.rsplit_once("/volumes/")?;
    rest.strip_suffix("/_data").filter(|name| !name.contains('/') && name.len() < 64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_is_known_by_its_folder() {
        assert_eq!(volume("/var/lib/docker/volumes/runs/_data"), Some("runs"));
        assert_eq!(volume("/docker/volumes/runs/_data"), Some("runs"));
        assert_eq!(volume("/home/mara/data"), None);
    }

    #[test]
    fn permissions_and_answers_are_compared_for_this_user() {
        let against = |uid: u32, stat: serde_json::Value| {
            let user = json!({ "uid": uid, "groups": [100] });
            let recording = json!({ "version": 1, "os": "linux", "user": user, "stats": { "/d": stat } });
            let host = Host::from_value(recording).unwrap().0;
            is_against_mode(&host, &host.stat("/d").unwrap().unwrap())
        };
        let stat = |mode: &str, uid: u32, readable: bool| json!({ "kind": "folder", "mode": mode, "uid": uid, "gid": 100, "readable": readable, "writable": false });
        assert!(against(0, stat("0755", 1000, false)) && against(1000, stat("0755", 1000, true)));
        assert!(!against(1000, stat("0755", 0, true)) && against(1000, stat("0770", 0, true)));
        assert!(!against(1001, stat("0700", 1000, false)));
    }
}
