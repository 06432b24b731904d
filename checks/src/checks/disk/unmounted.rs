//! Whether a path that does not exist is on a drive that is not mounted: its folder is then empty, or has another
//! name, and correcting the YAML file would be wrong.

use yolo_base::mounts;

use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// What to do, and the command for it.
pub(super) struct Advice {
    text: String,
    command: Option<String>,
}

/// Why such a path does not exist.
const CAUSE: &str = "its drive is not mounted there, so the folder is empty or does not exist";

impl Advice {
    /// The finding with this advice.
    pub(super) fn add_to(self, finding: Finding) -> Finding {
        let finding = finding.because(CAUSE).remedy(self.text);
        match self.command {
            Some(command) => finding.command(command),
            None => finding,
        }
    }
}

/// What to do about a path that does not exist, if its drive is known and not mounted.
pub(super) fn advice(host: &Host, path: &str) -> Option<Advice> {
    let is_machine = matches!(host.place(), Place::Machine | Place::Wsl | Place::Lxc);
    let table = host.text("/proc/self/mountinfo").ok().flatten().filter(|_| is_machine)?;
    by_fstab(host, &table, path).or_else(|| by_desktop(host, &table, path))
}

/// A mount point of /etc/fstab above the path, where nothing is mounted.
fn by_fstab(host: &Host, table: &str, path: &str) -> Option<Advice> {
    let text = host.text("/etc/fstab").ok().flatten()?;
    let point = points(&text).into_iter().find(|point| {
        let is_above =
            path.strip_prefix(point.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_above && mounts::holding(table, point).is_none_or(|mount| mount.point != *point)
    })?;
    Some(Advice {
        text: format!(
            "the drive of {point} is not mounted, although /etc/fstab names it: mount it; if that fails, see whether it is \
             connected (`lsblk -f`) and why it was not mounted at the start (`journalctl -b -p warning`)"
        ),
        command: Some(format!("sudo mount {}", quote(&point))),
    })
}

/// The mount points of /etc/fstab, but for the system's own.
fn points(fstab: &str) -> Vec<String> {
    let lines = fstab.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let points = lines.filter_map(|line| line.split_whitespace().nth(1));
    let points =
        points.filter(|point| point.starts_with('/') && *point != "/" && !point.starts_with("/boot"));
    points.map(|point| point.replace("\\040", " ")).collect()
}

/// A drive that the desktop mounts under its name, at another place now or not at all.
fn by_desktop(host: &Host, table: &str, path: &str) -> Option<Advice> {
    let user = host.user().ok()?.name?;
    let roots = [format!("/media/{user}"), format!("/run/media/{user}")];
    let root = roots.iter().find(|root| path.starts_with(&format!("{root}/")))?;
    let name = path.strip_prefix(root.as_str())?.trim_start_matches('/').split('/').next()?;
    let point = format!("{root}/{name}");
    if mounts::holding(table, &point).is_some_and(|mount| mount.point == point) {
        return None;
    }
    let mounted = |place: &String| mounts::holding(table, place).is_some_and(|mount| mount.point == *place);
    let others = roots.iter().flat_map(|root| ["", "1", "2"].map(|end| format!("{root}/{name}{end}")));
    let text = match others.filter(|other| *other != point).find(mounted) {
        Some(other) => format!(
            "the drive {name} is mounted at {other} now: write that path, or unmount it, remove the empty folder {point} and mount \
             it again"
        ),
        None => format!(
            "the drive {name} is not mounted: connect it and open it in the file manager, or use `udisksctl mount -b`"
        ),
    };
    Some(Advice { text, command: None })
}

/// The drive of Windows that a path in WSL leads to, if WSL has not mounted it.
pub(super) fn drive_of_windows(host: &Host, path: &str) -> Option<char> {
    if host.is_wsl2() != Ok(true) || host.is_container() {
        return None;
    }
    let table = host.text("/proc/self/mountinfo").ok().flatten()?;
    let drive = host.windows_drive();
    let root = drive.rsplit_once('/')?.0;
    let mut rest = path.strip_prefix(root)?.strip_prefix('/')?.chars();
    let letter = rest.next().filter(char::is_ascii_lowercase)?;
    if rest.next().is_some_and(|next| next != '/') {
        return None;
    }
    let is_mounted = |place: &str| table.lines().any(|line| line.split(' ').nth(4) == Some(place));
    // A table without C: is that of a WSL that mounts none, or has failed to.
    let is_told = is_mounted(&drive) || refusal(host, letter).is_some();
    (is_told && !is_mounted(&format!("{root}/{letter}"))).then_some(letter)
}

/// What WSL said of a drive that it could not mount: `mount drvfs on /mnt/d (…path=D:\…) failed: 13` in the kernel log, or
/// `wsl: Failed to mount D:\, see dmesg for more details.`
fn refusal(host: &Host, letter: char) -> Option<String> {
    let path = format!("path={}:", letter.to_ascii_uppercase());
    let of_log = host
        .kernel_lines(&["drvfs"])
        .into_iter()
        .find(|line| line.contains(&path) && line.contains("failed"));
    of_log.or_else(|| {
        let words = format!("Failed to mount {}:", letter.to_ascii_uppercase());
        let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
        outputs
            .into_iter()
            .find_map(|text| Some(text.lines().find(|line| line.contains(&words))?.trim().to_owned()))
    })
}

/// The finding about a data set on a drive that WSL has not mounted.
pub(super) fn mount_drive(finding: Finding, host: &Host, letter: char) -> Finding {
    let drive = host.windows_drive();
    let root = drive.rsplit_once('/').map_or("", |(root, _)| root);
    let (name, place) = (letter.to_ascii_uppercase(), format!("{root}/{letter}"));
    let refusal = refusal(host, letter);
    // EACCES: Windows does not let anybody read it.
    let is_locked = refusal.as_ref().is_some_and(|line| line.trim_end().ends_with("failed: 13"));
    let finding = refusal.into_iter().fold(finding, Finding::seen);
    if is_locked {
        return finding
            .because(format!("Windows does not let WSL read the drive {name}:, most often because BitLocker has locked it"))
            .remedy(format!(
                "unlock the drive in File Explorer, then mount it in WSL; to unlock it at each start of Windows, use `manage-bde \
                 -autounlock -enable {name}:` in a Windows terminal as administrator"
            ))
            .command(format!("sudo mkdir -p {place} && sudo mount -t drvfs {name}: {place}"));
    }
    finding
        .because(format!(
            "the Windows drive {name}: is not mounted in WSL, which mounts the drives that are there when it starts: this one was \
             connected, unlocked (BitLocker) or given its letter later, or is a network drive"
        ))
        .seen(format!("nothing is mounted at {place}"))
        .remedy(format!(
            "mount the drive, after Windows shows {name}: in its Explorer; or shut WSL down from Windows and start it again"
        ))
        .command(format!("sudo mkdir -p {place} && sudo mount -t drvfs {name}: {place}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::points;

    #[test]
    fn only_drives_of_data_count() {
        let text = "# comment\nUUID=1 / ext4 defaults 0 1\nUUID=2 /boot/efi vfat umask=0077 0 1\nUUID=3 none swap sw 0 0\nUUID=4 /mnt/my\\040data ext4 nofail 0 2\n";
        assert_eq!(points(text), ["/mnt/my data"]);
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in "(UUID=1 |/mnt/data |none |swap |#|\n|\\PC){0,40}") {
            let _ = points(&text);
        }
    }
}
