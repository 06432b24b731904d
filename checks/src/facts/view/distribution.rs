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

impl Distribution {
    /// Its package manager, if it is a known one.
    pub fn packages(&self) -> Option<Packages> {
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

impl Host {
    /// The distribution of this system.
    pub fn distribution(&self) -> Fact<Distribution> {
        let path = "/etc/os-release";
        let text = self.text(path)?.ok_or_else(|| Unknown(format!("{path} does not exist")))?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        };
        let version = Version::find(&value("VERSION_ID"));
        Ok(Distribution { id: value("ID"), like: value("ID_LIKE"), version })
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
}
