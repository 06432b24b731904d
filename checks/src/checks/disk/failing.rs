//! Whether the kernel log has errors of a disk that a run reads or writes. Such a disk, its cable or its
//! controller fails: ranks then wait in the kernel, or checkpoints cannot be written.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does the kernel log have errors of the run's disks?",
    reports: &["disk.failing"],
    preflight: false,
    run,
};

/// Words of the kernel about a disk that fails.
const WORDS: [&str; 6] = [
    "I/O error",
    "timeout, reset controller",
    "Disabling device after reset failure",
    "Disk failure on",
    "Medium Error",
    "Unrecovered read error",
];

fn run(host: &Host, intent: &Intent) -> Answer {
    // Reading the log takes longer than all else, so this check reads it only where others do.
    if host.os()? != "linux" || !host.is_recorded() && host.nvml_state() != Ok(NvmlState::Ready) {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let data = intent.data.clone().filter(|path| path.starts_with('/'));
    let folders = [
        ("the data set", data),
        ("the folder of runs", intent.project.clone().or(places.working)),
        ("libtorch, weights and data sets", places.data),
    ];
    for (what, folder) in folders.into_iter().filter_map(|(what, folder)| Some((what, folder?))) {
        // A file system that was made read-only is reported with these lines.
        let space = host.file_system(&folder).ok();
        if space.is_some_and(|space| space.options.iter().any(|option| option == "ro")) {
            continue;
        }
        let lines = errors(host, &folder);
        if let Some(disk) = lines.first().and_then(|_| host.disks_of(&folder).into_iter().next()) {
            let title = format!("the disk {disk}, which holds {what}, has errors");
            let finding = Finding::new("disk.failing", title);
            let finding = if host.is_wsl2().unwrap_or(false) { of_windows(finding) } else { finding };
            return Ok(vec![lines.into_iter().take(3).fold(finding, Finding::seen)]);
        }
    }
    Ok(Vec::new())
}

/// In WSL a disk is a file on a drive of Windows, about whose health Linux knows nothing.
fn of_windows(finding: Finding) -> Finding {
    finding
        .because(
            "this disk is a file (ext4.vhdx) on a drive of Windows, which is full, was unplugged, or fails: reads and writes then \
             end with errors, and Linux makes the file system read-only",
        )
        .remedy(
            "copy what matters to another drive; free space on the Windows drive, and shut WSL down; then check that drive in a \
             Windows terminal as administrator (`chkdsk C: /f`, with its letter) and its health; a disk of WSL on an external \
             drive should move to an internal one",
        )
        .command("powershell.exe -Command \"Get-PhysicalDisk | Get-StorageReliabilityCounter\"")
        .command("wsl.exe --shutdown")
}

/// The lines about the disks that hold a folder.
pub(super) fn errors(host: &Host, folder: &str) -> Vec<String> {
    let disks = host.disks_of(folder);
    if disks.is_empty() {
        return Vec::new();
    }
    // A partition is nvme0n1p2 or sda2, its disk nvme0n1 or sda, and the controller nvme0.
    let is_of_disk = |word: &str| {
        disks.iter().any(|disk| {
            let rest = word.strip_prefix(disk.as_str());
            let is_part = rest.is_some_and(|rest| {
                rest.trim_start_matches('p').chars().all(|letter| letter.is_ascii_digit())
            });
            let is_controller =
                word.starts_with("nvme") && disk.strip_prefix(word).is_some_and(|rest| rest.starts_with('n'));
            is_part || is_controller
        })
    };
    let mut lines = host.kernel_lines(&WORDS);
    lines.retain(|line| {
        line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').any(is_of_disk)
    });
    lines
}
