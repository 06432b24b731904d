//! The proprietary driver of branch 580, the last for Maxwell, Pascal and Volta. Distributions whose usual package
//! has a newer branch, or the open module, have another one for these cards.

use super::image;
use crate::facts::{Distribution, Family, Host, NvmlState};

/// The last driver branch for cards before Turing.
pub(crate) const LAST_FOR_OLD_CARDS: u32 = 580;

/// The packages that add RPM Fusion's repositories.
const RPM_FUSION: &str = "https://mirrors.rpmfusion.org/free/fedora/rpmfusion-free-release-$(rpm -E %fedora).noarch.rpm \
     https://mirrors.rpmfusion.org/nonfree/fedora/rpmfusion-nonfree-release-$(rpm -E %fedora).noarch.rpm";

/// Its packages in RPM Fusion, whose `akmod-nvidia` no longer supports these cards.
pub(super) const OF_FUSION: [&str; 2] = ["akmod-nvidia-580xx", "xorg-x11-drv-nvidia-580xx-cuda"];

/// The command that adds RPM Fusion's repositories, by the one that installs packages.
pub(super) fn rpm_fusion(install: &str) -> Vec<String> {
    vec![format!("{install} {RPM_FUSION}")]
}

/// The commands that install it where no driver is, on a distribution with a package of its own for it.
pub(super) fn install(host: &Host, family: Family, distribution: &Distribution) -> Option<Vec<String>> {
    let packages = OF_FUSION.join(" ");
    Some(match family {
        // Pop's own package, system76-driver-nvidia, brings the open module.
        Family::OnUbuntu => {
            vec!["sudo apt update".to_owned(), format!("sudo apt install nvidia-driver-{LAST_FOR_OLD_CARDS}")]
        }
        Family::Fedora if host.is_image() => match image::of(host) {
            Some(image) => image.commands_for_old_cards(),
            None => rpm_fusion("sudo rpm-ostree install")
                .into_iter()
                .chain([format!("sudo rpm-ostree install {packages}"), image::WITHOUT_NOUVEAU.to_owned()])
                .collect(),
        },
        Family::Fedora => {
            // Nobara has these packages in its own repository.
            let repository = (distribution.id == "fedora").then(|| rpm_fusion("sudo dnf install"));
            repository.into_iter().flatten().chain([format!("sudo dnf install {packages}")]).collect()
        }
        Family::Arch if distribution.id == "cachyos" => {
            let kernel = host.kernel_release().unwrap_or_default();
            let headers = super::arch::package(host, &kernel);
            vec![format!("sudo pacman -Syu nvidia-580xx-dkms nvidia-580xx-utils {headers}-headers")]
        }
        Family::Void => vec![
            "sudo xbps-install -Su void-repo-nonfree".to_owned(),
            "sudo xbps-install -S nvidia580".to_owned(),
        ],
        _ => return None,
    })
}

/// What to write before the commands, or instead of them.
pub(crate) fn advice(host: &Host) -> Option<&'static str> {
    Some(match host.family()? {
        Family::NixOs => {
            "in configuration.nix set `hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.legacy_580;` and \
             `hardware.nvidia.open = false;` (and `nixpkgs.config.allowUnfree = true;`, `hardware.graphics.enable = true;` and \
             `services.xserver.videoDrivers = [ \"nvidia\" ];`, if they are not there yet), apply it, and restart"
        }
        Family::Arch if !host.distribution().is_ok_and(|of| of.id == "cachyos" || of.id == "manjaro") => {
            match host.nvml_state() {
                Ok(NvmlState::NoLibrary) => {
                    "install the headers of your kernel, then nvidia-580xx-dkms and nvidia-580xx-utils of the AUR (`yay -S \
                     nvidia-580xx-dkms nvidia-580xx-utils`), and restart: the packages of Arch itself have dropped this card"
                }
                _ => {
                    "remove the installed package of NVIDIA's newer module, then install nvidia-580xx-dkms and nvidia-580xx-utils of \
                     the AUR (`yay -S nvidia-580xx-dkms nvidia-580xx-utils`) and the headers of your kernel, and restart"
                }
            }
        }
        Family::Fedora => match image::of(host) {
            Some(image) => image.advice_for_old_cards(),
            None => return None,
        },
        _ => return None,
    })
}
