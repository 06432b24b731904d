//! How the stages call `yolo bench`, and how they tell that memory ran out.

use crate::invocation::{Ended, Invocation};
use crate::session::Session;

/// `yolo bench --json` of a model with random weights.
pub(super) fn invocation(
    session: &Session,
    model: &str,
    size: u32,
    batch: u32,
    seconds: u32,
    parts: &str,
) -> Invocation {
    let device = &session.scale.device;
    session.bench_data(session.yolo().args(&format!(
        "bench --json --device {device} --cfg {model} --weights= --imgsz {size} --batch {batch} \
         --seconds {seconds} {parts}"
    )))
}

/// Whether a program ended because memory ran out.
pub(super) fn ran_out_of_memory(ended: &Ended) -> bool {
    ended.code() == Some(1) && ended.message().contains("out of memory")
}
