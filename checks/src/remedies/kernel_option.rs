//! Options of the kernel command line, which each distribution and each boot loader keeps in a place of its own.

use super::initramfs;
use super::restart::restart;
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// Who gives the kernel its options on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// An image of Fedora.
    Ostree,
    /// A program for all boot loaders of Fedora and RHEL.
    Grubby,
    /// Pop!_OS with systemd-boot.
    Kernelstub,
    /// Proxmox with systemd-boot.
    Proxmox,
    /// Proxmox, with either loader.
    GrubOrProxmox,
    /// GRUB of Debian and Ubuntu.
    GrubOfDebian,
    /// GRUB of Arch and Void, as its makers have it.
    Grub,
    /// GRUB of openSUSE.
    GrubOfSuse,
    /// The same where a snapshot of the system is changed, which is started next.
    GrubOfSnapshot,
    /// Limine, as CachyOS and Omarchy set it up.
    Limine,
    /// systemd-boot of CachyOS.
    SdbootManage,
    /// systemd-boot and GRUB with entries of their own, on openSUSE.
    Sdbootutil,
    /// Unified kernel images of Arch.
    UnifiedImage,
    NixOs,
}

impl Keeper {
    fn of(host: &Host) -> Option<Self> {
        let exists = |path: &str| host.exists(path) == Ok(true);
        if host.is_image() {
            return Some(Self::Ostree);
        }
        Some(match host.family()? {
            Family::Fedora | Family::RedHat | Family::Amazon => Self::Grubby,
            Family::NixOs => Self::NixOs,
            Family::Ubuntu | Family::OnUbuntu | Family::Debian | Family::Nvidia => {
                let is_of_proxmox = host.kernel_release().is_ok_and(|kernel| kernel.ends_with("-pve"));
                match () {
                    () if is_of_proxmox && exists("/etc/kernel/cmdline") => Self::Proxmox,
                    () if is_of_proxmox => Self::GrubOrProxmox,
                    // With the old firmware (BIOS), Pop!_OS has GRUB.
                    () if exists("/usr/bin/kernelstub") && host.exists("/sys/firmware/efi") != Ok(false) => {
                        Self::Kernelstub
                    }
                    () => Self::GrubOfDebian,
                }
            }
            Family::Arch => match () {
                () if exists("/etc/default/limine") => Self::Limine,
                () if exists("/etc/sdboot-manage.conf") => Self::SdbootManage,
                () if exists("/etc/default/grub") => Self::Grub,
                () if exists("/etc/kernel/cmdline") => Self::UnifiedImage,
                () => return None,
            },
            // New installations of Tumbleweed have systemd-boot, or GRUB with its kind of entries.
            Family::Leap | Family::Tumbleweed => match () {
                // The package alone may be there beside GRUB.
                () if exists("/usr/bin/sdbootutil") && exists("/etc/kernel/cmdline") => Self::Sdbootutil,
                () if host.is_transactional() => Self::GrubOfSnapshot,
                () => Self::GrubOfSuse,
            },
            Family::Void if exists("/etc/default/grub") => Self::Grub,
            Family::Alpine | Family::Void => return None,
        })
    }

    /// The file that has the options, and the command that makes a change of it effective.
    fn file(self, host: &Host) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Proxmox => ("/etc/kernel/cmdline", "sudo proxmox-boot-tool refresh"),
            Self::GrubOfDebian | Self::GrubOrProxmox => ("/etc/default/grub", "sudo update-grub"),
            Self::Grub => ("/etc/default/grub", "sudo grub-mkconfig -o /boot/grub/grub.cfg"),
            Self::GrubOfSnapshot => ("/etc/default/grub", "sudo transactional-update grub.cfg"),
            Self::GrubOfSuse => ("/etc/default/grub", "sudo grub2-mkconfig -o /boot/grub2/grub.cfg"),
            Self::Limine => ("/etc/default/limine", "sudo limine-mkinitcpio"),
            Self::SdbootManage => ("/etc/sdboot-manage.conf", "sudo sdboot-manage gen"),
            Self::Sdbootutil => ("/etc/kernel/cmdline", "sudo sdbootutil update-all-entries"),
            // EndeavourOS has this file too, with dracut and systemd-boot.
            Self::UnifiedImage => ("/etc/kernel/cmdline", initramfs::rebuild(host)?),
            Self::Ostree | Self::Grubby | Self::Kernelstub | Self::NixOs => return None,
        })
    }

    /// Where in the system the options are.
    fn place(self) -> &'static str {
        match self {
            Self::Ostree | Self::Grubby | Self::Kernelstub => "",
            Self::NixOs => "`boot.kernelParams` in configuration.nix",
            Self::GrubOrProxmox | Self::Proxmox => {
                "GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, or /etc/kernel/cmdline"
            }
            Self::GrubOfDebian | Self::Grub | Self::GrubOfSuse | Self::GrubOfSnapshot => {
                "GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub"
            }
            Self::Limine => "KERNEL_CMDLINE[default] in /etc/default/limine",
            Self::SdbootManage => "LINUX_OPTIONS in /etc/sdboot-manage.conf",
            Self::Sdbootutil | Self::UnifiedImage => "/etc/kernel/cmdline",
        }
    }
}

/// The options of the kernel that runs that `is_wanted` takes.
pub(crate) fn options(host: &Host, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let line = host.text("/proc/cmdline").ok().flatten().unwrap_or_default();
    line.split_whitespace().filter(|word| is_wanted(word)).map(ToOwned::to_owned).collect()
}

