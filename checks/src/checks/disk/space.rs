//! Whether there is enough disk space for what a run writes, and whether the disk accepts new files.

use yolo_base::env::HOME;
use yolo_base::format;

use super::health::look_at_health;
use super::room::{COMFORTABLE, LEAST, place};
use crate::checks::{Answer, Check, wsl};
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_without_rights;
use crate::shell_quote::quote;
use crate::status::Status;

/// The purpose of the folder where a run writes its files.
const RUNS: &str = "runs";

pub(super) static CHECK: Check = Check {
    question: "Is there enough space on the disks that a run writes to?",
    reports: &["disk.free", "disk.full", "disk.read-only"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let places = host.places()?;
    let runs = intent.project.clone().or(places.working);
    let folders = [("libtorch, weights and data sets", places.data), (RUNS, runs)];
    let mut findings = Vec::new();
    let mut reported: Vec<String> = Vec::new();
    for (purpose, folder) in folders {
        let Some(folder) = folder else { continue };
        let space = match host.file_system(&folder) {
            Ok(space) => space,
            Err(why) => {
                findings.push(Finding::skipped("disk.free", &why));
                continue;
            }
        };
        // A full disk is one finding, whatever is on it.
        let mount = space.mount.clone().unwrap_or_else(|| folder.clone());
        if reported.contains(&mount) {
            continue;
        }
        let Some(finding) = finding_of(host, purpose, &folder, &space) else { continue };
        if finding.id == "disk.full" {
            // The check that knows the size of WSL's own disk reports why it is full.
            if wsl::disk::limits_disk(host, &mount) {
                continue;
            }
            reported.push(mount);
        }
        findings.push(finding);
    }
    Ok(findings)
}

/// Whether this file system's disk is already reported as full.
pub(super) fn is_reported_elsewhere(host: &Host, space: &FileSystem) -> bool {
    let places = host.places().unwrap_or_default();
    let holds = |folder: &String| {
        host.file_system(folder).is_ok_and(|other| {
            other.mount.is_some()
                && other.mount == space.mount
                && other.available.is_some_and(|free| free < COMFORTABLE)
        })
    };
    [places.data, places.working].iter().flatten().any(holds)
}

/// A file system that the kernel made read-only because it found errors on it.
pub(super) fn damaged(host: &Host, finding: Finding, kind: &str) -> Finding {
    let finding = finding.because(
        "the kernel found errors in this file system and stopped writing to it, so that they do not spread",
    );
    if host.is_wsl2().unwrap_or(false) {
        return finding
            .remedy(
                "copy what matters to another drive; then shut WSL down from Windows, attach the virtual disk to \
                 another distribution (`wsl --mount --vhd FILE --bare`), and repair it there with `e2fsck -f`",
            )
            .command("wsl.exe --shutdown");
    }
    if kind == "btrfs" {
        return finding.remedy(format!(
            "copy what matters to another disk; {}; then ask `btrfs check --readonly` while the file system is not mounted, and \
             do not use its `--repair` without advice",
            look_at_health(host)
        ));
    }
    finding.remedy(format!(
        "copy what matters to another disk; {}; then check the file system with fsck while it is not mounted, for the root file \
         system at the next start: `fsck.mode=force` on the kernel's command line",
        look_at_health(host)
    ))
}

/// Why a file system of Windows is read-only, and what to do: Linux writes to none that Windows, or a pulled
/// cable, left open.
fn of_windows(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "fuseblk" | "ntfs" | "ntfs3" | "fuse.ntfs-3g" => Some((
            "Linux mounts an NTFS drive read-only while Windows has it open: Windows hibernates instead of shutting \
             down (Fast Startup), or the drive was not removed safely",
            "in Windows, turn Fast Startup off (`powercfg /h off` as administrator) and check the drive (`chkdsk X: /f`, where \
             X: is its letter there), then restart the PC into Linux and mount the drive again: open it in the file manager, or \
             `udisksctl mount -b /dev/NAME`, where `lsblk -f` shows NAME; or copy the data set to a Linux disk and use another \
             folder with --project",
        )),
        "exfat" | "vfat" | "msdos" => Some((
            "Linux stops writing to a FAT or exFAT drive whose file system has errors, as after it was pulled out \
             while it was in use; some drives and card adapters also have a switch",
            "unmount the drive and check it (`chkdsk /f` in Windows; `fsck.exfat` or `fsck.vfat` in Linux), or use \
             another folder with --project",
        )),
        _ => None,
    }
}

