//! Putting the last driver for cards before Turing in the place of a newer one, which has dropped them.

use super::generation::Generation;
use super::image;
use super::install_driver::install_for;
use super::old_card::{LAST_FOR_OLD_CARDS, OF_FUSION};
use crate::facts::{Family, Host};

/// The commands that put the driver of branch 580 in the place of another.
pub(crate) fn by_old_branch(host: &Host) -> Vec<String> {
    let old = || install_for(host, Some(Generation::BeforeTuring));
    if host.is_container() {
        return Vec::new();
    }
    match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu) => {
            vec![format!("sudo apt install nvidia-driver-{LAST_FOR_OLD_CARDS}")]
        }
        Some(Family::Fedora) if host.is_image() => match image::of(host) {
            Some(image) => image.commands_for_old_cards(),
            None => {
                let added: Vec<String> = OF_FUSION.iter().map(|name| format!("--install={name}")).collect();
                let added = added.join(" ");
                vec![format!("sudo rpm-ostree uninstall akmod-nvidia xorg-x11-drv-nvidia-cuda {added}")]
            }
        },
        // The two drivers conflict.
        Some(Family::Fedora) => {
            let remove = "sudo dnf remove 'akmod-nvidia*' 'kmod-nvidia*' 'xorg-x11-drv-nvidia*'".to_owned();
            [remove].into_iter().chain(old()).collect()
        }
        Some(Family::Void) => ["sudo xbps-remove nvidia".to_owned()].into_iter().chain(old()).collect(),
        _ => old(),
    }
}
