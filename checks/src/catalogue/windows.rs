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
            "only if a run ends with `the launch timed out and was terminated`: raise TdrDelay to 60 s in a Windows \
                terminal as administrator and restart, or train with a smaller --batch",
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
        status: Status::Info,
        title: "The data is inside WSL",
        cause: "training runs inside WSL 2, which reads its own files at full speed, if it is the distribution that has \
                them; only programs of Windows reach them through a network protocol (9P), which is slow",
        remedy: Some(
            "run `yolo train` with `--distribution` and the name of the distribution that has the data",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.backend",
        area: Area::Windows,
        status: Status::Info,
        title: "A run on Windows asks for NCCL",
        cause: "libtorch for Windows is built without NCCL, so programs of Windows fail with `Distributed package \
                doesn't have NCCL built in`; `yolo train` trains inside WSL 2, where NCCL works",
        remedy: Some("set up WSL, then run `yolo train` with the same options"),
        fix: None,
        detects: &["nccl-absent-windows"],
    },
    Entry {
        id: "windows.tcc",
        area: Area::Windows,
        status: Status::Error,
        title: "A card is in TCC mode",
        cause: "WSL, in which training runs, reaches only cards in WDDM or MCDM mode; in TCC mode a card computes for Windows \
                programs alone, and WSL reports `GPU access blocked by the operating system`",
        remedy: Some(
            "in PowerShell as administrator, switch the card to WDDM mode, or a data center card to MCDM, the mode for \
             computing, and restart Windows; if nvidia-smi refuses both, train under Linux without Windows",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "windows.gloo-broken",
        area: Area::Windows,
        status: Status::Info,
        title: "gloo in this libtorch does not work on Windows",
        cause: "gloo in libtorch 2.8 to 2.10 for Windows fails with `makeDeviceForHostname(): unsupported gloo device`; \
                `yolo train` trains inside WSL 2, with a libtorch of its own",
        remedy: Some(
            "train with `yolo train` in WSL 2; other programs of Windows need libtorch 2.11 or one before 2.8",
        ),
        fix: None,
        detects: &["gloo-unsupported-device-win"],
    },
    Entry {
        id: "windows.libuv",
        area: Area::Windows,
        status: Status::Info,
        title: "libtorch for Windows has no libuv",
        cause: "PyTorch programs of Windows that are told to use libuv fail with `use_libuv was requested but PyTorch was \
                built without libuv support`; `yolo train` trains inside WSL 2",
        remedy: Some("set USE_LIBUV=0 for PyTorch programs of Windows; yolo does not need it"),
        fix: None,
        detects: &["libuv-not-built"],
    },
    Entry {
        id: "windows.page-file",
        area: Area::Windows,
        status: Status::Warning,
        title: "The Windows page file is too small",
        cause: "Windows refuses to commit memory that RAM and the page file cannot hold, also for WSL, in which training \
                runs: error 1455 or 0x800705af, `the paging file is too small`",
        remedy: Some(
            "close other programs, enlarge the page file (System, Advanced, Performance, Virtual memory), or train with \
             fewer ranks",
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
