//! Rewrites the commands of a remedy for systems that are not changed in place: NixOS is generated from its
//! configuration, Silverblue and its relatives are images, into which packages are layered, and MicroOS changes its next
//! snapshot.

use super::{image, nixos, upgrade};
use crate::facts::{Family, Host};
use crate::finding::Remedy;

/// The remedy as the packaging of this system lets it be carried out.
pub(super) fn as_packaged(host: &Host, remedy: &mut Remedy) {
    match host.family() {
        Some(Family::NixOs) => nixos::as_configuration(remedy),
        Some(Family::Leap | Family::Tumbleweed) if host.is_transactional() => as_snapshot(host, remedy),
        Some(Family::Fedora) if host.is_image() => as_layers(host, remedy),
        Some(Family::RedHat) if host.is_image() => as_definition(host, remedy),
        _ => {}
    }
}

/// Packages are layers of the next image, which is also when modules are built: what builds them here is replaced by
/// what builds the layer, in the same place, so that what the build needs stays before it.
fn as_layers(host: &Host, remedy: &mut Remedy) {
    const BUILDS: [&str; 3] = ["sudo akmods ", "sudo dkms ", "sudo dnf reinstall "];
    let builds = |command: &String| BUILDS.iter().any(|start| command.starts_with(start));
    let is_known = remedy.commands.iter().any(|command| command.contains("rpm-ostree"));
    if let Some(place) = remedy.commands.iter().position(builds) {
        remedy.commands.retain(|command| !builds(command));
        if !is_known {
            remedy.commands.splice(place..place, image::rebuild_module(host));
        }
    }
    for command in &mut remedy.commands {
        if let Some(packages) = command.strip_prefix("sudo dnf install ") {
            *command = format!("sudo rpm-ostree install {packages}");
        }
    }
}

/// The images of RHEL and its relatives are built elsewhere, from a Containerfile or a blueprint; dkms cannot build a
/// module on them.
fn as_definition(host: &Host, remedy: &mut Remedy) {
    // During the build, `uname` tells the kernel of the machine that builds.
    const OF_RUNNING: &str = "$(uname -r)";
    const OF_IMAGE_ITSELF: &str = "$(rpm -q --qf '%{VERSION}-%{RELEASE}.%{ARCH}' kernel-core)";
    const OF_IMAGE: [&str; 2] = ["sudo dnf ", "sudo dkms "];
    let is_of_image = |command: &String| OF_IMAGE.iter().any(|start| command.starts_with(start));
    if !remedy.commands.iter().any(is_of_image) {
        return;
    }
    remedy.text = format!(
        "in the definition of this image (Containerfile or blueprint); then build the image, install it ({}) and restart: {}",
        upgrade::packages(host).map_or_else(|| "as its updates".to_owned(), |command| format!("`{command}`")),
        remedy.text
    );
    for command in remedy.commands.iter_mut().filter(|command| is_of_image(command)) {
        *command = command.replace(OF_RUNNING, OF_IMAGE_ITSELF);
        if command.ends_with("dkms autoinstall") {
            *command = format!("{command} -k {OF_IMAGE_ITSELF}");
        }
        *command = format!("{}  # in the definition of the image", command.trim_start_matches("sudo "));
    }
}

