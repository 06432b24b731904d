//! Whether there is memory for a run.

use super::{gigabytes, skipped};
use crate::facts::{Fact, Facts};
use crate::finding::{Finding, Status};

/// A small run on one process: yolov5n at 320 px and batch 8 was measured at 1.4 GB with the
/// original (issue 2); twice that leaves room for the system.
const COMFORTABLE: u64 = 3_000_000_000;
/// Below this even that run will not fit.
const LEAST: u64 = 1_500_000_000;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let memory = match &facts.memory {
        Fact::Known(memory) => memory,
        Fact::Unknown(why) => return vec![skipped("memory.available", why)],
    };
    let usable = memory.limit.map_or(memory.available, |limit| limit.min(memory.available));
    let status = match usable {
        bytes if bytes < LEAST => Status::Error,
        bytes if bytes < COMFORTABLE => Status::Warning,
        _ => Status::Ok,
    };
    let limit = memory
        .limit
        .map_or(String::new(), |limit| format!(", limited to {} by a control group", gigabytes(limit)));
    let title = format!("{} of {} are free{limit}", gigabytes(memory.available), gigabytes(memory.total));
    vec![Finding::new("memory.available", status, title).seen(format!("swap {}", gigabytes(memory.swap)))]
}
