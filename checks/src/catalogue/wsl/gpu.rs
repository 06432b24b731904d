//! Catalogue entries about the GPU of Windows inside WSL.

use crate::catalogue::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.gpu",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The GPU is available in WSL",
        cause: "WSL uses the Windows driver, which does not report processes, power or utilization there",
        remedy: None,
        fix: None,
        detects: &["wsl-nvml-unsupported", "wsl-dxgk-ioctl-noise"],
    },
    Entry {
        id: "wsl.gpu-switched-off",
        area: Area::Wsl,
        status: Status::Error,
        title: "A setting disables the GPU in WSL",
        cause: "WSL provides the GPU unless a setting disables it",
        remedy: Some("remove the setting, then shut WSL down from Windows"),
        fix: None,
        detects: &["wsl-dxg-missing"],
    },
    Entry {
        id: "wsl.gpu-device-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "The GPU is not available in WSL",
        cause: "WSL provides the GPU through /dev/dxg, which does not exist with an old Windows, an old driver or a custom kernel",
        remedy: Some("update Windows and its NVIDIA driver, then update WSL in a Windows terminal"),
        fix: None,
        detects: &["wsl-dxg-missing"],
    },
    Entry {
        id: "wsl.gpu-device-closed",
        area: Area::Wsl,
        status: Status::Error,
        title: "This user may not access the GPU",
        cause: "by default every user may open /dev/dxg; something changed its mode, such as a udev rule",
        remedy: Some("restore the mode now, and find out what changes it; WSL itself sets mode 666"),
        fix: None,
        detects: &["wsl-dxg-permission"],
    },
    Entry {
        id: "wsl.no-windows-driver",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The Windows NVIDIA driver is not available in WSL",
        cause: "WSL uses the Windows driver and shows its libraries in /usr/lib/wsl/lib, but libcuda.so.1 \
                is not there",
        remedy: Some(
            "install the NVIDIA driver in Windows (not inside WSL), then shut WSL down; on a PC without an NVIDIA card, do nothing",
        ),
        fix: None,
        detects: &["wsl-dxg-missing"],
    },
    Entry {
        id: "wsl.gpu-blocked",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows does not give WSL access to the GPU",
        cause: "WSL cannot use cards in TCC mode, such as data center cards, nor any card on Windows \
                Server or an old Windows 10",
        remedy: Some(
            "switch the card to WDDM in a Windows terminal as administrator and restart Windows; \
                not every card supports this, and an old Windows needs an update",
        ),
        fix: None,
        detects: &["wsl-gpu-blocked-tcc"],
    },
    Entry {
        id: "wsl.driver-silent",
        area: Area::Wsl,
        status: Status::Error,
        title: "The Windows driver does not respond in WSL",
        cause: "the Windows driver was updated while WSL was running, or it is faulty",
        remedy: Some(
            "shut WSL down from Windows; if that does not help, restart Windows, then reinstall \
                its NVIDIA driver",
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
                any time",
        remedy: Some("use this card on native Linux, or exclude it from --device"),
        fix: None,
        detects: &["wsl-maxwell"],
    },
    Entry {
        id: "wsl.linux-driver",
        area: Area::Wsl,
        status: Status::Error,
        title: "A Linux driver is installed inside WSL",
        cause: "it hides the driver that Windows provides, and cannot work itself because WSL has no \
                NVIDIA kernel module; the packages `cuda` and `cuda-drivers` install it",
        remedy: Some(
            "remove its packages and install only cuda-toolkit-12-x or 13-x, from NVIDIA's \
                repository for WSL; then shut WSL down",
        ),
        fix: None,
        detects: &["wsl-linux-driver-installed"],
    },
    Entry {
        id: "wsl.loader",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The loader finds the Windows driver's libraries",
        cause: "the loader searches the folder where WSL shows the Windows driver",
        remedy: None,
        fix: None,
        detects: &["wsl-libcuda-not-symlink"],
    },
    Entry {
        id: "wsl.loader-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "The loader does not find the Windows driver's libraries",
        cause: "CUDA programs fail with `libcuda.so.1: cannot open shared object file`",
        remedy: Some("add the folder to the loader's search path"),
        fix: Some(Fix {
            does: "add the folder to /etc/ld.so.conf.d/ld.wsl.conf and run ldconfig, or, if you are not root, add it to \
                yolo's variables file, which you then source",
            undo: "`yolo undo` removes the folder again",
        }),
        detects: &["wsl-lib-not-in-loader"],
    },
    Entry {
        id: "wsl.libcuda-name",
        area: Area::Wsl,
        status: Status::Error,
        title: "The loader does not find libcuda.so",
        cause: "cuDNN 8 opens the driver as `libcuda.so`, which is not in the loader's cache in WSL; cuDNN \
                9, which yolo's libtorch uses, does not need it",
        remedy: Some("add /usr/lib/wsl/lib to LD_LIBRARY_PATH before starting programs that use cuDNN 8"),
        fix: Some(Fix {
            does: "set LD_LIBRARY_PATH in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["wsl-libcuda-so-missing-devname"],
    },
    Entry {
        id: "wsl.gpu-lost",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows lost the GPU",
        cause: "the Windows driver reset or lost the GPU, usually because too much GPU memory was in use; \
                programs that used it have failed",
        remedy: Some("restart Windows; then update its NVIDIA driver and train with a smaller --batch"),
        fix: None,
        detects: &["wsl-gpu-lost-host-tdr"],
    },
    Entry {
        id: "wsl.gpu-channel",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL has lost its connection to the GPU driver",
        cause: "the channel of WSL's GPU device (dxg) to Windows fails, and does not recover by itself",
        remedy: Some("shut WSL down from Windows and start it again; if that does not help, restart Windows"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.expandable-segments",
        area: Area::Wsl,
        status: Status::Warning,
        title: "expandable_segments can fail in WSL",
        cause: "with this option, libtorch maps GPU memory with functions that several Windows drivers do not \
                support in WSL: a run fails with `CUDA driver error`, or hangs",
        remedy: Some("leave this option out of the variable, or update the Windows driver and try again"),
        fix: None,
        detects: &["wsl-expandable-segments"],
    },
    Entry {
        id: "wsl.kernel-hangs",
        area: Area::Wsl,
        status: Status::Info,
        title: "Runs were reported to hang on this kernel",
        cause: "on WSL's kernel 6.18.33 some runs wait for the GPU forever, without an error and with the GPU at 0 %; \
                the cause is not known, and most machines with this kernel train",
        remedy: Some(
            "nothing while runs go on; if one hangs, update WSL, end the run and continue it from last.pt \
             with --resume; a smaller --batch may help",
        ),
        fix: None,
        detects: &["wsl-kernel-6-18-hang"],
    },
    Entry {
        id: "wsl.cuda-graphs",
        area: Area::Wsl,
        status: Status::Info,
        title: "This WSL cannot capture CUDA graphs on Blackwell cards",
        cause: "WSL before 2.7.0 fails to capture CUDA graphs on GPUs of compute capability 12, with `unknown error`; \
                `yolo` does not use CUDA graphs, other programs do",
        remedy: Some("nothing for `yolo`; for other programs, update WSL, or train without CUDA graphs"),
        fix: None,
        detects: &["wsl-cuda-graphs-blackwell"],
    },
    Entry {
        id: "wsl.cdi-refresh",
        area: Area::Wsl,
        status: Status::Info,
        title: "A service may start CUDA before the Windows driver is ready",
        cause: "units of the NVIDIA Container Toolkit ask CUDA for devices a few seconds after WSL has started; on a \
                Blackwell card, CUDA was reported to fail afterwards",
        remedy: Some(
            "nothing while CUDA works; otherwise mask the units and restart WSL; then run `sudo nvidia-ctk cdi \
             generate --output=/etc/cdi/nvidia.yaml` after each driver update; `systemctl unmask` undoes it",
        ),
        fix: None,
        detects: &["wsl-cdi-refresh-race"],
    },
    Entry {
        id: "wsl.pinned-memory",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL limits pinned memory",
        cause: "copies to the GPU go through pinned memory; when WSL refuses more of it, programs fail with `CUDA \
                error: out of memory` although the GPU has room. `yolo` pins at most 512 MiB and then uses ordinary \
                memory",
        remedy: Some(
            "nothing for `yolo`; for other programs, use fewer workers, a smaller batch, or no pinned memory",
        ),
        fix: None,
        detects: &["wsl-pinned-sticky-error"],
    },
    Entry {
        id: "wsl.several-gpus",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Several GPUs in WSL",
        cause: "GPUs in WSL cannot communicate directly (P2P, CUDA IPC), and pinned memory is limited; \
                NCCL usually falls back to another transport, and otherwise fails with `unhandled cuda error`",
        remedy: Some(
            "if the run fails with an NCCL error, set NCCL_P2P_DISABLE=1, NCCL_CUMEM_ENABLE=0 and \
                NCCL_CUMEM_HOST_ENABLE=0, and start it again; as a last resort, use gloo",
        ),
        fix: None,
        detects: &["wsl-nccl-multigpu", "wsl-cuda-ipc"],
    },
    Entry {
        id: "wsl.nccl-old",
        area: Area::Wsl,
        status: Status::Error,
        title: "NCCL is too old for WSL",
        cause: "NCCL before 2.10 looks for PCI devices that WSL does not show, and fails with `unhandled \
                system error`",
        remedy: Some("use the libtorch that `yolo setup` downloads, which has a newer NCCL"),
        fix: None,
        detects: &["wsl-nccl-old"],
    },
    Entry {
        id: "wsl.container-gpus",
        area: Area::Wsl,
        status: Status::Info,
        title: "A container in WSL sees all GPUs",
        cause: "WSL cannot limit a container to some of the GPUs",
        remedy: Some("choose the GPUs with --device instead"),
        fix: None,
        detects: &["wsl-container-gpu-index"],
    },
];