/// transactional-update installs packages into a snapshot, from which the next start runs. Each call begins again with the
/// system that runs, so that several commands need one shell.
fn as_snapshot(host: &Host, remedy: &mut Remedy) {
    const INSIDE: [&str; 5] =
        ["sudo zypper install", "sudo zypper dup", "sudo zypper update", "sudo dracut", "sudo dkms"];
    const REBOOT: &str = "sudo reboot";
    let is_inside = |command: &String| INSIDE.iter().any(|start| command.starts_with(start));
    let places: Vec<usize> =
        (0..remedy.commands.len()).filter(|&at| is_inside(&remedy.commands[at])).collect();
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return };
    if let [only] = places[..] {
        let command = &mut remedy.commands[only];
        *command = match command.strip_prefix("sudo zypper ") {
            Some(rest) => match rest.split_once("install ") {
                Some((_, packages)) => format!("sudo transactional-update pkg install {packages}"),
                None if rest.starts_with("dup") => "sudo transactional-update dup".to_owned(),
                None => "sudo transactional-update up".to_owned(),
            },
            None if command.starts_with("sudo dracut") => "sudo transactional-update initrd".to_owned(),
            None => format!("sudo transactional-update run {}", command.trim_start_matches("sudo ")),
        };
    } else {
        for &place in &places {
            let command = remedy.commands[place].trim_start_matches("sudo ").to_owned();
            remedy.commands[place] = format!("{command}  # in that shell");
        }
        remedy.commands.insert(last + 1, "exit".to_owned());
        remedy.commands.insert(first, "sudo transactional-update shell".to_owned());
    }
    if host.is_own_machine() && !remedy.commands.iter().any(|command| command == REBOOT) {
        let then = if places.len() > 1 { last + 3 } else { last + 1 };
        remedy.text = format!(
            "{}; this system changes its packages in the next snapshot, so restart after that",
            remedy.text
        );
        remedy.commands.insert(then, REBOOT.to_owned());
    }
    // A module of the snapshot is there after the restart only, which loads it.
    remedy.commands.retain(|command| command != "sudo modprobe nvidia");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::Finding;

    fn commands(release: &str, before: &[&str]) -> Vec<String> {
        let host = Host::from_value(json!({
            "version": 1, "os": "linux",
            "files": { "/etc/os-release": release },
            "stats": { "/run/ostree-booted": { "kind": "file" } },
        }));
        let finding = before
            .iter()
            .fold(Finding::new("gpu.driver-unsuited", "…"), |finding, command| finding.command(*command));
        let mut remedy = finding.remedy.unwrap();
        as_packaged(&host.unwrap().0, &mut remedy);
        remedy.commands
    }

    #[test]
    fn a_layer_is_built_where_the_module_was() {
        let before = ["echo 1 | sudo tee /etc/rpm/macros.x", "sudo akmods --force", "sudo reboot"];
        let rebuilt = ["sudo rpm-ostree uninstall akmod-nvidia", "sudo rpm-ostree install akmod-nvidia"];
        assert_eq!(
            commands("ID=fedora\nVARIANT_ID=silverblue\n", &before),
            [before[0], rebuilt[0], rebuilt[1], before[2]]
        );
        // The driver is a part of these images.
        assert_eq!(commands("ID=bazzite\nID_LIKE=fedora\n", &before)[1], image::ROLL_BACK);
    }

    #[test]
    fn images_of_red_hat_are_built_elsewhere() {
        let rhel = "ID=\"rhel\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"10.0\"\n";
        assert_eq!(
            commands(rhel, &["sudo dnf install opensm"]),
            ["dnf install opensm  # in the definition of the image"]
        );
        assert_eq!(
            commands(rhel, &["sudo dnf install kernel-devel-$(uname -r)", "sudo dkms autoinstall"]),
            [
                "dnf install kernel-devel-$(rpm -q --qf '%{VERSION}-%{RELEASE}.%{ARCH}' kernel-core)  # in the definition of the \
                 image",
                "dkms autoinstall -k $(rpm -q --qf '%{VERSION}-%{RELEASE}.%{ARCH}' kernel-core)  # in the definition of the image",
            ]
        );
    }

    #[test]
    fn packages_of_a_snapshot_are_there_after_a_restart() {
        let microos = "ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\n";
        assert_eq!(
            commands(microos, &["sudo zypper install libgomp1"]),
            ["sudo transactional-update pkg install libgomp1", "sudo reboot"]
        );
        assert_eq!(
            commands(microos, &["sudo zypper dup", "sudo modprobe nvidia"]),
            ["sudo transactional-update dup", "sudo reboot"]
        );
        let two = [
            "sudo zypper addrepo --refresh x NVIDIA",
            "sudo zypper install a",
            "sudo zypper install b=$(rpm -q a)",
        ];
        assert_eq!(
            commands(microos, &two),
            [
                two[0],
                "sudo transactional-update shell",
                "zypper install a  # in that shell",
                "zypper install b=$(rpm -q a)  # in that shell",
                "exit",
                "sudo reboot"
            ]
        );
    }
}
