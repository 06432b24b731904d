//! Virtual disks of distributions that are on a Windows PC, whether or not WSL still knows them.

use crate::facts::host::Host;
use crate::facts::question::Section;

/// The name of such a disk.
const DISK: &str = "ext4.vhdx";
/// Parts of the names of the folders in which packages of distributions from the store keep theirs.
const PUBLISHERS: [&str; 6] = [
    "CanonicalGroupLimited.",
    "TheDebianProject.",
    "KaliLinux.",
    "openSUSEProject.",
    "SUSE",
    "OracleAmericaInc.",
];
/// How many folders are looked at.
const MOST: usize = 64;

impl Host {
    /// Paths of virtual disks in the folders where the store and `wsl --install` put them.
    pub(crate) fn disks_of_wsl(&self) -> Vec<String> {
        if self.is_recorded() {
            let mut found: Vec<String> = [Section::Files, Section::Stats]
                .into_iter()
                .flat_map(|section| self.recorded_names(section))
                .filter(|path| path.ends_with(&format!("\\{DISK}")) && is_of_user(path))
                .collect();
            let folders = self.recorded_names(Section::Folders).into_iter();
            found.extend(
                folders.filter(|folder| folder.ends_with("\\LocalState") && is_of_user(folder)).filter_map(
                    |folder| {
                        let names = self.folder(&folder).ok().flatten()?;
                        names.iter().any(|name| name == DISK).then(|| format!("{folder}\\{DISK}"))
                    },
                ),
            );
            found.sort();
            found.dedup();
            return found;
        }
        let Ok(profile) = self.windows_profile() else { return Vec::new() };
        let local = format!("{}\\AppData\\Local", profile.trim_end_matches('\\'));
        let inside = |folder: &str| self.folder(folder).ok().flatten().unwrap_or_default();
        let packages = inside(&format!("{local}\\Packages")).into_iter();
        let of_store = packages
            .filter(|name| PUBLISHERS.iter().any(|publisher| name.contains(publisher)))
            .map(|name| format!("{local}\\Packages\\{name}\\LocalState\\{DISK}"));
        let of_wsl = inside(&format!("{local}\\wsl")).into_iter();
        let of_wsl = of_wsl.map(|name| format!("{local}\\wsl\\{name}\\{DISK}"));
        of_store.chain(of_wsl).take(MOST).filter(|path| self.exists(path) == Ok(true)).collect()
    }
}

/// Whether it is in one of the folders that a live host is asked for: those of Docker and Podman are elsewhere.
fn is_of_user(path: &str) -> bool {
    path.contains("\\AppData\\Local\\wsl\\")
        || path
            .split_once("\\Packages\\")
            .is_some_and(|(_, package)| PUBLISHERS.iter().any(|publisher| package.contains(publisher)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn disks_of_other_programs_are_none_of_the_user() {
        let stats = json!({
            r"C:\Users\ada\AppData\Local\Docker\wsl\main\ext4.vhdx": { "kind": "file" },
            r"C:\Users\ada\AppData\Local\wsl\{0a}\ext4.vhdx": { "kind": "file" },
        });
        let (host, _) = Host::from_value(json!({ "version": 1, "os": "windows", "stats": stats })).unwrap();
        assert_eq!(host.disks_of_wsl(), [r"C:\Users\ada\AppData\Local\wsl\{0a}\ext4.vhdx"]);
    }

    #[test]
    fn a_disk_is_found_in_the_folder_of_its_package() {
        let folder = r"C:\Users\ada\AppData\Local\Packages\CanonicalGroupLimited.Ubuntu_x\LocalState";
        let recording =
            json!({ "version": 1, "os": "windows", "folders": { folder: ["ext4.vhdx", "fsserver"] } });
        let (host, _) = Host::from_value(recording).unwrap();
        assert_eq!(host.disks_of_wsl(), [format!("{folder}\\ext4.vhdx")]);
    }
}
