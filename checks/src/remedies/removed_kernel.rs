//! What to do if an update has removed the modules of the running kernel. A restart starts the new kernel; but on Arch and
//! its relatives the old one comes again and again if the update could not write the new one where the boot loader looks for
//! it: a hook failed, or the file system of /boot was not mounted.

use super::restart::restart;
use super::{arch, initramfs};
use crate::facts::{Family, Host};
use crate::finding::Finding;

const MODULES: &str = "/usr/lib/modules";
/// How long the end of an update may be after the folder of its kernel was written, in seconds.
const SLACK: u64 = 60;

/// The finding, with the way to a kernel that has its modules.
pub(crate) fn start_new(host: &Host, finding: Finding) -> Finding {
    match started_old(host) {
        Some(new) => write_image(host, finding, &new),
        None => restart(host, finding.remedy("restart the machine, which starts the new kernel")),
    }
}

/// The new kernel, if this machine was started after its update all the same.
fn started_old(host: &Host) -> Option<String> {
    if host.family() != Some(Family::Arch) || host.is_container() {
        return None;
    }
    let started = host.boot_time().ok()?;
    let kernels = host.folder(MODULES).ok().flatten()?;
    let changed = |name: &String| {
        let folder = format!("{MODULES}/{name}");
        // What dkms leaves of removed kernels has no package.
        host.text(&format!("{folder}/pkgbase")).ok().flatten()?;
        host.stat(&folder).ok().flatten()?.modified
    };
    let newest = kernels.into_iter().filter_map(|name| Some((changed(&name)?, name))).max()?;
    (newest.0 + SLACK < started).then_some(newest.1)
}

/// The command that mounts what the new kernel is written to.
fn mount(host: &Host) -> &'static str {
    let table = host.text("/etc/fstab").ok().flatten().unwrap_or_default();
    let is_named = table.lines().any(|line| line.split_whitespace().nth(1) == Some("/boot"));
    let mounted = host.file_system("/boot").ok().and_then(|system| system.mount);
    match mounted.as_deref() {
        // Others of the table, such as a server that does not answer, do not matter.
        Some(mounted) if is_named && mounted != "/boot" => "sudo mount /boot",
        _ => "sudo mount -a",
    }
}

fn write_image(host: &Host, finding: Finding, new: &str) -> Finding {
    let finding = finding
        .seen(format!("{MODULES}/{new} is older than the start of this machine"))
        .because(format!(
            "an update has replaced the running kernel with {new}, but the boot loader still starts the old one, whose modules are \
             gone: the update did not write the new kernel where the boot loader looks for it"
        ))
        .remedy(format!(
            "mount the file systems, install the kernel again, which writes it to /boot, and restart; if mount says `unknown filesystem \
             type 'vfat'`, or there is no network, the running kernel lacks modules for that: first install its own package again from \
             pacman's cache (`ls /var/cache/pacman/pkg`, `sudo pacman -U FILE`), which brings them back, or start the installation \
             medium, mount the disks and use arch-chroot; if pacman says `module not found: 'nvidia'` or `mkinitcpio failed`, build the \
             module first (`sudo dkms autoinstall -k {new}`), or remove modules that are not installed from MODULES in /etc/mkinitcpio.conf and /etc/mkinitcpio.conf.d"
        ))
        // Invariant: nothing is installed into the folder below a file system that could not be mounted.
        .command(format!("{} && sudo pacman -Syu {}", mount(host), arch::package(host, new)));
    // Limine's own program says what it leaves out.
    let rebuild = initramfs::rebuild(host).filter(|command| command.contains("limine"));
    restart(host, rebuild.into_iter().fold(finding, Finding::command))
}