/// The finding with the commands that take these options away, and restart.
pub(crate) fn remove(host: &Host, finding: Finding, options: &[String]) -> Finding {
    let commands = match Keeper::of(host) {
        None => Vec::new(),
        Some(Keeper::Ostree) => {
            let options: Vec<String> =
                options.iter().map(|option| format!("--delete-if-present={option}")).collect();
            vec![format!("sudo rpm-ostree kargs {}", options.join(" "))]
        }
        Some(Keeper::Grubby) => {
            vec![format!("sudo grubby --update-kernel=ALL --remove-args=\"{}\"", options.join(" "))]
        }
        Some(Keeper::Kernelstub) => vec![format!("sudo kernelstub -d \"{}\"", options.join(" "))],
        Some(Keeper::NixOs) => vec!["sudo nixos-rebuild boot".to_owned()],
        Some(keeper) => keeper
            .file(host)
            .map(|(file, command)| vec![format!("sudoedit {file}"), command.to_owned()])
            .unwrap_or_default(),
    };
    let finding = commands.into_iter().fold(finding, Finding::command);
    // Elsewhere, the administrator restarts the machine, and the text says what to change before.
    if host.is_own_machine() { restart(host, finding) } else { finding }
}

/// How an option is added, as a phrase in brackets.
pub(crate) fn way(host: &Host, option: &str) -> String {
    match Keeper::of(host) {
        Some(Keeper::Ostree) => format!(" (`sudo rpm-ostree kargs --append-if-missing={option}`)"),
        Some(Keeper::Grubby) => format!(" (`sudo grubby --update-kernel=ALL --args={option}`)"),
        Some(Keeper::Kernelstub) => format!(" (`sudo kernelstub -a {option}`)"),
        Some(Keeper::NixOs | Keeper::Proxmox | Keeper::GrubOrProxmox) | None => place(host),
        Some(keeper) => {
            let command = keeper.file(host).map(|(_, command)| format!(", then `{command}`"));
            format!(" ({}{})", keeper.place(), command.unwrap_or_default())
        }
    }
}

/// Where the options are, as a phrase in brackets.
pub(crate) fn place(host: &Host) -> String {
    match Keeper::of(host).map(Keeper::place) {
        None => " (of the boot loader; with GRUB in /etc/default/grub, then `sudo grub-mkconfig -o /boot/grub/grub.cfg`)"
            .to_owned(),
        Some("") => String::new(),
        Some(place) => format!(" ({place})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(id: &str, files: &[&str]) -> Host {
        let stats: serde_json::Map<String, serde_json::Value> =
            files.iter().map(|file| ((*file).to_owned(), json!({ "kind": "file" }))).collect();
        let release = format!("ID={id}\n");
        let recording =
            json!({ "version": 1, "os": "linux", "files": { "/etc/os-release": release }, "stats": stats });
        Host::from_value(recording).unwrap().0
    }

    #[test]
    fn each_boot_loader_is_told_in_its_own_way() {
        for (id, files, expected) in [
            ("pop\nID_LIKE=\"ubuntu debian\"", &["/usr/bin/kernelstub"][..], "(`sudo kernelstub -a a=b`)"),
            ("pop\nID_LIKE=\"ubuntu debian\"", &["/usr/sbin/update-grub"], "then `sudo update-grub`"),
            (
                "cachyos\nID_LIKE=arch",
                &["/etc/default/limine"],
                "KERNEL_CMDLINE[default] in /etc/default/limine, then `sudo limine-mkinitcpio`",
            ),
            ("cachyos\nID_LIKE=arch", &["/etc/sdboot-manage.conf"], "then `sudo sdboot-manage gen`"),
            ("arch", &["/etc/kernel/cmdline"], "(/etc/kernel/cmdline, then `sudo mkinitcpio -P`)"),
            (
                "endeavouros\nID_LIKE=arch",
                &["/etc/kernel/cmdline", "/usr/bin/reinstall-kernels"],
                "(/etc/kernel/cmdline, then `sudo reinstall-kernels`)",
            ),
            ("arch", &["/etc/default/grub"], "then `sudo grub-mkconfig -o /boot/grub/grub.cfg`"),
            ("arch", &[], "(of the boot loader; with GRUB in /etc/default/grub, then"),
            (
                "opensuse-tumbleweed",
                &["/usr/bin/sdbootutil", "/etc/kernel/cmdline"],
                "then `sudo sdbootutil update-all-entries`",
            ),
            (
                "opensuse-tumbleweed",
                &["/usr/bin/sdbootutil"],
                "then `sudo grub2-mkconfig -o /boot/grub2/grub.cfg`",
            ),
            ("opensuse-leap", &["/etc/default/grub"], "then `sudo grub2-mkconfig -o /boot/grub2/grub.cfg`"),
        ] {
            let text = way(&host(id, files), "a=b");
            assert!(text.contains(expected), "{id}: {text}");
        }
        let pop = host("pop\nID_LIKE=ubuntu", &["/usr/bin/kernelstub"]);
        let finding = remove(&pop, Finding::new("gpu.lost", "x"), &["a=b".to_owned(), "c".to_owned()]);
        assert_eq!(finding.remedy.unwrap().commands[0], "sudo kernelstub -d \"a=b c\"");
        assert_eq!(place(&pop), "");
    }
}
