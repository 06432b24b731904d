//! Whether there is room for what a run writes.

use super::{gigabytes, skipped};
use crate::facts::{Fact, Facts};
use crate::finding::{Finding, Status};

/// Below this a checkpoint may not fit any more.
const LEAST: u64 = 500_000_000;
/// Below this an installation and a few runs will fill the disk soon.
const COMFORTABLE: u64 = 5_000_000_000;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    facts
        .disks
        .iter()
        .map(|disk| match &disk.available {
            Fact::Known(bytes) => {
                let status = match *bytes {
                    bytes if bytes < LEAST => Status::Error,
                    bytes if bytes < COMFORTABLE => Status::Warning,
                    _ => Status::Ok,
                };
                Finding::new("disk.free", status, format!("{} free for {}", gigabytes(*bytes), disk.purpose))
                    .seen(disk.folder.display().to_string())
            }
            Fact::Unknown(why) => skipped("disk.free", why),
        })
        .collect()
}
