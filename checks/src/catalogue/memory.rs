//! Catalogue entries about memory and shared memory.

use super::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "memory.available",
        area: Area::Memory,
        status: Status::Ok,
        title: "Enough memory is available",
        cause: "ranks and their data loaders hold images and checkpoints in memory",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.low",
        area: Area::Memory,
        status: Status::Warning,
        title: "Little memory is available",
        cause: "the system kills a rank that runs out of memory, without an error message",
        remedy: Some(
            "close other programs, or train with a smaller --batch or --imgsz, or fewer \
                --workers",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.limited",
        area: Area::Memory,
        status: Status::Info,
        title: "A cgroup limits memory",
        cause: "the container or batch job may use only part of the machine's memory; beyond that, the \
                system kills a rank without an error message",
        remedy: Some("give the container or job more memory, or train with a smaller --batch"),
        fix: None,
        detects: &["cgroup-mem-limit"],
    },
    Entry {
        id: "memory.shared",
        area: Area::Memory,
        status: Status::Ok,
        title: "Enough shared memory is available",
        cause: "ranks on GPUs of one machine exchange tensors through /dev/shm",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.shared-closed",
        area: Area::Memory,
        status: Status::Error,
        title: "NCCL may not use shared memory",
        cause: "ranks on GPUs of one machine exchange tensors through files in /dev/shm if the GPUs have no direct path; NCCL fails \
                with `shm_open failed: Permission denied`",
        remedy: Some(
            "let all users write to /dev/shm, as on every machine; until then, set NCCL_SHM_DISABLE=1, which is slower",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.shared-small",
        area: Area::Memory,
        status: Status::Error,
        title: "/dev/shm is too small",
        cause: "ranks on GPUs of one machine exchange tensors through /dev/shm if the GPUs have no direct \
                path; when it is full, NCCL fails with \"No space left on device\" or a rank dies with \
                \"Bus error\"",
        remedy: Some("make /dev/shm larger"),
        fix: None,
        detects: &["docker-shm-64m", "nccl-shm-too-small"],
    },
    Entry {
        id: "memory.cache",
        area: Area::Memory,
        status: Status::Warning,
        title: "The cached data set does not fit in memory",
        cause: "`--cache ram` keeps all resized images in memory, once for all ranks of the machine; beyond the \
                available memory, only some are kept, and the others are decoded each time",
        remedy: Some("use `--cache disk`, or omit --cache"),
        fix: None,
        detects: &["ram-cache-too-big"],
    },
    Entry {
        id: "memory.oomd",
        area: Area::Memory,
        status: Status::Warning,
        title: "systemd-oomd or another service killed programs",
        cause: "systemd-oomd ends whole groups of programs, such as a terminal with all that runs in it, when \
                memory is short for some seconds; a run that it ends leaves no message",
        remedy: Some(
            "train with fewer --workers, without `--cache ram` or with a smaller --batch; or start the run in a \
             group of its own that systemd-oomd spares: `systemd-run --user --scope -p \
             ManagedOOMPreference=omit yolo train …`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.killed",
        area: Area::Memory,
        status: Status::Warning,
        title: "The kernel killed a training process",
        cause: "the machine ran out of memory; the run itself only reports that a rank disappeared, or \
                \"Killed\"",
        remedy: Some(
            "train with a smaller --batch or --imgsz, or fewer --workers, or close other \
                programs first",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.overcommit",
        area: Area::Memory,
        status: Status::Warning,
        title: "The kernel does not overcommit memory",
        cause: "with vm.overcommit_memory=2 the kernel counts reserved memory as used; CUDA and libtorch reserve much more than \
                they use, and fail with `out of memory` or `Cannot allocate memory` although memory is free",
        remedy: Some(
            "let the kernel overcommit, now and in /etc/sysctl.d, or raise vm.overcommit_ratio or add swap",
        ),
        fix: None,
        detects: &[],
    },
];
