//! Known failures that the quick checks do not look for, each with the reason. Of the driver, WSL,
//! Docker and libtorch only those may stand here that nothing shows before a job runs; a test
//! compares this list and the catalogue with the ids of all known failures.

/// A failure that no quick check detects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excused {
    /// Its id among the known failures.
    pub failure: &'static str,
    /// Why nothing shows it before a run, and what does.
    pub reason: &'static str,
}

/// All of them.
pub const EXCUSED: &[Excused] = &[
    Excused {
        failure: "gloo-device-ids-arg",
        reason: "a mistake in a training script, which yolo's own trainer cannot make",
    },
    Excused {
        failure: "wsl-pinned-limit",
        reason: "how much memory WSL pins shows only to a program that pins it on the GPU: `yolo doctor --deep` does",
    },
];
