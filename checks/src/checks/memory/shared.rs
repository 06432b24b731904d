//! Whether /dev/shm is large enough for NCCL: ranks on GPUs of one machine exchange tensors through
//! it if the GPUs have no direct path. Containers get 64 MB by default.

use yolo_base::env::NCCL_SHM_DISABLE;
use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Container, Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::remedies::fit::is_without_rights;
use crate::remedies::{lxc, rented};
use crate::status::Status;

const PLACE: &str = "/dev/shm";
/// Memory for a rank's channels: NCCL was seen to use 9.6 MB per channel, and opens several.
const A_RANK: u64 = 64 << 20;
/// NCCL's own advice for containers, and enough for eight ranks.
const COMFORTABLE: u64 = 1 << 30;

pub(super) static CHECK: Check = Check {
    question: "Is there enough shared memory for several ranks?",
    reports: &["memory.shared", "memory.shared-small", "memory.shared-closed"],
    preflight: true,
    run,
};

/// The ranks that exchange tensors through shared memory.
fn ranks(host: &Host, intent: &Intent) -> usize {
    match intent.ranks_on_gpus() {
        0 if !intent.run => host.gpus().map_or(0, |gpus| gpus.len()),
        ranks => ranks,
    }
}

/// How much of it so many ranks need.
const fn need(ranks: usize) -> u64 {
    A_RANK * ranks as u64
}

/// Whether the ranks cannot use the shared memory: it is missing or closed, or too small, however much of it is free.
pub(in crate::checks) fn is_too_small(host: &Host, intent: &Intent) -> bool {
    let ranks = ranks(host, intent);
    let total = || host.file_system(PLACE).ok().and_then(|space| space.total);
    ranks > 1 && (closed(host, intent).is_some() || total().is_some_and(|total| total < need(ranks)))
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let ranks = ranks(host, intent);
    // A single rank exchanges nothing, and gloo's ranks on the CPU use sockets.
    if ranks < 2 {
        return Ok(Vec::new());
    }
    // NCCL uses sockets then.
    if nccl_files::setting(host, NCCL_SHM_DISABLE).is_some_and(|set| set.value.trim() == "1") {
        return Ok(Vec::new());
    }
    if let Some(finding) = closed(host, intent) {
        return Ok(vec![finding]);
    }
    let space = host.file_system(PLACE)?;
    let (Some(total), Some(free)) = (space.total, space.available) else { return Ok(Vec::new()) };
    let need = need(ranks);
    if free >= need.max(COMFORTABLE.min(need * 2)) {
        return Ok(vec![Finding::ok("memory.shared", format!("{PLACE} has {} free", format::memory(free)))]);
    }
    let title = if total < need {
        format!(
            "{PLACE} has only {}; {} need about {}",
            format::memory(total),
            format::count(ranks, "rank"),
            format::memory(need)
        )
    } else {
        format!(
            "only {} free in {PLACE}; {} need about {}",
            format::memory(free),
            format::count(ranks, "rank"),
            format::memory(need)
        )
    };
    let status = if intent.run && free < need { Status::Error } else { Status::Warning };
    let mut finding = Finding::new("memory.shared-small", title).status(status);
    let left = host.folder(PLACE).ok().flatten().unwrap_or_default();
    let left = left.iter().filter(|name| name.starts_with("nccl-")).count();
    if left > 0 {
        finding = finding.seen(format!("{} left by NCCL", format::count(left, "file")));
    }
    Ok(vec![if total >= need {
        let text = format!("remove what an earlier run left in {PLACE}, if no run is active");
        finding.remedy(text).command(format!("rm -i {PLACE}/nccl-*"))
    } else if matches!(host.place(), Place::Colab | Place::Kaggle) {
        finding
            .remedy(
                "the service sets this size; let NCCL use sockets instead, which is slower: set the variable in a notebook \
                 cell",
            )
            .command(format!("%env {NCCL_SHM_DISABLE}=1"))
    } else if let Some(rental) = host.rental() {
        rented::more_shared_memory(rental, finding)
    } else if is_pod(host) || is_container(host) {
        with_mount(host, finding)
    } else if host.place() == Place::Lxc {
        // It is a mount of the container, not the one of the host.
        let finding = finding
            .remedy(
                "make /dev/shm larger inside this container, as its root; so that it stays, add the line to /etc/fstab in it. If the \
                 container may not do that, mount it from the host, in the container's settings (Proxmox: \
                 /etc/pve/lxc/<number>.conf with `:` in place of `=`): `lxc.mount.entry = tmpfs dev/shm tmpfs \
                 rw,nosuid,nodev,size=1g,create=dir`, and restart the container",
            )
            .command(format!("sudo mount -o remount,size=1g {PLACE}"))
            .command(format!("echo 'tmpfs {PLACE} tmpfs rw,nosuid,nodev,size=1g 0 0' | sudo tee -a /etc/fstab"));
        lxc::inside(host, finding)
    } else {
        finding.command(format!("sudo mount -o remount,size=1g {PLACE}"))
    }])
}

