//! Known failures that the quick checks do not detect, each with the reason. Failures of the driver,
//! WSL, Docker and libtorch may only be listed if nothing reveals them before a run; a test compares
//! this list and the catalogue with the ids of all known failures.

/// A failure that no quick check detects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excused {
    /// Its id among the known failures.
    pub failure: &'static str,
    /// Why nothing reveals it before a run, and what does.
    pub reason: &'static str,
}

/// All of them.
pub const EXCUSED: &[Excused] = &[
    Excused {
        failure: "gloo-device-ids-arg",
        reason: "a bug in training scripts, which yolo's own trainer does not have",
    },
    Excused {
        failure: "wsl-pinned-limit",
        reason: "WSL's limit on pinned memory only shows when a program pins memory; `yolo doctor --deep` tests it",
    },
    Excused {
        failure: "watchdog-timeout",
        reason: "only a running job shows which rank is late; causes that are visible earlier have their own findings",
    },
    Excused {
        failure: "barrier-while-rank0-caches",
        reason: "only a running job shows how long the other ranks wait while one scans or caches",
    },
    Excused {
        failure: "nccl-version-mismatch-nodes",
        reason: "the versions on other machines cannot be seen from this one; NCCL compares them when the ranks connect",
    },
    Excused {
        failure: "path-nonascii-space",
        reason: "yolo uses the wide Windows file API, so spaces and non-ASCII letters work",
    },
    Excused {
        failure: "unused-params",
        reason: "only a backward pass shows which parameters are used; yolo's models use all of theirs",
    },
    Excused {
        failure: "val-only-rank0-desync",
        reason: "a bug in training loops, covered by the tests of yolo's own trainer",
    },
    Excused {
        failure: "net-shm-mismatch-containers",
        reason: "the ranks that yolo starts on one machine are in the same container",
    },
    Excused {
        failure: "nccl-debug-off",
        reason: "only a failed run shows an NCCL error without a reason; NCCL_DEBUG=INFO makes NCCL log more",
    },
    Excused {
        failure: "label-cache-stale",
        reason: "yolo verifies a file again when its size or modification time changes, and does not read other programs' caches",
    },
    Excused {
        failure: "amp-check-downloads",
        reason: "yolo does not download anything to check mixed precision",
    },
    Excused {
        failure: "download-blocked",
        reason: "the quick checks contact no server; setup reports which address failed, and why",
    },
    Excused {
        failure: "win-freeze-support",
        reason: "a bug in Python scripts; yolo's trainer does not use Python",
    },
    Excused {
        failure: "libgl-missing",
        reason: "yolo has its own image decoders and needs neither OpenCV nor libGL",
    },
    Excused {
        failure: "libtorch-cuda-not-linked",
        reason: "the trainer opens libtorch_cuda when a rank starts, so only a running rank shows whether that works; `--deep` starts one",
    },
];
