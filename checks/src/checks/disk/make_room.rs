//! Where a run may write if a disk is full: the roomiest other disk that this user may write to. Without one, what
//! gives room at this place: a volume for a container, or what fills the disk of a machine.

use yolo_base::env::YOLO_HOME;
use yolo_base::{format, mounts};

use crate::facts::{FileSystem, Host, PathKind, Place};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// No disk for runs has fewer bytes than this.
const SMALLEST_DISK: u64 = 2_000_000_000;
/// Bytes that libtorch, a data set and some runs need.
const ROOMY: u64 = 20_000_000_000;
/// File systems that hold the files of users.
const OF_USERS: [&str; 8] = ["ext4", "ext3", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay"];
/// Those on a server, which may not answer: only the volumes of services are asked.
const ON_A_SERVER: [&str; 4] = ["nfs", "nfs4", "fuse", "fuse.juicefs"];
/// How the source of a mount of MooseFS begins, which Runpod has for its network volumes.
pub(super) const MOOSEFS: &str = "mfs#";
/// Where the system keeps its own files, or shows one file of the host in a container.
const OF_THE_SYSTEM: [&str; 13] = [
    "/boot",
    "/dev",
    "/etc",
    "/proc",
    "/run",
    "/snap",
    "/sys",
    "/usr",
    "/var/lib",
    "/nix",
    "/tmp",
    "/mnt/wsl",
    "/mnt/wslg",
];
/// Volumes that services for renting machines give their users, mostly with more room than the system's disk.
const OF_SERVICES: [&str; 8] = [
    "/root/autodl-tmp",
    "/workspace",
    "/storage",
    "/notebooks",
    "/teamspace/studios/this_studio",
    "/home/ec2-user/SageMaker",
    "/home/sagemaker-user",
    "/mnt/data",
];

/// The finding of a full disk, with where to go or how to make room.
pub(super) fn with_remedy(host: &Host, finding: Finding, space: &FileSystem, folder: &str) -> Finding {
    let full = space.mount.as_deref().unwrap_or(folder);
    if host.os().is_ok_and(|os| os != "linux") {
        return finding;
    }
    if is_layer_of_apptainer(host, space) {
        let finding = finding.because(OF_LAYER);
        return elsewhere(host, &finding, space, folder).unwrap_or_else(|| with_bind(finding));
    }
    if let Some(finding) = elsewhere(host, &finding, space, folder) {
        return finding;
    }
    if let Some(rental) = host.rental() {
        return finding.remedy(format!(
            "delete old runs, archives of data sets and caches (~/.cache); or choose a larger disk or volume in the settings of {}, \
             and keep data sets and runs there ({YOLO_HOME}, --project)",
            rental.name()
        ));
    }
    match host.place() {
        Place::Kaggle => finding.remedy(
            "delete old results in /kaggle/working, which holds 20 GB, and work in /tmp, whose files last as long as the session: \
             `--project /tmp/runs`; copy to /kaggle/working only what you want to keep",
        ),
        Place::Colab => finding.remedy(
            "delete data sets and old runs in /content, or choose a runtime with a larger disk (Runtime, Change runtime type); \
             keep results on Google Drive with --project",
        ),
        Place::Docker | Place::DockerInWsl | Place::Podman => {
            let program = if host.place() == Place::Podman { "podman" } else { "docker" };
            let finding = finding.remedy(format!(
                "start the container with a folder of the host's larger disk, and keep data sets and runs there ({YOLO_HOME}, \
                 --project); or make room on the host, whose disk this is: `{program} system df` shows what images and stopped \
                 containers use"
            ));
            if full != "/" {
                return finding;
            }
            finding.command(format!("{program} system df  # on the host"))
        }
        Place::Pod => finding.remedy(format!(
            "give the pod a volume (PersistentVolumeClaim) and keep data sets and runs there ({YOLO_HOME}, --project): a container's \
             own disk is that of its node, and the node evicts pods that fill it"
        )),
        Place::Machine | Place::Wsl | Place::Lxc | Place::Apptainer | Place::Enroot => {
            let has_docker = full == "/" && host.exists("/var/lib/docker") == Ok(true);
            let docker = if has_docker { ", images of Docker (`docker system df`)" } else { "" };
            finding
                .remedy(format!(
                    "free some space there, or move the folders to another disk with {YOLO_HOME} and --project; often old runs, \
                     ~/.cache (pip, huggingface), environments of conda and the trash fill a disk{docker}"
                ))
                .command(format!("du -xhd 2 {} | sort -h | tail -n 20", quote(full)))
        }
        Place::Windows | Place::Mac => finding,
    }
}

/// The layer in memory to which a container of Apptainer writes what belongs to no folder of the host. By default it has
/// 64 MiB, and had 16 before version 1.2.
pub(super) fn is_layer_of_apptainer(host: &Host, space: &FileSystem) -> bool {
    const KINDS: [&str; 4] = ["overlay", "tmpfs", "fuse-overlayfs", "fuse.fuse-overlayfs"];
    // /tmp and /dev/shm of the host are in memory on many machines.
    let is_of_host =
        space.mount.as_deref().is_some_and(|mount| mount.starts_with("/tmp") || mount.starts_with("/dev"));
    host.place() == Place::Apptainer
        && !is_of_host
        && space.kind.as_deref().is_some_and(|kind| KINDS.contains(&kind))
        && space.total.is_some_and(|total| total < SMALLEST_DISK)
}

/// Why such a layer is full.
pub(super) const OF_LAYER: &str = "what a container of Apptainer writes outside of the host's folders goes to a layer in memory (`--writable-tmpfs`, \
    `--contain`, `--containall`), whose size is `sessiondir max size` in apptainer.conf: 64 MiB, if nobody has changed it";

fn with_bind(finding: Finding) -> Finding {
    finding
        .remedy(format!(
            "start the container with a folder of the host's disk, and keep data sets and runs there ({YOLO_HOME}, --project); for all \
             of /tmp and the home folder, name one with --workdir; if the container's own folders have to be written, make a layer on \
             disk (`apptainer overlay create --size 20480 layer.img`, then `apptainer exec --nv --overlay layer.img …`)"
        ))
        .command("apptainer exec --nv --bind <folder>:/work …  # on the host")
        .command(format!("export {YOLO_HOME}=/work/yolo"))
}

/// The finding with the disk that has room, if there is one.
pub(super) fn elsewhere(host: &Host, finding: &Finding, space: &FileSystem, folder: &str) -> Option<Finding> {
    if host.os().is_ok_and(|os| os != "linux") {
        return None;
    }
    let (place, free) = roomiest(host, space.mount.as_deref().unwrap_or(folder))?;
    let root = place.trim_end_matches('/');
    let remedy = finding.clone().remedy(format!(
        "free some space there, or use {place}, where {} are free: for libtorch, weights and data sets with {YOLO_HOME}, \
         for runs with `--project {}`",
        format::bytes(free),
        quote(&format!("{root}/runs"))
    ));
    Some(remedy.command(format!("export {YOLO_HOME}={}", quote(&format!("{root}/yolo")))))
}

/// The mount with the most free space that is not the full one, of those that hold files of users.
fn roomiest(host: &Host, full: &str) -> Option<(String, u64)> {
    let table = host.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
    let mut points: Vec<String> = OF_SERVICES.iter().map(|point| (*point).to_owned()).collect();
    points.extend(
        table
            .lines()
            .filter_map(|line| line.split_whitespace().nth(4))
            .map(|point| point.replace("\\040", " ")),
    );
    points.sort();
    points.dedup();
    let is_below = |point: &str, above: &str| {
        point.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let known = |point: &String| {
        let mount = mounts::holding(&table, point);
        // A folder of a service that is no mount of its own is on the disk of the system.
        let is_own = mount.as_ref().is_none_or(|mount| mount.point == *point);
        // Its free space is that of the whole store, of which a volume may use a part.
        let is_part = mount.as_ref().is_some_and(|mount| mount.source.starts_with(MOOSEFS));
        let kind = mount.map(|mount| mount.kind);
        // Other overlays are containers that run on this machine.
        let is_layer = kind.as_deref() == Some("overlay") && point != "/";
        let is_volume = OF_SERVICES.contains(&point.as_str());
        let is_of_users = kind.as_deref().is_none_or(|kind| {
            OF_USERS.contains(&kind) && !is_layer || is_volume && ON_A_SERVER.contains(&kind)
        });
        is_own
            && !is_part
            && is_of_users
            && !OF_THE_SYSTEM.iter().any(|above| is_below(point, above))
            && point != full
    };
    let free = |point: String| {
        let space = host.file_system(&point).ok()?;
        let is_this = space.mount.as_deref().is_some_and(|mount| mount == point);
        let is_read_only = space.options.iter().any(|option| option == "ro");
        let free = space.available.filter(|free| *free >= ROOMY).filter(|_| is_this && !is_read_only)?;
        let place = writable_part(host, &point)?;
        // An ordinary user may write to a folder of `/`, and not to `/` itself.
        let may_write = match host.stat(&place) {
            Ok(stat) => {
                stat.is_some_and(|stat| stat.writable != Some(false) && stat.kind == PathKind::Folder)
            }
            Err(_) => true,
        };
        // The home folder may be on a disk of its own, which can be the full one.
        let is_on_it = place == point
            || mounts::holding(&table, &place)
                .map(|mount| mount.point)
                .or_else(|| host.file_system(&place).ok()?.mount)
                == Some(point);
        (may_write && is_on_it).then_some((place, free))
    };
    points.into_iter().filter(known).filter_map(free).max_by_key(|(_, free)| *free)
}

/// Where a user writes on a mount: on the disk of the system and in /home only in folders of their own.
fn writable_part(host: &Host, point: &str) -> Option<String> {
    let home =
        || host.env(yolo_base::env::HOME).ok().flatten().filter(|home| home.starts_with('/') && home != "/");
    match point {
        "/" if host.place() == Place::Kaggle => Some("/tmp".to_owned()),
        "/" | "/home" => home().filter(|home| point == "/" || home.starts_with("/home/")),
        _ => Some(point.to_owned()),
    }
}
