//! Whether there is room for what a run writes.

use crate::checks::{Answer, Check, gigabytes};
use crate::facts::Host;
use crate::finding::{Finding, Status};
use crate::intent::Intent;

/// Below this a checkpoint may not fit any more.
const LEAST: u64 = 500_000_000;
/// Below this an installation and a few runs will fill the disk soon.
const COMFORTABLE: u64 = 5_000_000_000;

pub(super) static CHECK: Check = Check {
    question: "Is there room on the disks that a run writes to?",
    reports: &["disk.free", "disk.full"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let places = host.places()?;
    let runs = intent.project.clone().or(places.working);
    let folders = [("libtorch, weights and data sets", places.data), ("runs", runs)];
    let mut findings = Vec::new();
    for (purpose, folder) in folders {
        let Some(folder) = folder else { continue };
        let space = match host.file_system(&folder) {
            Ok(space) => space,
            Err(why) => {
                findings.push(Finding::skipped("disk.free", &why));
                continue;
            }
        };
        let Some(free) = space.available else { continue };
        let title = format!("{} free for {purpose}", gigabytes(free));
        let finding = match free {
            bytes if bytes < LEAST => Finding::new("disk.full", title),
            bytes if bytes < COMFORTABLE => Finding::new("disk.full", title).status(Status::Warning),
            _ => Finding::ok("disk.free", title),
        };
        findings.push(finding.seen(folder));
    }
    Ok(findings)
}
