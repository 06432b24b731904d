//! Fedora with NVIDIA's CUDA repository beside RPM Fusion: both have the driver, in differently named, conflicting
//! packages, so that dnf brings a part of each, or never updates any.

use super::restart::restart;
use crate::facts::{Family, Host};
use crate::finding::Finding;

const FOLDER: &str = "/etc/yum.repos.d";
/// What NVIDIA's repository is to leave to RPM Fusion. Its CUDA toolkit is used further on.
const OF_DRIVER: &str = "nvidia-driver*,nvidia-modprobe*,nvidia-persistenced*,nvidia-settings*,nvidia-libXNVCtrl*,nvidia-xconfig*,\
                         nvidia-open*,kmod-nvidia*,libnvidia*,cuda-drivers*,dkms-nvidia*";

/// The finding about such a driver, with what leaves one source of it. `None` if there is one.
pub(crate) fn repair(host: &Host, finding: Finding) -> Option<Finding> {
    if host.family() != Some(Family::Fedora) || host.is_image() || !host.is_own_machine() {
        return None;
    }
    let names = host.folder(FOLDER).ok().flatten()?;
    let is_used = |name: &&String| {
        host.text(&format!("{FOLDER}/{name}")).ok().flatten().is_some_and(|text| offers(&text))
    };
    let of_nvidia = names
        .iter()
        .find(|name| name.starts_with("cuda-fedora") && name.ends_with(".repo") && is_used(name))?;
    let of_fusion = names.iter().find(|name| {
        name.starts_with("rpmfusion-nonfree")
            && !name.contains("steam")
            && !name.contains("testing")
            && is_used(name)
    })?;
    let finding = finding
        .seen(format!("{FOLDER}/{of_nvidia}"))
        .seen(format!("{FOLDER}/{of_fusion}"))
        .because(
            "two repositories have the driver, NVIDIA's and RPM Fusion, in packages that exclude each other: dnf brings a part of each, \
             or updates none of them",
        )
        .remedy(
            "keep the driver of RPM Fusion: have NVIDIA's repository leave it alone (excludepkgs; its CUDA toolkit stays), install the \
             driver again, build its module, which takes a few minutes, and restart",
        )
        .command(format!("echo 'excludepkgs={OF_DRIVER}' | sudo tee -a {FOLDER}/{of_nvidia}"))
        .command("sudo dnf install --refresh --allowerasing akmod-nvidia xorg-x11-drv-nvidia-cuda")
        .command("sudo dnf upgrade '*nvidia*'")
        .command("sudo akmods --force");
    Some(restart(host, finding))
}

/// Whether a repository is switched on, and leaves out no package.
fn offers(text: &str) -> bool {
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.trim().split_once('=')?;
            (name.trim() == key).then(|| value.trim())
        })
    };
    value("enabled").is_none_or(|value| matches!(value, "1" | "true" | "yes"))
        && value("excludepkgs").is_none()
        && value("exclude").is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::offers;

    #[test]
    fn a_repository_offers_what_it_does_not_leave_out() {
        assert!(offers("[cuda-fedora37-x86_64]\nname=x\nenabled=1\n"));
        assert!(offers("[cuda-fedora37-x86_64]\nname=x\n"));
        assert!(!offers("[cuda-fedora37-x86_64]\nenabled = 0\n"));
        assert!(!offers("[cuda-fedora37-x86_64]\nenabled=1\nexclude=nvidia-driver*\n"));
    }

    proptest! {
        #[test]
        fn any_file_is_read(text in "(enabled|exclude|=|1|\\[x\\]|\\PC|\n){0,30}") {
            let _ = offers(&text);
        }
    }
}