/// The finding of a container, with how to start it with shared memory.
fn with_mount(host: &Host, finding: Finding) -> Finding {
    if is_pod(host) {
        return finding
            .remedy(
                "mount memory at /dev/shm: add the first line to the pod's `spec:`, the second to its \
                     container",
            )
            .command("volumes: [{ name: shm, emptyDir: { medium: Memory, sizeLimit: 1Gi } }]")
            .command("volumeMounts: [{ name: shm, mountPath: /dev/shm }]");
    }
    let program = if host.container() == Ok(Some(Container::Podman)) { "podman" } else { "docker" };
    finding
        .remedy(format!(
            "start the container with more shared memory: add this option to `{program} \
                             run`"
        ))
        .command("--shm-size=1g")
}

/// Whether this user can make nothing there: the folder is missing, or only root may write to it.
fn closed(host: &Host, intent: &Intent) -> Option<Finding> {
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    let is_missing = match host.stat(PLACE).ok()? {
        None => true,
        Some(stat) if stat.writable == Some(false) && !is_root => false,
        Some(_) => return None,
    };
    let title = if is_missing {
        format!("{PLACE} does not exist, so NCCL cannot share memory between ranks")
    } else {
        format!("this user may not write to {PLACE}, so NCCL cannot share memory between ranks")
    };
    let status = if intent.run { Status::Error } else { Status::Warning };
    let mut finding = Finding::new("memory.shared-closed", title).status(status);
    if is_missing {
        finding = finding
            .because(
                "ranks on GPUs of one machine exchange tensors through files in /dev/shm if the GPUs have no direct path; NCCL fails \
                 with `shm_open failed: No such file or directory`",
            )
            .remedy("mount memory there, as on every machine; until then, set NCCL_SHM_DISABLE=1, which is slower");
    }
    let sockets = "let NCCL use sockets instead, which is slower";
    Some(match host.place() {
        Place::Colab | Place::Kaggle => finding.remedy(sockets).command(format!("%env {NCCL_SHM_DISABLE}=1")),
        _ if host.rental().is_some() => finding
            .remedy(format!("the service sets this folder up: {sockets}"))
            .command(format!("export {NCCL_SHM_DISABLE}=1")),
        // Only the administrator of a node may change it.
        _ if is_without_rights(host) => finding
            .remedy(format!("tell the administrator of the node; until then, {sockets}"))
            .command(format!("export {NCCL_SHM_DISABLE}=1")),
        // A container may not mount anything.
        _ if is_missing && (is_pod(host) || is_container(host)) => with_mount(host, finding),
        Place::Lxc if is_missing => lxc::inside(
            host,
            finding
                .command("sudo mkdir -p /dev/shm")
                .command("sudo mount -t tmpfs -o mode=1777 shm /dev/shm"),
        ),
        _ if is_missing => {
            finding.command("sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o mode=1777 shm /dev/shm")
        }
        _ => finding.command("sudo chmod 1777 /dev/shm"),
    })
}

/// Whether this runs in Kubernetes, which has no option for the size.
fn is_pod(host: &Host) -> bool {
    let groups = ["/proc/1/cgroup", "/proc/self/cgroup"].map(|file| host.text(file).ok().flatten());
    host.container() == Ok(Some(Container::Kubernetes))
        || groups.iter().flatten().any(|groups| groups.contains("kubepods"))
}

/// Whether this looks like a container, whose size is set when it is started.
fn is_container(host: &Host) -> bool {
    let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| host.exists(mark).unwrap_or(false));
    let groups = host.text("/proc/1/cgroup").ok().flatten().unwrap_or_default();
    let variable = host.env("KUBERNETES_SERVICE_HOST").ok().flatten().is_some();
    let known =
        matches!(host.container(), Ok(Some(Container::Docker | Container::Podman | Container::Kubernetes)));
    known
        || marked
        || variable
        || ["docker", "kubepods", "containerd", "libpod"].iter().any(|word| groups.contains(word))
}
