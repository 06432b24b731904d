//! What a long step tells about itself while it runs.
//! The steps send events; how they look (a bar, plain lines, nothing) is the printer's choice.

use std::time::Duration;

/// One thing worth telling. Texts carry no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// A step begins: "asking pip where torch 2.11.0 is".
    Step {
        /// What is being done, in words, without a full stop.
        text: &'a str,
    },
    /// Bytes of the current download, over all its parts. Sent often.
    Bytes {
        /// Bytes that came so far.
        done: u64,
        /// Bytes that will come, when it is known.
        total: Option<u64>,
    },
    /// Bytes of one file among those that come at the same time. Sent often.
    File {
        /// Tells the files of a download apart.
        id: usize,
        /// The file's name.
        name: &'a str,
        /// Bytes that came so far.
        done: u64,
        /// Bytes that will come, when it is known.
        total: Option<u64>,
        /// Whether this was the last event of this file.
        over: bool,
    },
    /// A transient error: the same request is made again after a pause.
    Retry {
        /// What went wrong.
        why: &'a str,
        /// How long the pause is.
        after: Duration,
    },
    /// Something that the user should know, but that stops nothing.
    Note {
        /// One sentence.
        text: &'a str,
    },
    /// Cargo finished a crate.
    Built {
        /// Name of the crate.
        krate: &'a str,
        /// How many crates are finished so far.
        count: usize,
    },
    /// The step, download or build, is complete.
    Done {
        /// What stands now, in words.
        text: &'a str,
    },
}

/// Receives events, from several threads at once.
pub trait Progress: Sync {
    /// Takes one event; it must return soon.
    fn event(&self, event: ProgressEvent<'_>);
}

/// Hears everything and says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _event: ProgressEvent<'_>) {}
}
