//! Systems that are sold or installed for storage, and that run containers beside it: they are built on a distribution, but
//! have no package manager for their users. What installs NVIDIA's driver is a switch or a plugin in their web interface.

use super::generation::{Generation, newest};
use crate::facts::Host;
use crate::finding::Remedy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Appliance {
    /// Debian without apt; it has the driver as an extension of the system.
    TrueNas,
    /// Slackware in memory.
    Unraid,
    Synology,
}

/// Containers see it by the kernel, too.
fn of(host: &Host) -> Option<Appliance> {
    let kernel = host.kernel_release().unwrap_or_default();
    let exists = |path: &str| host.exists(path) == Ok(true);
    match () {
        () if kernel.contains("+truenas") => Some(Appliance::TrueNas),
        () if kernel.to_ascii_lowercase().ends_with("-unraid") || exists("/etc/unraid-version") => {
            Some(Appliance::Unraid)
        }
        () if exists("/etc.defaults/VERSION") => Some(Appliance::Synology),
        () => None,
    }
}

/// How the driver is installed on such a system; `None` elsewhere, and in containers.
pub(super) fn advice(host: &Host) -> Option<&'static str> {
    of(host).filter(|_| !host.is_container()).map(|appliance| words(host, appliance))
}

/// Replaces what would change packages of the system by what its web interface offers.
pub(super) fn as_offered(host: &Host, remedy: &mut Remedy) {
    const OF_PACKAGES: [&str; 8] = [
        "sudo apt ",
        "sudo apt-get ",
        "sudo dpkg ",
        "sudo dkms ",
        "sudo update-initramfs",
        "sudo wget ",
        "wget ",
        "curl ",
    ];
    const OF_DRIVER: [&str; 4] = ["nvidia", "linux-headers", "dkms", "cuda-keyring"];
    let Some(appliance) = of(host) else { return };
    let is_of_packages = |command: &str| {
        OF_PACKAGES.iter().any(|start| command.starts_with(start)) || command.contains(" /etc/apt/")
    };
    // The container toolkit and the driver's libraries of an image are no driver.
    let is_of_driver = |command: &str| {
        OF_DRIVER.iter().any(|word| command.contains(word))
            && !command.contains("nvidia-container")
            && !command.contains("libnvidia-")
    };
    let has_driver = remedy.commands.iter().any(|command| is_of_packages(command) && is_of_driver(command));
    if has_driver {
        remedy.text = words(host, appliance).to_owned();
        // Neither loads what is not installed.
        remedy.commands.retain(|command| {
            !is_of_packages(command) && !command.starts_with("sudo modprobe ") && command != "sudo reboot"
        });
    } else if !host.is_container() && remedy.commands.iter().any(|command| is_of_packages(command)) {
        remedy.text = format!(
            "in a container or a virtual machine, because this system has no packages to install: {}",
            remedy.text
        );
        remedy.commands.retain(|command| !is_of_packages(command));
    }
}

fn words(host: &Host, appliance: Appliance) -> &'static str {
    let is_old = newest(host) == Some(Generation::BeforeTuring);
    match appliance {
        Appliance::TrueNas if is_old => {
            "TrueNAS installs the driver itself (Apps, Configuration, Settings, Install NVIDIA Drivers), from release 25.10 on with the open \
             module only, which does not run this card: stay with TrueNAS 25.04, or train in a virtual machine that is given the card"
        }
        Appliance::TrueNas => {
            "TrueNAS installs the driver itself, and has no apt: in its web interface, open Apps, Configuration, Settings, and choose \
             Install NVIDIA Drivers (off and on again if it is on); the card must not be isolated for virtual machines (System, Advanced, \
             Isolated GPU Device); then restart TrueNAS"
        }
        Appliance::Unraid if is_old => {
            "Unraid installs the driver by a plugin: in its web interface, open Apps, install the plugin Nvidia Driver, choose the driver's \
             branch 580 there, the last one for this card, and restart Unraid"
        }
        Appliance::Unraid => {
            "Unraid installs the driver by a plugin: in its web interface, open Apps, install the plugin Nvidia Driver, or choose another \
             version in its settings, and restart Unraid"
        }
        Appliance::Synology => {
            "train on another machine: this Synology system offers its users no NVIDIA driver"
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::Finding;
    use crate::remedies::install_driver;

    #[test]
    fn a_system_without_a_family_is_advised() {
        let host = |kernel: &str| {
            let files = json!({ "/proc/sys/kernel/osrelease": format!("{kernel}\n"), "/.dockerenv": null });
            Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0
        };
        let unraid = host("6.12.24-Unraid");
        assert!(install_driver::advice(&unraid).unwrap().contains("plugin Nvidia Driver"));
        assert!(install_driver::install(&unraid).is_empty());
        assert_eq!(advice(&host("6.12.48+deb13-amd64")), None);
    }

    fn fitted(kernel: &str, commands: &[&str]) -> Remedy {
        let host = Host::from_value(json!({
            "version": 1, "os": "linux", "files": { "/proc/sys/kernel/osrelease": format!("{kernel}\n") },
        }));
        let finding = Finding::new("gpu.driver-missing", "…").remedy("install it");
        let mut remedy = commands.iter().fold(finding, |finding, one| finding.command(*one)).remedy.unwrap();
        as_offered(&host.unwrap().0, &mut remedy);
        remedy
    }

    #[test]
    fn a_driver_comes_from_the_web_interface() {
        let commands = ["sudo apt install linux-headers-amd64 nvidia-driver", "sudo reboot"];
        let remedy = fitted("6.12.105-production+truenas", &commands);
        assert!(remedy.text.contains("Install NVIDIA Drivers"));
        assert!(remedy.commands.is_empty());
        assert!(fitted("6.12.24-Unraid", &commands).text.contains("plugin Nvidia Driver"));
        assert_eq!(fitted("6.12.48+deb13-amd64", &commands).commands, commands);
        let with_key = [&["wget https://x/cuda-keyring_1.1-1_all.deb"], &commands[..]].concat();
        assert!(fitted("6.12.105-production+truenas", &with_key).commands.is_empty());
        let toolkit =
            ["curl -fsSL https://x | sudo gpg --dearmor", "sudo apt install nvidia-container-toolkit"];
        let remedy = fitted("6.12.105-production+truenas", &toolkit);
        assert!(remedy.text.ends_with("install it") && remedy.commands.is_empty());
        let other = fitted("6.12.105-production+truenas", &["sudo apt install libgomp1"]);
        assert!(other.text.ends_with("install it") && other.commands.is_empty());
    }
}
