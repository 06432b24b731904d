//! Windows itself: the rows of the catalogue.

use super::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "windows.tdr",
        area: Area::Windows,
        status: Status::Info,
        title: "Windows resets a GPU that is busy for long",
        cause: "a kernel of the GPU that takes longer than TdrDelay, 2 s by default, ends with `the launch \
                timed out and was terminated`",
        remedy: Some(
            "raise TdrDelay to 60 s in a Windows terminal as administrator and restart, if that message \
             comes; or train with a smaller --batch-size",
        ),
        fix: None,
        detects: &["wsl-tdr"],
    },
    Entry {
        id: "windows.trains-in-wsl",
        area: Area::Windows,
        status: Status::Info,
        title: "Training runs inside WSL 2",
        cause: "the trainer is a program of Linux, and libtorch for Windows has no NCCL: on a Windows PC both run \
                inside WSL 2, which uses the same GPUs",
        remedy: Some("set WSL up, then give `yolo train` there the same options"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.backend",
        area: Area::Windows,
        status: Status::Error,
        title: "There is no NCCL for Windows",
        cause: "NCCL exists for Linux only: on Windows the ranks of a run talk by gloo",
        remedy: Some("train in WSL 2, where NCCL works"),
        fix: None,
        detects: &["nccl-absent-windows"],
    },
    Entry {
        id: "windows.gloo-broken",
        area: Area::Windows,
        status: Status::Error,
        title: "gloo of this libtorch does not work on Windows",
        cause: "gloo in libtorch 2.8 to 2.10 for Windows ends with `makeDeviceForHostname(): unsupported \
                gloo device`",
        remedy: Some("use libtorch 2.11, or train in WSL 2"),
        fix: None,
        detects: &["gloo-unsupported-device-win"],
    },
    Entry {
        id: "windows.libuv",
        area: Area::Windows,
        status: Status::Warning,
        title: "libtorch for Windows has no libuv",
        cause: "PyTorch programs of version 2.4 and later ask for it unless told otherwise, and end with \
                `use_libuv was requested but PyTorch was built without libuv support`",
        remedy: Some("set the variable for them; yolo's own ranks do without"),
        fix: None,
        detects: &["libuv-not-built"],
    },
    Entry {
        id: "windows.page-file",
        area: Area::Windows,
        status: Status::Warning,
        title: "Windows can promise little more memory",
        cause: "Windows refuses memory that its page file could not hold: loading CUDA's libraries ends \
                with error 1455, `the paging file is too small`",
        remedy: Some(
            "enlarge the page file (System, Advanced, Performance, Virtual memory), or train with fewer \
             ranks and --workers",
        ),
        fix: None,
        detects: &["win-pagefile-1455"],
    },
    Entry {
        id: "windows.long-paths",
        area: Area::Windows,
        status: Status::Warning,
        title: "Windows does not take long paths",
        cause: "paths beyond 260 letters cannot be opened while LongPathsEnabled is off",
        remedy: Some(
            "switch long paths on in a Windows terminal as administrator, or move the data set to a \
             shorter path",
        ),
        fix: None,
        detects: &[],
    },
];