/// File systems of the kernel, which accept no files of users.
const OF_THE_KERNEL: [&str; 7] = ["proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "securityfs"];

/// `disk.read-only`, `disk.full` or `disk.free` for one folder; `None` if its free space is unknown.
fn finding_of(host: &Host, purpose: &str, folder: &str, space: &FileSystem) -> Option<Finding> {
    let kind = space.kind.as_deref().unwrap_or_default();
    if OF_THE_KERNEL.contains(&kind) {
        let title = format!("cannot create {folder} ({purpose})");
        let mount = space.mount.as_deref().unwrap_or(folder);
        return Some(
            Finding::new("disk.read-only", title)
                .because(format!("{mount} is a file system of the kernel ({kind}), which stores no files")),
        );
    }
    let is_read_only = space.options.iter().any(|option| option == "ro");
    // Another check covers permissions of yolo's own folders.
    let may_not =
        || purpose == RUNS && host.stat(folder).ok().flatten().and_then(|stat| stat.writable) == Some(false);
    if is_read_only || may_not() {
        let mount = space.mount.as_deref().unwrap_or(folder);
        let why = if is_read_only { "is mounted read-only" } else { "is not writable by this user" };
        let title = format!("{folder} ({purpose}) {why}");
        let finding = Finding::new("disk.read-only", title).seen(format!("mounted at {mount}"));
        if is_read_only {
            let failed = host.kernel_lines(&[
                // Some file systems begin it with a capital letter, and some do not.
                "emounting filesystem read-only",
                "EXT4-fs error",
                "XFS: Corruption",
                "forced readonly",
            ]);
            // The last errors of the disk say more than the first.
            let of_disk = super::failing::errors(host, folder).into_iter().rev();
            if !failed.is_empty() {
                let seen = of_disk.take(2).chain(failed.into_iter().take(2));
                return Some(damaged(host, seen.fold(finding, Finding::seen), kind));
            }
            if let Some(remedy) = of_windows(kind) {
                return Some(finding.because(remedy.0).remedy(remedy.1));
            }
        }
        let stat = host.stat(folder).ok().flatten().filter(|_| !is_read_only);
        let in_container = super::in_container::forbidden_by_selinux(host, &finding, folder).or_else(|| {
            stat.and_then(|stat| super::in_container::of_another_owner(host, &finding, folder, &stat))
        });
        if let Some(finding) = in_container {
            return Some(finding);
        }
        let home =
            host.env(HOME).ok().flatten().filter(|home| home != "/" && folder.starts_with(home.as_str()));
        return Some(match home {
            Some(_) if !is_read_only && !is_without_rights(host) => {
                finding.command(format!("sudo chown -R \"$USER\" {}", quote(folder)))
            }
            _ => finding,
        });
    }
    let free = space.available?;
    if let Some(finding) = super::inodes::used_up(host, purpose, folder, space) {
        return Some(finding);
    }
    if free >= LEAST
        && let Some(finding) = super::lustre::full_targets(host, purpose, folder, space)
            .or_else(|| super::quota::used_up(host, purpose, folder, space))
    {
        return Some(finding);
    }
    let title = format!("{} free for {purpose}", format::bytes(free));
    let full = || {
        let finding = Finding::new("disk.full", format!("only {title}{}", place(space, folder)));
        super::make_room::with_remedy(host, finding, space, folder)
    };
    let finding = match free {
        bytes if bytes < LEAST => full(),
        bytes if bytes < COMFORTABLE => full().status(Status::Warning),
        _ => Finding::ok("disk.free", title),
    };
    Some(finding.seen(folder))
}
