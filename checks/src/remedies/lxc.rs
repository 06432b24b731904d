//! The commands that change an LXC container from its host: those of Proxmox, or of LXD and Incus.

use crate::facts::{Host, Place};
use crate::finding::Finding;

/// What a container is given, or how it is started again.
pub(crate) enum Change {
    /// All GPUs of the host.
    Gpus,
    /// A limit by its name, such as `memlock`.
    Limit(&'static str, String),
    /// So many GiB of memory.
    Memory(u64),
    /// So many cores.
    Cores(usize),
    /// Nothing: it is only started again.
    Restart,
}

/// The commands, for the container's host.
pub(crate) fn commands(host: &Host, change: &Change) -> Vec<String> {
    // Proxmox builds its own kernel, and numbers its containers.
    let is_proxmox = host.kernel_release().is_ok_and(|release| release.ends_with("-pve"));
    let lines = if is_proxmox { of_proxmox(change) } else { of_lxd(host, change) };
    lines.into_iter().map(|line| line + "  # on the host").collect()
}

/// The finding with commands for this LXC container instead of its host: it is a whole system with its own services. Its
/// root user needs no sudo.
pub(crate) fn inside(host: &Host, mut finding: Finding) -> Finding {
    let Some(remedy) = finding.remedy.as_mut().filter(|_| host.place() == Place::Lxc) else { return finding };
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    for command in remedy.commands.iter_mut().filter(|command| !command.contains("  # ")) {
        if is_root {
            *command = command.replace("sudo ", "");
        } else if command.contains("sudo ") {
            command.push_str("  # in this container");
        }
    }
    finding
}

fn of_proxmox(change: &Change) -> Vec<String> {
    let restart = "pct reboot <number>".to_owned();
    match change {
        Change::Gpus => {
            let devices = ["nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"];
            let add = devices.iter().enumerate().map(|(at, name)| format!("--dev{at} /dev/{name}"));
            vec![format!("pct set <number> {}", add.collect::<Vec<_>>().join(" ")), restart]
        }
        Change::Limit(item, value) => {
            vec![format!("echo 'lxc.prlimit.{item}: {value}' >> /etc/pve/lxc/<number>.conf"), restart]
        }
        Change::Memory(gib) => vec![format!("pct set <number> --memory {}", gib * 1024)],
        Change::Cores(count) => vec![format!("pct set <number> --cores {count}")],
        Change::Restart => vec![restart],
    }
}

fn of_lxd(host: &Host, change: &Change) -> Vec<String> {
    let name = host.hostname().ok().filter(|name| !name.is_empty()).unwrap_or("<container>".to_owned());
    let program = if host.exists("/dev/incus").unwrap_or(false) { "incus" } else { "lxc" };
    let restart = format!("{program} restart {name}");
    match change {
        Change::Gpus => vec![
            format!("{program} config device add {name} gpu gpu"),
            format!("{program} config set {name} nvidia.runtime=true"),
            restart,
        ],
        Change::Limit(item, value) => {
            vec![format!("{program} config set {name} limits.kernel.{item} {value}"), restart]
        }
        Change::Memory(gib) => vec![format!("{program} config set {name} limits.memory {gib}GiB")],
        Change::Cores(count) => vec![format!("{program} config set {name} limits.cpu {count}")],
        Change::Restart => vec![restart],
    }
}
