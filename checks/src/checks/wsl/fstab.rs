//! Drives of /etc/fstab that WSL could not mount when it started. Their folders are then empty, and a run finds no data.
//! WSL says so in the terminal and in the kernel log, and goes on.

use yolo_base::mounts;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Did WSL mount the drives of /etc/fstab?",
    reports: &["wsl.fstab"],
    preflight: false,
    run,
};

/// `Processing fstab with mount -a failed.`, in older releases `Processing /etc/fstab with mount -a failed.`
const FAILED: &str = "fstab with mount -a failed";

/// A line of /etc/fstab.
#[derive(Debug, PartialEq, Eq)]
struct Drive {
    source: String,
    point: String,
    kind: String,
    /// Whether it has the option `nofail`.
    may_be_away: bool,
}

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    // All distributions write to one log: `WSL (1 - init(Ubuntu)) ERROR: …`.
    let distribution = host.env("WSL_DISTRO_NAME").ok().flatten();
    let is_ours = |line: &String| match (line.split_once("init("), &distribution) {
        (Some((_, rest)), Some(name)) => is_named(rest.split(')').next().unwrap_or_default(), name),
        _ => true,
    };
    let said = host.recorded_commands().into_iter().find_map(|(_, output)| {
        let text = output.all_text();
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        lines.find(|line| line.contains(FAILED) && is_ours(line))
    });
    let logged = host.kernel_lines(&[FAILED]).into_iter().rfind(is_ours);
    let Some(line) = logged.or(said) else { return Ok(Vec::new()) };
    let (Some(fstab), Some(table)) = (host.text("/etc/fstab")?, host.text("/proc/self/mountinfo")?) else {
        return Ok(Vec::new());
    };
    let is_mounted =
        |drive: &Drive| mounts::holding(&table, &drive.point).is_some_and(|mount| mount.point == drive.point);
    // What the user has mounted since is no problem any more.
    let is_link = |drive: &Drive| matches!(host.link(&drive.point), Ok(Some(_)));
    let lost: Vec<Drive> =
        drives(&fstab).into_iter().filter(|drive| !is_mounted(drive) && !is_link(drive)).collect();
    // With `nofail` a start goes on, but a run may still need the drive.
    let needed = lost.iter().find(|drive| !drive.may_be_away);
    let status = if needed.is_some() { Status::Warning } else { Status::Info };
    let Some(first) = needed.or(lost.first()) else { return Ok(Vec::new()) };
    let title = match lost.len() {
        1 => format!("WSL could not mount {} at {}, which /etc/fstab names", first.source, first.point),
        number => format!(
            "WSL could not mount {number} drives of /etc/fstab, such as {} at {}",
            first.source, first.point
        ),
    };
    let finding = Finding::new("wsl.fstab", title).status(status).seen(line);
    Ok(vec![advised(finding, first)])
}

/// Whether the log means this distribution. Linux keeps 15 characters of a program's name, of which `init(` are five.
fn is_named(logged: &str, name: &str) -> bool {
    if logged.len() < 10 { logged == name } else { name.starts_with(logged) }
}

/// The drives that `mount -a` mounts, but for the system's own.
fn drives(fstab: &str) -> Vec<Drive> {
    let lines = fstab.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let drives = lines.filter_map(|line| {
        let mut words = line.split_whitespace().map(|word| word.replace("\\040", " "));
        let mut drive =
            Drive { source: words.next()?, point: words.next()?, kind: words.next()?, may_be_away: false };
        if drive.point.len() > 1 {
            drive.point = drive.point.trim_end_matches('/').to_owned();
        }
        let options = words.next().unwrap_or_default();
        let has = |name: &str| options.split(',').any(|option| option == name);
        drive.may_be_away = has("nofail");
        let is_mounted_later = has("noauto");
        // Ubuntu's images name a root file system that WSL does not have.
        let is_of_data =
            drive.point.starts_with('/') && drive.point != "/" && !drive.point.starts_with("/boot");
        (is_of_data && drive.kind != "swap" && !is_mounted_later).then_some(drive)
    });
    drives.collect()
}

/// Why such a drive is not there yet, and what to do.
fn advised(finding: Finding, drive: &Drive) -> Finding {
    let is_of_server = drive.source.starts_with("//")
        || ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs"].contains(&drive.kind.as_str());
    if is_of_server {
        return finding
            .because("WSL mounts what /etc/fstab names before its network is ready, or the server does not answer")
            .remedy(
                "mount it now, which also shows what is wrong; so that it is mounted when it is first used, add \
                 `noauto,x-systemd.automount,_netdev` to its options in /etc/fstab (with systemd), and shut WSL down",
            )
            .command("sudo mount -a");
    }
    if drive.kind == "drvfs" {
        return finding
            .because("Windows did not have this drive when WSL started: it was not connected, locked, or is a network drive")
            .remedy("open the drive in File Explorer, then mount it; `mount` also shows what is wrong")
            .command("sudo mount -a");
    }
    let is_disk =
        ["UUID=", "LABEL=", "PARTUUID=", "/dev/"].iter().any(|start| drive.source.starts_with(start));
    if is_disk {
        return finding
            .because("a disk that `wsl.exe --mount` has attached is gone when WSL or Windows starts again")
            .remedy(
                "attach the disk again in a Windows terminal as administrator, where `Get-Disk` lists the numbers, and \
                 `wsl --mount \\\\.\\PHYSICALDRIVE2 --bare` attaches number 2; then mount it here",
            )
            .command("sudo mount -a");
    }
    finding.command("sudo mount -a")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_drives_that_are_mounted_at_the_start_count() {
        let text = "LABEL=cloudimg-rootfs\t/\text4\tdefaults\t0 1\n# D: /mnt/d drvfs\nUUID=1 none swap sw 0 0\n\
                    //nas/data /mnt/nas cifs credentials=/root/c 0 0\nE: /mnt/e drvfs defaults,noauto 0 0\n\
                    F: /mnt/my\\040data/ drvfs\nG: /mnt/g drvfs defaults,nofail 0 0\n";
        let points: Vec<String> = drives(text).into_iter().map(|drive| drive.point).collect();
        assert_eq!(points, ["/mnt/nas", "/mnt/my data", "/mnt/g"]);
    }

    #[test]
    fn long_names_are_cut_in_the_log() {
        assert!(is_named("Ubuntu", "Ubuntu") && is_named("Ubuntu-24.", "Ubuntu-24.04"));
        assert!(!is_named("Ubuntu", "Ubuntu-24.04") && !is_named("Debian", "Ubuntu"));
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in "([A-Z]: |/mnt/d |drvfs |noauto |swap |#|\n|\\PC){0,40}") {
            let _ = drives(&text);
        }
    }
}
