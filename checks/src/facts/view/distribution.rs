//! The Linux distribution, from /etc/os-release, so that a remedy can name its own commands.

use super::version::Version;
use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Such as `ubuntu`, `debian`, `fedora`, `arch`, `alpine`.
    pub id: String,
    /// The distributions it is derived from, such as `debian`.
    pub like: String,
    /// Such as 24.04.
    pub version: Option<Version>,
}

/// The package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packages {
    /// Debian, Ubuntu and derivatives.
    Apt,
    /// Fedora, RHEL and derivatives.
    Dnf,
    /// openSUSE.
    Zypper,
    /// Arch and derivatives.
    Pacman,
}

/// A family of distributions whose members install NVIDIA's driver, and build its kernel module, in the
/// same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Ubuntu and its flavors: `ubuntu-drivers`, modules in packages for each kernel.
    Ubuntu,
    /// Linux Mint, Pop!_OS, Zorin and others on Ubuntu's packages, without all of Ubuntu's tools.
    OnUbuntu,
    /// Debian and derivatives: `nvidia-driver` from non-free, modules by dkms.
    Debian,
    /// Fedora and Nobara: RPM Fusion, modules by akmods.
    Fedora,
    /// RHEL, Rocky, Alma, CentOS Stream, Oracle Linux: NVIDIA's own repository.
    RedHat,
    /// Amazon Linux 2023: its own packages.
    Amazon,
    /// openSUSE Leap and SLES.
    Leap,
    /// openSUSE Tumbleweed and those that are made from it: Slowroll, MicroOS, Aeon.
    Tumbleweed,
    /// Arch, Manjaro, CachyOS, EndeavourOS.
    Arch,
    /// NixOS: the configuration decides what is installed.
    NixOs,
    /// Alpine, with musl instead of glibc.
    Alpine,
    /// Void Linux.
    Void,
    /// NVIDIA's Jetson boards (L4T) and DGX OS, whose driver comes with the system.
    Nvidia,
}

/// Systems whose packages come with an image of theirs, into which no package manager puts others.
const SEALED: [&str; 7] =
    ["steamos", "chimeraos", "endless", "vanilla", "ubuntu-core", "flatcar", "bottlerocket"];

/// Distributions with the packages of Red Hat's releases, and their numbers.
const OF_RED_HAT: [&str; 6] = ["rhel", "rocky", "almalinux", "centos", "ol", "scientific"];

impl Distribution {
    /// Whether its user cannot install packages, and so no driver either.
    pub(crate) fn is_sealed(&self) -> bool {
        SEALED.contains(&self.id.as_str())
    }

    /// Whether this release is too old for any driver and libtorch of today: its glibc is from before 2018, and its package
    /// manager is yum.
    pub(crate) fn is_outdated(&self) -> bool {
        let is_of_red_hat = self.is_of_red_hat() || self.id == "amzn";
        is_of_red_hat && self.version.as_ref().is_some_and(|version| version.major() < 8)
    }

    /// Whether its release numbers are those of RHEL. Others that are like it count in their own way.
    pub(crate) fn is_of_red_hat(&self) -> bool {
        OF_RED_HAT.contains(&self.id.as_str())
    }

    /// The family that it belongs to, if it is a known one.
    pub fn family(&self) -> Option<Family> {
        if self.is_sealed() || self.is_outdated() {
            return None;
        }
        let is = |names: &[&str]| names.contains(&self.id.as_str());
        let like = |name: &str| self.like.split(' ').any(|word| word == name);
        Some(match () {
            () if is(&["ubuntu"]) => Family::Ubuntu,
            () if is(&["debian", "kali", "raspbian"]) => Family::Debian,
            () if is(&["fedora", "nobara", "ultramarine"]) => Family::Fedora,
            () if is(&["amzn"]) => Family::Amazon,
            () if is(&["opensuse-tumbleweed"]) => Family::Tumbleweed,
            () if is(&["nixos"]) => Family::NixOs,
            () if is(&["alpine"]) => Family::Alpine,
            () if is(&["void"]) => Family::Void,
            () if like("ubuntu") => Family::OnUbuntu,
            () if like("debian") => Family::Debian,
            () if self.is_of_red_hat() || like("rhel") || like("centos") => Family::RedHat,
            () if like("fedora") => Family::Fedora,
            () if like("opensuse-tumbleweed") => Family::Tumbleweed,
            () if is(&["opensuse-leap", "sles", "opensuse", "suse"]) || like("suse") || like("opensuse") => {
                Family::Leap
            }
            () if is(&["arch"]) || like("arch") => Family::Arch,
            () => return None,
        })
    }

    /// Its package manager, if it is a known one.
    pub fn packages(&self) -> Option<Packages> {
        if self.is_sealed() || self.is_outdated() {
            return None;
        }
        let words = || self.id.split(' ').chain(self.like.split(' '));
        let is = |names: &[&str]| words().any(|word| names.contains(&word));
        if is(&["debian", "ubuntu"]) {
            Some(Packages::Apt)
        } else if is(&["fedora", "rhel", "centos"]) {
            Some(Packages::Dnf)
        } else if is(&["suse", "opensuse", "opensuse-leap", "opensuse-tumbleweed", "sles"]) {
            Some(Packages::Zypper)
        } else if is(&["arch"]) {
            Some(Packages::Pacman)
        } else {
            None
        }
    }
}

/// Words in the names of openSUSE's systems that are changed by transactional-update.
const TRANSACTIONAL: [&str; 4] = ["microos", "micro", "aeon", "kalpa"];

