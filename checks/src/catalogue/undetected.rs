//! Known failures that no quick check detects, each with the reason. A failure is listed here only if
//! nothing reveals it before a run. `tests/catalogue.rs` checks that every known failure is either in
//! this list or in the `detects` of an entry.

/// A failure that no quick check detects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undetected {
    /// Its id among the known failures.
    pub id: &'static str,
    /// Why nothing reveals it before a run, and what does.
    pub reason: &'static str,
}

/// All of them.
pub const UNDETECTED: &[Undetected] = &[
    Undetected {
        id: "gloo-device-ids-arg",
        reason: "a bug in training scripts, which yolo's own trainer does not have",
    },
    Undetected {
        id: "wsl-pinned-limit",
        reason: "WSL's limit on pinned memory only shows when a program pins memory; `yolo doctor --deep` tests it",
    },
    Undetected {
        id: "watchdog-timeout",
        reason: "only a running job shows which rank is late; causes that are visible earlier have their own findings",
    },
    Undetected {
        id: "barrier-while-rank0-caches",
        reason: "only a running job shows how long the other ranks wait while one scans or caches",
    },
    Undetected {
        id: "nccl-version-mismatch-nodes",
        reason: "the versions on other machines cannot be seen from this one; NCCL compares them when the ranks connect",
    },
    Undetected {
        id: "path-nonascii-space",
        reason: "yolo uses the wide Windows file API, so spaces and non-ASCII letters work",
    },
    Undetected {
        id: "unused-params",
        reason: "only a backward pass shows which parameters are used; yolo's models use all of theirs",
    },
    Undetected {
        id: "val-only-rank0-desync",
        reason: "a bug in training loops, covered by the tests of yolo's own trainer",
    },
    Undetected {
        id: "net-shm-mismatch-containers",
        reason: "the ranks that yolo starts on one machine are in the same container",
    },
    Undetected {
        id: "nccl-debug-off",
        reason: "only a failed run shows an NCCL error without a reason; NCCL_DEBUG=INFO makes NCCL log more",
    },
    Undetected {
        id: "label-cache-stale",
        reason: "yolo verifies a file again when its size or modification time changes, and does not read other programs' caches",
    },
    Undetected {
        id: "amp-check-downloads",
        reason: "yolo does not download anything to check mixed precision",
    },
    Undetected {
        id: "download-blocked",
        reason: "the quick checks contact no server; setup reports which address failed, and why",
    },
    Undetected {
        id: "win-freeze-support",
        reason: "a bug in Python scripts; yolo's trainer does not use Python",
    },
    Undetected {
        id: "libgl-missing",
        reason: "yolo has its own image decoders and needs neither OpenCV nor libGL",
    },
    Undetected {
        id: "libtorch-cuda-not-linked",
        reason: "the trainer opens libtorch_cuda when a rank starts, so only a running rank shows whether that works; \
            `--deep` starts one",
    },
];
