//! The release of Debian or RHEL whose packages this system has. Relatives have version numbers of their own: LMDE 7 and
//! Devuan 6 are made from Debian 13, and Alibaba Cloud Linux 3 is like RHEL 8.

use crate::facts::host::Host;

/// The names of Debian's releases, and of the relatives that are made from one. Testing is newer than the newest
/// release, and has its packages or later ones.
const OF_DEBIAN: [(&str, u32); 15] = [
    ("buster", 10),
    ("bullseye", 11),
    ("bookworm", 12),
    ("trixie", 13),
    ("forky", 13),
    ("duke", 13),
    ("sid", 13),
    ("kali-rolling", 13),
    // Devuan.
    ("chimaera", 11),
    ("daedalus", 12),
    ("excalibur", 13),
    ("freia", 13),
    ("ceres", 13),
    // Parrot.
    ("lory", 12),
    ("echo", 13),
];

impl Host {
    /// Debian's release, if this is Debian or a relative that tells it; 13 for testing and unstable.
    pub(crate) fn debian_release(&self) -> Option<u32> {
        let value = self.os_release().ok()?;
        let named =
            |name: &str| OF_DEBIAN.iter().find(|(known, _)| *known == name).map(|(_, release)| *release);
        let number = |text: &str| text.split('.').next()?.trim().parse::<u32>().ok();
        let is_debian = value("ID") == "debian";
        if let Some(release) = number(&value("VERSION_ID")).filter(|_| is_debian) {
            return Some(release);
        }
        // Such as `13.1` or `forky/sid`.
        let file = || self.text("/etc/debian_version").ok().flatten();
        let of_file = || {
            let text = file()?;
            number(&text).or_else(|| named(text.trim().split('/').next()?))
        };
        let rolling = (is_debian || value("ID") == "kali").then_some(13);
        named(&value("DEBIAN_CODENAME"))
            .or_else(|| named(&value("VERSION_CODENAME")))
            .or_else(of_file)
            .filter(|release| (10..=13).contains(release))
            .or(rolling)
    }

    /// RHEL's release, if this is RHEL or a relative that tells it, as a word for a shell.
    pub(crate) fn rhel_release(&self) -> Option<String> {
        let distribution = self.distribution().ok()?;
        if distribution.is_of_red_hat() {
            let number = distribution.version.map(|version| version.major().to_string());
            return Some(number.unwrap_or_else(|| "$(rpm -E %rhel)".to_owned()));
        }
        // Such as `platform:el9`; those with kernels and packages of their own have other letters.
        let platform = self.os_release().ok()?("PLATFORM_ID");
        let number = platform.strip_prefix("platform:el")?.parse::<u32>().ok()?;
        Some(number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn host(release: &str, debian: Option<&str>) -> Host {
        let files = json!({ "/etc/os-release": release, "/etc/debian_version": debian });
        Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0
    }

    #[test]
    fn relatives_tell_the_release_of_debian() {
        for (text, file, release) in [
            ("ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n", None, Some(12)),
            ("ID=debian\nVERSION_CODENAME=forky\n", None, Some(13)),
            ("ID=debian\n", None, Some(13)),
            ("ID=linuxmint\nID_LIKE=debian\nVERSION_ID=\"7\"\nDEBIAN_CODENAME=trixie\n", None, Some(13)),
            ("ID=linuxmint\nID_LIKE=debian\nVERSION_ID=\"7\"\n", Some("13.1\n"), Some(13)),
            ("ID=linuxmint\nID_LIKE=debian\nVERSION_ID=\"7\"\n", None, None),
            ("ID=devuan\nID_LIKE=debian\nVERSION_ID=\"5\"\nVERSION_CODENAME=daedalus\n", None, Some(12)),
            ("ID=parrot\nID_LIKE=debian\nVERSION_ID=\"6.4\"\nVERSION_CODENAME=lory\n", None, Some(12)),
            ("ID=sparky\nID_LIKE=debian\nVERSION_ID=\"8\"\n", Some("forky/sid\n"), Some(13)),
            ("ID=kali\nID_LIKE=debian\nVERSION_ID=\"2026.3\"\n", Some("kali-rolling\n"), Some(13)),
        ] {
            assert_eq!(host(text, file).debian_release(), release, "{text} {file:?}");
        }
    }

    #[test]
    fn relatives_tell_the_release_of_rhel() {
        for (text, release) in [
            ("ID=\"rocky\"\nVERSION_ID=\"9.5\"\nPLATFORM_ID=\"platform:el9\"\n", Some("9")),
            ("ID=\"ol\"\nVERSION_ID=\"8.10\"\n", Some("8")),
            ("ID=\"centos\"\n", Some("$(rpm -E %rhel)")),
            ("ID=\"tencentos\"\nVERSION_ID=\"3.1\"\nPLATFORM_ID=\"platform:el8\"\n", Some("8")),
            ("ID=\"alinux\"\nVERSION_ID=\"3\"\nPLATFORM_ID=\"platform:al8\"\n", None),
            ("ID=\"anolis\"\nVERSION_ID=\"23\"\nPLATFORM_ID=\"platform:an23\"\n", None),
        ] {
            assert_eq!(host(text, None).rhel_release().as_deref(), release, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(ID=|debian|rhel|\n|VERSION_CODENAME=|PLATFORM_ID=|platform:el|9|\\PC){0,12}") {
            let host = host(&text, Some(&text));
            let _ = (host.debian_release(), host.rhel_release());
        }
    }
}
