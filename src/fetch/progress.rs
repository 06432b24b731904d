//! Progress events of long steps. How they are shown (a bar, plain lines, nothing) is the printer's
//! choice.

use std::time::Duration;

/// A progress event. Texts contain no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// A step begins: "asking pip where torch 2.11.0 is".
    Step {
        /// What is being done, without a period.
        text: &'a str,
    },
    /// Bytes of the current download, over all its files. Sent often.
    Bytes {
        /// Bytes that have arrived.
        done: u64,
        /// The total, if known.
        total: Option<u64>,
    },
    /// Bytes of one file of the current download. Sent often.
    File {
        /// Identifies the file within the download.
        id: usize,
        /// The file's name.
        name: &'a str,
        /// Bytes that have arrived.
        done: u64,
        /// The total, if known.
        total: Option<u64>,
        /// Whether this is the last event of the file.
        over: bool,
    },
    /// A transient error: the request is retried after a pause.
    Retry {
        /// What went wrong.
        why: &'a str,
        /// How long the pause is.
        after: Duration,
    },
    /// Something that the user should know.
    Note {
        /// One sentence.
        text: &'a str,
    },
    /// Cargo finished a crate.
    Built {
        /// Name of the crate.
        krate: &'a str,
        /// How many crates are finished.
        count: usize,
    },
    /// The step, download or build, is complete.
    Done {
        /// The result.
        text: &'a str,
    },
}

/// Receives events, possibly from several threads at once.
pub trait Progress: Sync {
    /// Handles an event. It must return quickly.
    fn event(&self, event: ProgressEvent<'_>);
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _event: ProgressEvent<'_>) {}
}
