//! A boot partition without room: an update of the kernel or the driver stops halfway, when it writes the initramfs, and
//! whatever writes it again fails in the same way.

use yolo_base::format;

use crate::facts::{Family, Host};
use crate::finding::Finding;

/// An initramfs with NVIDIA's firmware has more than 100 MB, and is written beside the old one.
const NEEDED: u64 = 150_000_000;

/// The finding with room made on the boot partition, before the commands that need it; the finding as it is, if there
/// is room or nothing is known.
pub(crate) fn first(host: &Host, finding: Finding) -> Finding {
    let Some(seen) = full(host) else { return finding };
    let commands: &[&str] = match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) => &["sudo apt autoremove --purge"],
        Some(Family::Fedora | Family::RedHat | Family::Amazon) if !host.is_image() => {
            &["sudo dnf remove --oldinstallonly"]
        }
        Some(Family::Leap | Family::Tumbleweed) if !host.is_transactional() => &["sudo zypper purge-kernels"],
        _ => &[],
    };
    let finding = finding.seen(seen);
    let Some(remedy) = finding.remedy.as_ref() else { return finding };
    let smaller = match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) => {
            "; if apt refuses, because an update was interrupted, or removes none, remove an old kernel with `sudo dpkg --purge \
             linux-image-OLD linux-modules-OLD` and the packages that dpkg then names (`dpkg -l 'linux-image-*'` lists \
             kernels; keep the one that `uname -r` names); if that is \
             not enough, set MODULES=dep in /etc/initramfs-tools/initramfs.conf, which makes the initramfs smaller"
        }
        _ => "",
    };
    let text = format!("make room on /boot first (remove old kernels){smaller}; then {}", remedy.text);
    let after = remedy.commands.clone();
    let mut finding = finding.remedy(text);
    if let Some(remedy) = finding.remedy.as_mut() {
        remedy.commands = commands.iter().map(|&command| command.to_owned()).chain(after).collect();
    }
    finding
}

/// Why /boot is known to be too small, in words for the evidence.
fn full(host: &Host) -> Option<String> {
    if !host.is_own_machine() {
        return None;
    }
    let boot = host.file_system("/boot").ok().filter(|system| system.mount.as_deref() == Some("/boot"));
    if let Some(available) = boot.and_then(|system| system.available) {
        return (available < NEEDED).then(|| format!("/boot has {} left", format::memory(available)));
    }
    const OF_BOOT: [&str; 2] = ["mkinitramfs failure", "update-initramfs: failed"];
    let texts = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let mut said = texts.filter(|text| OF_BOOT.iter().any(|words| text.contains(words)));
    said.find_map(|text| {
        text.lines().find(|line| line.contains("No space left on device")).map(|line| line.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn remedy(patch: Value) -> (String, Vec<String>) {
        let mut recording = json!({
            "version": 1, "os": "linux",
            "files": { "/etc/os-release": "ID=ubuntu\nVERSION_ID=\"24.04\"\n", "/.dockerenv": null },
        });
        for (name, value) in patch.as_object().unwrap() {
            recording[name] = value.clone();
        }
        let host = Host::from_value(recording).unwrap().0;
        let finding = Finding::new("gpu.driver-mismatch", "…").remedy("finish the update");
        let remedy = first(&host, finding.command("sudo dpkg --configure -a")).remedy.unwrap();
        (remedy.text, remedy.commands)
    }

    #[test]
    fn room_is_made_before_what_needs_it() {
        let file_system = |mount: &str, available: u64| {
            json!({ "filesystems": { "/boot": {
                "type": "ext4", "mount": mount, "total": 500_000_000_u64, "available": available, "inodes": 1, "inodes_free": 1,
                "options": ["rw"],
            } } })
        };
        let (text, commands) = remedy(file_system("/boot", 20_000_000));
        assert!(text.starts_with("make room on /boot first"), "{text}");
        assert!(text.contains("if apt refuses, because an update was interrupted"), "{text}");
        assert_eq!(commands, ["sudo apt autoremove --purge", "sudo dpkg --configure -a"]);
        for other in [file_system("/boot", 300_000_000), file_system("/", 20_000_000)] {
            assert_eq!(
                remedy(other),
                ("finish the update".to_owned(), vec!["sudo dpkg --configure -a".to_owned()])
            );
        }
        let said = "zstd: error 25 : Write error : No space left on device (cannot write compressed block)\n\
                    E: mkinitramfs failure zstd 25\n";
        assert_eq!(remedy(json!({ "commands": { "apt upgrade": said } })).1.len(), 2);
    }
}
