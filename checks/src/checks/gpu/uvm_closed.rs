//! CUDA's device file, which is there and may not be opened: its mode, or the control group of a container, a job or a
//! service, forbids it. The file system asks both when it says whether a file may be read.

use crate::facts::{Host, PathKind, Place, Stat};
use crate::finding::Finding;
use crate::remedies::device_group;
use crate::remedies::start_container::{Start, start_with};

/// The device file that CUDA needs and NVML does not.
pub(super) const DEVICE: &str = "/dev/nvidia-uvm";

pub(super) fn find(host: &Host) -> Option<Finding> {
    let stat = host.stat(DEVICE).ok().flatten().filter(|stat| stat.kind == PathKind::Char)?;
    if stat.readable != Some(false) && stat.writable != Some(false) {
        return None;
    }
    let title =
        format!("nvidia-smi works, but this user or container may not open CUDA's device file {DEVICE}");
    let finding = Finding::new("gpu.uvm-closed", title);
    let finding = match (&stat.mode, stat.gid) {
        (Some(mode), Some(group)) => finding.seen(format!("{DEVICE} has mode {mode} and group {group}")),
        _ => finding,
    };
    let number = stat.device.clone().or_else(|| Some(format!("{}:0", host.major_of_driver("nvidia-uvm")?)));
    let finding = match number {
        Some(number) => finding.seen(format!("its number is {number}")),
        None => finding,
    };
    if !is_open_by_mode(&stat) && host.place() != Place::Lxc {
        return Some(device_group::join(host, finding, DEVICE, Some(&stat)));
    }
    Some(match host.place() {
        Place::Machine => of_machine(host, finding),
        Place::Lxc => start_with(
            host,
            finding
                .because(
                    "a container may use the devices whose numbers its settings allow, and the number of nvidia-uvm can change \
                     with each start of the host",
                )
                .remedy(
                    "let the host give the container the device files by name, which finds the numbers by itself, and remove \
                     the lines `lxc.cgroup2.devices.allow` and `lxc.mount.entry` for NVIDIA from its settings (in Proxmox \
                     /etc/pve/lxc/NUMBER.conf; `pct list` shows the number)",
                ),
            Start::Gpus(1),
        ),
        _ => start_with(
            host,
            finding.remedy("start the container with its GPUs as a whole, not with single device files"),
            Start::Gpus(1),
        ),
    })
}

/// A service, or the job of a batch system: on a machine nothing else asks more than the mode.
fn of_machine(host: &Host, finding: Finding) -> Finding {
    let groups = host.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
    // The services of a user's own session are below user@.service, and may use what the user may.
    let path = groups.lines().find(|line| line.contains(".service")).unwrap_or_default();
    let path = path.split("user@").next().filter(|before| before.len() == path.len()).unwrap_or_default();
    let service = path.split('/').find(|part| part.ends_with(".service"));
    match (host.job(), service) {
        (Some(job), _) => finding.remedy(format!(
            "tell the administrator of this {} node: jobs may not use {DEVICE} there (ConstrainDevices, AllowedDevicesFile)",
            job.name()
        )),
        (None, Some(service)) => finding
            .because("a systemd service with PrivateDevices or DeviceAllow may use only the devices that it names")
            .remedy(format!("add `DeviceAllow={DEVICE} rw` to the section [Service], then restart the service"))
            .command(format!("sudo systemctl edit {service}"))
            .command(format!("sudo systemctl restart {service}")),
        (None, None) => finding.remedy("find out what forbids it: a security module, or a sandbox around this shell"),
    }
}

/// Whether the mode lets everybody use the file.
fn is_open_by_mode(stat: &Stat) -> bool {
    let mode = stat.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
    mode.is_none_or(|mode| mode & 0o006 == 0o006)
}
