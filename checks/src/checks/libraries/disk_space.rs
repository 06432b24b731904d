//! Whether a libtorch with CUDA fits on the disk before it is downloaded.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is there enough disk space for libtorch?",
    reports: &["libraries.no-room"],
    preflight: true,
    run,
};

/// The archive of a CUDA build was measured at 2.7 GB, and needs about twice that when unpacked.
const WITH_CUDA: u64 = 8_000_000_000;
/// Below this, the disk check reports the disk, whatever will be stored there.
const NEARLY_FULL: u64 = 5_000_000_000;

fn run(host: &Host, intent: &Intent) -> Answer {
    let places = host.places()?;
    let has_gpu = host.gpus().is_ok_and(|gpus| !gpus.is_empty());
    let (None, Some(data)) = (places.libtorch, places.data) else { return Ok(Vec::new()) };
    if intent.cpu || !has_gpu {
        return Ok(Vec::new());
    }
    let free = host.file_system(&data)?.available.unwrap_or(u64::MAX);
    if !(NEARLY_FULL..WITH_CUDA).contains(&free) {
        return Ok(Vec::new());
    }
    let title = format!(
        "only {} free where libtorch will be installed; with CUDA it needs up to {}",
        format::bytes(free),
        format::bytes(WITH_CUDA)
    );
    let finding = Finding::new("libraries.no-room", title).status(Status::Warning);
    Ok(vec![finding.seen(data).command("export YOLO_HOME=/a/larger/disk/yolo")])
}
