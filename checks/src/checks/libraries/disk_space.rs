//! Whether a libtorch with CUDA fits on the disk before it is downloaded.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
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
/// What remains of it: less than this cannot hold it.
const UNPACKED: u64 = 5_000_000_000;

fn run(host: &Host, intent: &Intent) -> Answer {
    let places = host.places()?;
    let has_gpu = host.gpus().is_ok_and(|gpus| !gpus.is_empty());
    let (None, Some(data)) = (places.libtorch, places.data) else { return Ok(Vec::new()) };
    if intent.cpu || !has_gpu {
        return Ok(Vec::new());
    }
    let free = host.file_system(&data)?.available.unwrap_or(u64::MAX);
    if free >= WITH_CUDA {
        return Ok(Vec::new());
    }
    let (status, title) = if free < UNPACKED {
        let title = format!(
            "libtorch with CUDA does not fit: it needs {} to {}, and {} are free",
            format::bytes(UNPACKED),
            format::bytes(WITH_CUDA),
            format::bytes(free)
        );
        (Status::Error, title)
    } else {
        let title = format!(
            "only {} free where libtorch will be installed; with CUDA it needs up to {}",
            format::bytes(free),
            format::bytes(WITH_CUDA)
        );
        (Status::Warning, title)
    };
    let finding = Finding::new("libraries.no-room", title).status(status).seen(data);
    let larger = match larger_disk(host) {
        Some(folder) => format!("{folder}/yolo"),
        None if host.is_windows().unwrap_or(false) => r"D:\yolo".to_owned(),
        None => "/a/larger/disk/yolo".to_owned(),
    };
    Ok(vec![finding.command(format!("export YOLO_HOME={larger}"))])
}

/// A folder that has the room: that for temporary files, which notebooks and jobs have most of.
fn larger_disk(host: &Host) -> Option<String> {
    let has_room = |folder: &str| {
        let space = host.file_system(folder).ok()?;
        let in_memory = matches!(space.kind.as_deref(), Some("tmpfs" | "ramfs"));
        (!in_memory && space.available? >= WITH_CUDA).then(|| folder.to_owned())
    };
    // What is on the disk for temporary files is gone after a restart, so it is for machines that are gone too.
    let is_short_lived = matches!(host.place(), Place::Colab | Place::Kaggle) || host.job().is_some();
    is_short_lived.then(|| has_room("/tmp"))?
}
