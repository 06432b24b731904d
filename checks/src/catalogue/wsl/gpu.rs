//! The GPU of Windows inside WSL: rows of the catalogue.

use crate::catalogue::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.gpu",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The GPU of Windows reaches WSL",
        cause: "the driver of Windows serves WSL too; in WSL it does not tell processes, power and use",
        remedy: None,
        fix: None,
        detects: &["wsl-nvml-unsupported", "wsl-dxgk-ioctl-noise"],
    },
    Entry {
        id: "wsl.gpu-switched-off",
        area: Area::Wsl,
        status: Status::Error,
        title: "A setting keeps the GPU from WSL",
        cause: "WSL passes the GPU on unless a setting says otherwise",
        remedy: Some("remove the setting, then stop WSL from Windows"),
        fix: None,
        detects: &["wsl-dxg-missing"],
    },
    Entry {
        id: "wsl.gpu-device-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "No GPU reaches WSL",
        cause: "WSL reaches the GPU by the device /dev/dxg, which an old Windows, an old driver or a \
                kernel of one's own does not offer",
        remedy: Some("update Windows and its NVIDIA driver, then WSL in a Windows terminal"),
        fix: None,
        detects: &["wsl-dxg-missing"],
    },
    Entry {
        id: "wsl.gpu-device-closed",
        area: Area::Wsl,
        status: Status::Error,
        title: "This user may not open the GPU",
        cause: "every user of WSL may open /dev/dxg unless its mode was changed, such as by a rule of udev",
        remedy: Some("open it now, and find out what changes it: WSL itself sets mode 666"),
        fix: None,
        detects: &["wsl-dxg-permission"],
    },
    Entry {
        id: "wsl.no-windows-driver",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Windows brings no NVIDIA driver into WSL",
        cause: "WSL uses the driver of Windows, and shows its libraries in /usr/lib/wsl/lib; libcuda.so.1 \
                is not among them",
        remedy: Some(
            "install the NVIDIA driver in Windows (none inside WSL), then stop WSL; nothing on a PC \
             without an NVIDIA card",
        ),
        fix: None,
        detects: &["wsl-dxg-missing"],
    },
    Entry {
        id: "wsl.gpu-blocked",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows blocks the GPU from WSL",
        cause: "a card in TCC mode, as data-centre cards are, Windows Server or an old Windows 10 keep WSL \
                from the GPU",
        remedy: Some(
            "switch the card to WDDM in a Windows terminal as administrator and restart Windows; not every \
             card can, and an old Windows needs an update",
        ),
        fix: None,
        detects: &["wsl-gpu-blocked-tcc"],
    },
    Entry {
        id: "wsl.driver-silent",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows' driver does not answer in WSL",
        cause: "Windows' driver was updated while WSL ran, or is sick",
        remedy: Some(
            "stop WSL from Windows; if that does not help, restart Windows, then install its NVIDIA driver \
             anew",
        ),
        fix: None,
        detects: &["wsl-dxgk-ioctl-noise"],
    },
    Entry {
        id: "wsl.old-card",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL does not support this card",
        cause: "NVIDIA supports Pascal (compute capability 6.0) and later in WSL; older cards may fail at \
                any call",
        remedy: Some("train on native Linux with this card, or leave it out of --device"),
        fix: None,
        detects: &["wsl-maxwell"],
    },
    Entry {
        id: "wsl.linux-driver",
        area: Area::Wsl,
        status: Status::Error,
        title: "A Linux driver is installed inside WSL",
        cause: "it hides the driver that Windows brings and cannot work itself, since WSL has no NVIDIA \
                kernel module; the packages `cuda` and `cuda-drivers` bring it along",
        remedy: Some(
            "remove its packages, and let only cuda-toolkit-12-x or 13-x in, from NVIDIA's repository for \
             WSL; then stop WSL",
        ),
        fix: None,
        detects: &["wsl-linux-driver-installed"],
    },
    Entry {
        id: "wsl.loader",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The loader finds the libraries of Windows' driver",
        cause: "the loader looks for libcuda.so.1 where WSL shows the driver of Windows",
        remedy: None,
        fix: None,
        detects: &["wsl-libcuda-not-symlink"],
    },
    Entry {
        id: "wsl.loader-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "The loader does not find the libraries of Windows' driver",
        cause: "CUDA programs end with `libcuda.so.1: cannot open shared object file`",
        remedy: Some("tell the loader of the folder"),
        fix: Some(Fix {
            does: "write the folder into /etc/ld.so.conf.d/ld.wsl.conf and run ldconfig, or put it into \
                   the file of shell variables where that needs root",
            undo: "remove the line again and run ldconfig",
        }),
        detects: &["wsl-lib-not-in-loader"],
    },
    Entry {
        id: "wsl.libcuda-name",
        area: Area::Wsl,
        status: Status::Error,
        title: "The loader does not find libcuda.so",
        cause: "cuDNN 8 opens the driver by the name `libcuda.so`, which the loader's cache does not list \
                in WSL; cuDNN 9, that of yolo's libtorch, does not",
        remedy: Some("set the variable before programs with cuDNN 8"),
        fix: Some(Fix {
            does: "set LD_LIBRARY_PATH in the file to source",
            undo: "the script that it names puts back the file of variables",
        }),
        detects: &["wsl-libcuda-so-missing-devname"],
    },
    Entry {
        id: "wsl.gpu-lost",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows lost the GPU",
        cause: "the driver of Windows reset the GPU or lost it, mostly from too much GPU memory in use at \
                once; programs that used it are dead",
        remedy: Some("restart Windows; then update its NVIDIA driver and train with a smaller --batch-size"),
        fix: None,
        detects: &["wsl-gpu-lost-host-tdr"],
    },
    Entry {
        id: "wsl.several-gpus",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Several GPUs in WSL",
        cause: "WSL has no direct way from GPU to GPU (P2P, CUDA IPC), and little pinned memory: NCCL \
                mostly finds another way by itself, and fails with `unhandled cuda error` where it does \
                not",
        remedy: Some(
            "if the run stops with an NCCL error, set these variables and start it again; as a last resort \
             use gloo",
        ),
        fix: None,
        detects: &["wsl-nccl-multigpu", "wsl-cuda-ipc"],
    },
    Entry {
        id: "wsl.nccl-old",
        area: Area::Wsl,
        status: Status::Error,
        title: "NCCL is too old for WSL",
        cause: "NCCL before 2.10 looks for PCI devices that WSL does not show, and ends with `unhandled \
                system error`",
        remedy: Some("use the libtorch that `yolo setup` fetches, which brings a newer NCCL"),
        fix: None,
        detects: &["wsl-nccl-old"],
    },
    Entry {
        id: "wsl.container-gpus",
        area: Area::Wsl,
        status: Status::Info,
        title: "A container in WSL sees all GPUs",
        cause: "WSL cannot give a container some of the GPUs by number",
        remedy: Some("choose them in the run"),
        fix: None,
        detects: &["wsl-container-gpu-index"],
    },
];
