//! The commands that install or update NVIDIA's driver on each distribution. Except on Ubuntu and
//! Arch, its repository must be added first.

use crate::facts::{Distribution, Host, Packages};

/// The commands for this distribution, if it is a common one; they need a restart afterwards.
pub(in crate::checks) fn install(host: &Host) -> Vec<String> {
    let Ok(distribution) = host.distribution() else { return Vec::new() };
    let commands: &[&str] = match distribution.packages() {
        Some(Packages::Apt) if distribution.id == "debian" => &[
            // One of the two files exists, in the old format or the new one.
            "sudo sed -i -E '/^(deb|Components)/s/ main.*/ main contrib non-free non-free-firmware/' \
             $(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null)",
            "sudo apt update",
            "sudo apt install nvidia-driver",
        ],
        Some(Packages::Apt) if distribution.id == "ubuntu" => &["sudo ubuntu-drivers install"],
        Some(Packages::Apt) => &["sudo apt install nvidia-driver"],
        Some(Packages::Dnf) if distribution.id == "fedora" => &[
            "sudo dnf install \
             https://mirrors.rpmfusion.org/free/fedora/rpmfusion-free-release-$(rpm -E %fedora).noarch.rpm \
             https://mirrors.rpmfusion.org/nonfree/fedora/rpmfusion-nonfree-release-$(rpm -E %fedora).noarch.rpm",
            "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda",
        ],
        Some(Packages::Dnf) => return of_red_hat(&distribution),
        Some(Packages::Zypper) if distribution.id == "opensuse-tumbleweed" => &[
            "sudo zypper addrepo --refresh https://download.nvidia.com/opensuse/tumbleweed NVIDIA",
            "sudo zypper install nvidia-driver-G06-kmp-default nvidia-compute-utils-G06",
        ],
        Some(Packages::Zypper) => &[
            "sudo zypper addrepo --refresh 'https://download.nvidia.com/opensuse/leap/$releasever' NVIDIA",
            "sudo zypper install nvidia-driver-G06-kmp-default nvidia-compute-utils-G06",
        ],
        Some(Packages::Pacman) => &["sudo pacman -Syu nvidia nvidia-utils"],
        None => &[],
    };
    commands.iter().map(|&command| command.to_owned()).collect()
}

/// NVIDIA's own repository, named after the RHEL release.
fn of_red_hat(distribution: &Distribution) -> Vec<String> {
    let release =
        distribution.version.as_ref().map_or("$(rpm -E %rhel)".to_owned(), |v| v.major().to_string());
    let place = "https://developer.download.nvidia.com/compute/cuda/repos";
    vec![
        format!("sudo dnf config-manager --add-repo {place}/rhel{release}/x86_64/cuda-rhel{release}.repo"),
        "sudo dnf install kernel-devel-$(uname -r) kernel-headers".to_owned(),
        "sudo dnf install cuda-drivers".to_owned(),
    ]
}
