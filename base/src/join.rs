//! How long the processes of a run wait for each other before it starts: the machines of `--nnodes`, and the
//! ranks that another launcher starts. The user sets one limit for both.

use std::time::Duration;

use crate::env::YOLO_JOIN_SECONDS;
use crate::seconds;

/// No run waits longer than a month, in seconds.
const LONGEST: u64 = 30 * 24 * 3600;

/// The limit that the user sets, or `default`.
pub fn limit(default: Duration) -> Duration {
    seconds::of(YOLO_JOIN_SECONDS).map_or(default, |seconds| Duration::from_secs(seconds.min(LONGEST)))
}
