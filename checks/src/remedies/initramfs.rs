//! The command that writes the initramfs of every kernel again. It has copies of modules and of the files in
//! /etc/modprobe.d, and is read before the disk is.

use crate::facts::{Family, Host};

/// The command, if the distribution is a known one that lets its user do it.
pub(crate) fn rebuild(host: &Host) -> Option<&'static str> {
    let exists = |path: &str| host.exists(path) == Ok(true);
    if host.is_image() {
        return None;
    }
    Some(match host.family()? {
        Family::Ubuntu | Family::OnUbuntu | Family::Debian | Family::Nvidia => {
            "sudo update-initramfs -u -k all"
        }
        Family::Leap | Family::Tumbleweed if exists("/usr/bin/sdbootutil") => {
            "sudo sdbootutil add-all-kernels --no-reuse-initrd"
        }
        Family::Fedora | Family::RedHat | Family::Amazon | Family::Leap | Family::Tumbleweed => {
            "sudo dracut --regenerate-all --force"
        }
        // EndeavourOS has these in place of mkinitcpio: with systemd-boot and with GRUB.
        Family::Arch if exists("/usr/bin/reinstall-kernels") => "sudo reinstall-kernels",
        Family::Arch if exists("/usr/bin/dracut-rebuild") => "sudo dracut-rebuild",
        // Limine starts copies that only its own program writes; CachyOS and Omarchy have it.
        Family::Arch if exists("/usr/bin/limine-mkinitcpio") => "sudo limine-mkinitcpio",
        Family::Arch if exists("/usr/bin/dracut") && host.exists("/usr/bin/mkinitcpio") == Ok(false) => {
            "sudo dracut --regenerate-all --force"
        }
        Family::Arch => "sudo mkinitcpio -P",
        Family::Void => "sudo xbps-reconfigure -fa",
        Family::NixOs | Family::Alpine => return None,
    })
}
