//! Catalogue entries about Windows itself.

use super::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "windows.tdr",
        area: Area::Windows,
        status: Status::Info,
        title: "Windows resets a GPU that is busy for too long",
        cause: "a GPU kernel that runs longer than TdrDelay, 2 s by default, fails with `the launch timed \
                out and was terminated`",
        remedy: Some(
            "if that message appears, raise TdrDelay to 60 s in a Windows terminal as \
                administrator and restart, or train with a smaller --batch",
        ),
        fix: None,
        detects: &["wsl-tdr"],
    },
    Entry {
        id: "windows.trains-in-wsl",
        area: Area::Windows,
        status: Status::Info,
        title: "Training runs inside WSL 2",
        cause: "the trainer is a Linux program, and NCCL needs Linux: on a Windows PC training runs inside \
                WSL 2, which uses the same GPUs",
        remedy: Some("set up WSL, then run `yolo train` with the same options"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.data-in-wsl",
        area: Area::Windows,
        status: Status::Warning,
        title: "The data is inside WSL, and the run on Windows",
        cause: "Windows reaches the files of a distribution through a network protocol (9P), so that reading \
                images takes longer than training on them",
        remedy: Some("run yolo inside WSL, or copy the data to a Windows drive"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.backend",
        area: Area::Windows,
        status: Status::Error,
        title: "This libtorch has no NCCL for Windows",
        cause: "libtorch for Windows is built without NCCL; ranks on Windows communicate through gloo",
        remedy: Some("train in WSL 2, where NCCL works"),
        fix: None,
        detects: &["nccl-absent-windows"],
    },
    Entry {
        id: "windows.tcc",
        area: Area::Windows,
        status: Status::Error,
        title: "A card is in TCC mode",
        cause: "WSL, in which training runs, reaches only cards in WDDM mode; in TCC mode a card computes for Windows \
                programs alone, and WSL reports `GPU access blocked by the operating system`",
        remedy: Some("in PowerShell as administrator, switch the card to WDDM mode and restart Windows"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.gloo-broken",
        area: Area::Windows,
        status: Status::Error,
        title: "gloo in this libtorch does not work on Windows",
        cause: "gloo in libtorch 2.8 to 2.10 for Windows fails with `makeDeviceForHostname(): unsupported \
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
        cause: "PyTorch 2.4 and later use libuv by default, and fail with `use_libuv was requested but \
                PyTorch was built without libuv support`",
        remedy: Some("set USE_LIBUV=0 for PyTorch programs; yolo's own ranks do not need it"),
        fix: None,
        detects: &["libuv-not-built"],
    },
    Entry {
        id: "windows.page-file",
        area: Area::Windows,
        status: Status::Warning,
        title: "The Windows page file is too small",
        cause: "Windows refuses to commit memory that RAM and the page file cannot hold: loading the CUDA \
                libraries fails with error 1455, `the paging file is too small`",
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
        title: "Windows does not support long paths",
        cause: "paths longer than 260 characters cannot be opened while LongPathsEnabled is off",
        remedy: Some(
            "enable long paths in a Windows terminal as administrator, or move the data set to a \
                shorter path",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.sleep",
        area: Area::Windows,
        status: Status::Info,
        title: "Windows goes to sleep during a run",
        cause: "Windows counts input by mouse and keyboard, not the work of a GPU or of WSL: a PC that sleeps stops the run, and \
                after it wakes up, CUDA often fails; the same is true when a laptop's lid is closed",
        remedy: Some(
            "let Windows stay awake while it is plugged in (Settings, System, Power; or these commands), or use Awake of \
             PowerToys; before a long run, also restart Windows if an update waits for it",
        ),
        fix: None,
        detects: &[],
    },
];
