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
    Excused {
        failure: "watchdog-timeout",
        reason: "which rank is late shows only while a run goes on; causes that show before have findings of their own",
    },
    Excused {
        failure: "barrier-while-rank0-caches",
        reason: "how long one rank scans or caches while others wait shows only while it does",
    },
    Excused {
        failure: "nccl-version-mismatch-nodes",
        reason: "the versions of other machines are not to be seen from this one; NCCL compares them when the ranks meet",
    },
    Excused {
        failure: "path-nonascii-space",
        reason: "yolo opens files by Windows' wide names, spaces and letters of all kinds included",
    },
    Excused {
        failure: "unused-params",
        reason: "which parameters take part in the loss shows only in a backward pass; the models of yolo use all of theirs",
    },
    Excused {
        failure: "val-only-rank0-desync",
        reason: "a mistake of a training loop, which the tests of yolo's own trainer look for",
    },
    Excused {
        failure: "net-shm-mismatch-containers",
        reason: "ranks that yolo starts on one machine share one container",
    },
    Excused {
        failure: "nccl-debug-off",
        reason: "a message that hides its reason comes from a run that failed; NCCL_DEBUG=INFO makes NCCL say more",
    },
    Excused {
        failure: "label-cache-stale",
        reason: "yolo's own list of verified images is valid only while size and time of every file stay, and those of others are not read",
    },
    Excused {
        failure: "amp-check-downloads",
        reason: "yolo has no check that downloads anything before a run",
    },
    Excused {
        failure: "download-blocked",
        reason: "the quick checks ask no server; setup says which address refused, and why",
    },
    Excused {
        failure: "win-freeze-support",
        reason: "a mistake of a Python script, which yolo's trainer is not",
    },
    Excused {
        failure: "libgl-missing",
        reason: "yolo reads images by itself and needs neither OpenCV nor libGL",
    },
    Excused {
        failure: "libtorch-cuda-not-linked",
        reason: "the trainer opens libtorch_cuda itself when a rank starts, so only a running rank shows whether it did; `--deep` starts one",
    },
];
