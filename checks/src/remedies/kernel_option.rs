//! Options of the kernel command line, which each distribution keeps in a place of its own.

use super::restart::restart;
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// The options of the kernel that runs that `is_wanted` takes.
pub(crate) fn options(host: &Host, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let line = host.text("/proc/cmdline").ok().flatten().unwrap_or_default();
    line.split_whitespace().filter(|word| is_wanted(word)).map(ToOwned::to_owned).collect()
}

/// The finding with the commands that take these options away, and restart.
pub(crate) fn remove(host: &Host, finding: Finding, options: &[String]) -> Finding {
    change(host, finding, "remove-args", "delete-if-present", options)
}

fn change(host: &Host, finding: Finding, of_grubby: &str, of_ostree: &str, options: &[String]) -> Finding {
    let commands = match host.family() {
        _ if host.is_image() => {
            let options: Vec<String> =
                options.iter().map(|option| format!("--{of_ostree}={option}")).collect();
            vec![format!("sudo rpm-ostree kargs {}", options.join(" "))]
        }
        Some(Family::Fedora | Family::RedHat | Family::Amazon) => {
            vec![format!("sudo grubby --update-kernel=ALL --{of_grubby}=\"{}\"", options.join(" "))]
        }
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian | Family::Nvidia)
            if host.exists("/etc/kernel/cmdline") == Ok(true) && is_of_proxmox(host) =>
        {
            vec!["sudoedit /etc/kernel/cmdline".to_owned(), "sudo proxmox-boot-tool refresh".to_owned()]
        }
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian | Family::Nvidia) => {
            vec!["sudoedit /etc/default/grub".to_owned(), "sudo update-grub".to_owned()]
        }
        Some(Family::NixOs) => vec!["sudo nixos-rebuild boot".to_owned()],
        Some(Family::Leap | Family::Tumbleweed) => {
            let (file, command) = of_suse(host);
            vec![format!("sudoedit {file}"), format!("sudo {command}")]
        }
        Some(Family::Arch | Family::Void) if host.exists(GRUB) == Ok(true) => {
            vec![format!("sudoedit {GRUB}"), format!("sudo {MAKE_CONFIG}")]
        }
        _ => Vec::new(),
    };
    let finding = commands.into_iter().fold(finding, Finding::command);
    // Elsewhere, the administrator restarts the machine, and the text says what to change before.
    if host.is_own_machine() { restart(host, finding) } else { finding }
}

/// How an option is added, as a phrase in brackets.
pub(crate) fn way(host: &Host, option: &str) -> String {
    match host.family() {
        _ if host.is_image() => format!(" (`sudo rpm-ostree kargs --append-if-missing={option}`)"),
        Some(Family::Fedora | Family::RedHat | Family::Amazon) => {
            format!(" (`sudo grubby --update-kernel=ALL --args={option}`)")
        }
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) if !is_of_proxmox(host) => {
            " (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then `sudo update-grub`)".to_owned()
        }
        Some(Family::Leap | Family::Tumbleweed) => {
            let place = place(host).trim_end_matches(')');
            format!("{place}, then `sudo {}`)", of_suse(host).1)
        }
        _ => place(host).to_owned(),
    }
}

/// Where the options are, as a phrase in brackets.
pub(crate) fn place(host: &Host) -> &'static str {
    match host.family() {
        _ if host.is_image() => "",
        Some(Family::Fedora | Family::RedHat | Family::Amazon) => "",
        Some(Family::NixOs) => " (`boot.kernelParams` in configuration.nix)",
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian | Family::Nvidia) if is_of_proxmox(host) => {
            " (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, or /etc/kernel/cmdline)"
        }
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian | Family::Nvidia) => {
            " (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub)"
        }
        Some(Family::Leap | Family::Tumbleweed) => match of_suse(host).0 {
            GRUB => " (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub)",
            _ => " (/etc/kernel/cmdline)",
        },
        _ => {
            " (of the boot loader; with GRUB in /etc/default/grub, then `sudo grub-mkconfig -o /boot/grub/grub.cfg`)"
        }
    }
}

/// Where the options of GRUB are.
const GRUB: &str = "/etc/default/grub";
/// What makes GRUB's settings of them, where no distribution has a name of its own for it.
const MAKE_CONFIG: &str = "grub-mkconfig -o /boot/grub/grub.cfg";

/// Where openSUSE has the options, and the command that makes them effective.
fn of_suse(host: &Host) -> (&'static str, &'static str) {
    match () {
        // New installations of Tumbleweed have systemd-boot, or GRUB with its kind of entries.
        () if host.exists("/usr/bin/sdbootutil") == Ok(true) => {
            ("/etc/kernel/cmdline", "sdbootutil update-all-entries")
        }
        () if host.is_transactional() => (GRUB, "transactional-update grub.cfg"),
        () => (GRUB, "grub2-mkconfig -o /boot/grub2/grub.cfg"),
    }
}

fn is_of_proxmox(host: &Host) -> bool {
    host.kernel_release().is_ok_and(|kernel| kernel.ends_with("-pve"))
}