impl Host {
    /// Whether this system was started from an image, as Silverblue, Bazzite and RHEL's image mode are: /usr cannot be
    /// written, and packages are layers of the next image.
    pub(crate) fn is_image(&self) -> bool {
        self.exists("/run/ostree-booted") == Ok(true)
    }

    /// Whether packages of this system are installed into its next snapshot, as those of MicroOS, Aeon, Leap Micro and SLE
    /// Micro are: /usr cannot be written.
    pub(crate) fn is_transactional(&self) -> bool {
        self.distribution().is_ok_and(|of| {
            let words = of.id.split(' ').chain(of.like.split(' '));
            of.packages() == Some(Packages::Zypper)
                && words.flat_map(|word| word.split('-')).any(|word| TRANSACTIONAL.contains(&word))
        })
    }

    /// Whether systemd manages the services of this machine.
    pub(crate) fn has_systemd(&self) -> bool {
        const WITHOUT: [&str; 6] = ["alpine", "void", "devuan", "artix", "antix", "slackware"];
        let id = self.distribution().map(|distribution| distribution.id).unwrap_or_default();
        // Containers and WSL have their services elsewhere.
        let is_running = self.exists("/run/systemd/system") != Ok(false) || !self.is_own_machine();
        !WITHOUT.contains(&id.as_str()) && is_running
    }

    /// The distribution of this system.
    pub fn distribution(&self) -> Fact<Distribution> {
        let value = self.os_release()?;
        let version = Version::find(&value("VERSION_ID"));
        Ok(Distribution { id: value("ID"), like: value("ID_LIKE"), version })
    }

    /// What the system says about itself, by name.
    pub(super) fn os_release(&self) -> Fact<impl Fn(&str) -> String> {
        let path = "/etc/os-release";
        let text = self.text(path)?.ok_or_else(|| Unknown(format!("{path} does not exist")))?;
        Ok(move |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        })
    }

    /// The family of this system's distribution, if it is a known one.
    pub fn family(&self) -> Option<Family> {
        // L4T is Ubuntu by its os-release, and DGX OS too.
        let is_of_nvidia = ["/etc/nv_tegra_release", "/etc/dgx-release"];
        if is_of_nvidia.iter().any(|file| self.exists(file) == Ok(true)) {
            return Some(Family::Nvidia);
        }
        self.distribution().ok()?.family()
    }

    /// The command for this system's package manager, of those for apt, dnf, zypper and pacman in this
    /// order.
    pub fn package_command(&self, commands: [&str; 4]) -> Option<String> {
        let place = match self.distribution().ok()?.packages()? {
            Packages::Apt => 0,
            Packages::Dnf => 1,
            Packages::Zypper => 2,
            Packages::Pacman => 3,
        };
        Some(commands[place].to_owned()).filter(|command| !command.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn distribution(text: &str) -> Distribution {
        let recording = json!({ "version": 1, "files": { "/etc/os-release": text } });
        Host::from_value(recording).unwrap().0.distribution().unwrap()
    }

    #[test]
    fn the_package_manager_follows_from_id_and_id_like() {
        let mint =
            distribution("NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22\"\n");
        assert_eq!(mint.packages(), Some(Packages::Apt));
        assert_eq!(mint.version.unwrap().major(), 22);
        assert_eq!(
            distribution("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n").packages(),
            Some(Packages::Dnf)
        );
        assert_eq!(distribution("ID=alpine\n").packages(), None);
    }

    #[test]
    fn relatives_are_of_the_family_whose_packages_they_have() {
        let family = |text: &str| distribution(text).family();
        let slowroll = "ID=\"opensuse-slowroll\"\nID_LIKE=\"opensuse opensuse-tumbleweed suse\"\n";
        assert_eq!(family(slowroll), Some(Family::Tumbleweed));
        let aeon = "ID=\"aeon\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\n";
        assert_eq!(family(aeon), Some(Family::Tumbleweed));
        assert_eq!(family("ID=\"sle-micro\"\nID_LIKE=\"suse\"\n"), Some(Family::Leap));
        assert_eq!(
            family("ID=\"alinux\"\nID_LIKE=\"rhel fedora centos anolis\"\nVERSION_ID=\"3\"\n"),
            Some(Family::RedHat)
        );
        // No package manager, or none of today, installs a driver there.
        for other in [
            "ID=steamos\nID_LIKE=arch\n",
            "ID=\"amzn\"\nID_LIKE=\"centos rhel fedora\"\nVERSION_ID=\"2\"\n",
            "ID=\"centos\"\nID_LIKE=\"rhel fedora\"\nVERSION_ID=\"7\"\n",
        ] {
            assert_eq!((family(other), distribution(other).packages()), (None, None), "{other}");
        }
    }

    #[test]
    fn systems_with_snapshots_are_told_from_others() {
        let is_transactional = |text: &str| {
            let recording = json!({ "version": 1, "files": { "/etc/os-release": text } });
            Host::from_value(recording).unwrap().0.is_transactional()
        };
        for text in [
            "ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\n",
            "ID=\"aeon\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed opensuse-microos\"\n",
            "ID=\"opensuse-leap-micro\"\nID_LIKE=\"suse opensuse opensuse-leap\"\n",
            "ID=\"sl-micro\"\nID_LIKE=\"suse\"\n",
        ] {
            assert!(is_transactional(text), "{text}");
        }
        assert!(!is_transactional(
            "ID=\"opensuse-slowroll\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\n"
        ));
        assert!(!is_transactional("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n"));
    }
}
