//! The command that brings all packages of a system up to date. It is always the whole system: some packages
//! alone, such as a driver without its kernel, are what breaks a distribution that is released continuously.

use crate::facts::{Family, Host};

/// The command, if the distribution is a known one and its packages can be upgraded in place.
pub(crate) fn packages(host: &Host) -> Option<&'static str> {
    Some(match host.family()? {
        Family::Ubuntu | Family::OnUbuntu | Family::Debian => "sudo apt update && sudo apt full-upgrade",
        // RHEL for Edge has no bootc.
        Family::RedHat if host.is_image() && host.exists("/usr/bin/bootc") != Ok(false) => {
            "sudo bootc upgrade"
        }
        Family::Fedora | Family::RedHat if host.is_image() => "sudo rpm-ostree upgrade",
        Family::Fedora | Family::RedHat | Family::Amazon => "sudo dnf upgrade",
        Family::Tumbleweed => "sudo zypper dup",
        Family::Leap => "sudo zypper update",
        Family::Arch => "sudo pacman -Syu",
        Family::Void => "sudo xbps-install -Su",
        Family::NixOs => "sudo nixos-rebuild switch --upgrade",
        Family::Alpine | Family::Nvidia => return None,
    })
}
