//! The driver: whether it is installed, fits the card, and is loaded with all that CUDA needs.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "gpu.driver",
        area: Area::Gpu,
        status: Status::Ok,
        title: "The NVIDIA driver works",
        cause: "the driver's version decides which CUDA versions can run",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.driver-missing",
        area: Area::Gpu,
        status: Status::Error,
        title: "The NVIDIA driver is not installed",
        cause: "without the driver no program can use the GPU, and training runs on the CPU, many times \
                slower",
        remedy: Some("install your distribution's package of the NVIDIA driver, then restart"),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.driver-not-loaded",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's kernel module is not loaded",
        cause: "the module is normally loaded when the machine starts; after a kernel update it may not \
                have been rebuilt",
        remedy: Some("load the module; if that fails, build it for the running kernel, or restart"),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.driver-mismatch",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's library and kernel module have different versions",
        cause: "an update replaced the driver's files while the old module was loaded; CUDA programs fail \
                until the new module is loaded",
        remedy: Some("restart the machine to load the new module"),
        fix: None,
        detects: &["driver-library-mismatch", "driver-runfile-vs-module-patchlevel"],
    },
    Entry {
        id: "gpu.driver-silent",
        area: Area::Gpu,
        status: Status::Error,
        title: "The NVIDIA driver does not respond",
        cause: "the driver is installed, but it denies access to this user or container, or a card is \
                faulty",
        remedy: Some("check the output of nvidia-smi, and the NVRM lines in the kernel log"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.driver-not-built",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's module was not built for the running kernel",
        cause: "the module must be rebuilt for each new kernel, which needs the kernel's headers; they may \
                be missing",
        remedy: Some("install the headers of the running kernel, then build and load the module"),
        fix: None,
        detects: &["driver-kernel-updated-dkms", "driver-older-than-kernel"],
    },
    Entry {
        id: "gpu.driver-unsuited",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's kernel module does not support this card",
        cause: "each driver supports certain generations of cards: recent ones need the open kernel \
                module, cards before the RTX 20 and GTX 16 series need the proprietary one, and old cards \
                need an older driver branch",
        remedy: Some("install the driver that the kernel log asks for, then restart"),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.no-address-space",
        area: Area::Gpu,
        status: Status::Error,
        title: "The firmware gave the card no address space",
        cause: "the driver accesses the card's memory through an address range that the firmware assigns \
                at boot; without one it cannot use the card, and reloading the module does not help",
        remedy: Some(
            "in the firmware settings, enable \"Above 4G Decoding\" (and \"Resizable BAR\", if \
                present) and disable CSM; if that does not help or is not available, boot Linux with \
                `pci=realloc`; in a virtual machine, enlarge its 64-bit PCI window",
        ),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.firmware-missing",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's firmware is not installed",
        cause: "the driver starts the card's own processor (GSP) with a firmware file of its own version; on some \
                distributions the file is in a package of its own",
        remedy: Some("install the firmware package in the driver's version, then restart"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.vgpu-unlicensed",
        area: Area::Gpu,
        status: Status::Error,
        title: "A virtual GPU has no license",
        cause: "without a license, the driver of a virtual GPU (vGPU) slows CUDA programs down or refuses them with \
                `all CUDA-capable devices are busy or unavailable`, although nvidia-smi shows an idle card",
        remedy: Some(
            "ask the provider of the machine to renew the license: its token, and the connection of nvidia-gridd to \
             the license server",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.vgpu-memory",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A virtual GPU lacks what the run needs",
        cause: "virtual GPUs have no unified memory and map no memory of other cards unless the administrator of their host allows \
                it; a run then fails with `CUDA driver error: operation not supported`",
        remedy: Some("do without the option, or ask the administrator of the host to allow unified memory"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.fabric-manager",
        area: Area::Gpu,
        status: Status::Error,
        title: "NVIDIA Fabric Manager has not set up the GPUs",
        cause: "NVSwitch connects the GPUs of this machine; until Fabric Manager has configured the \
                switches, every CUDA program fails with `system not yet initialized` (error 802), although \
                nvidia-smi shows no problem",
        remedy: Some("start the service; its version must match the driver's"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.confidential-not-ready",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU for confidential computing is not released",
        cause: "in a confidential virtual machine, the GPU accepts no program until somebody has attested it and declared it \
                ready; until then CUDA fails with `system not yet initialized` (error 802), although nvidia-smi shows no problem",
        remedy: Some("after each boot, attest the GPU and mark it ready"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.driver-unsigned",
        area: Area::Gpu,
        status: Status::Error,
        title: "Secure Boot or a lockdown of the kernel refuses the driver's module",
        cause: "with Secure Boot on, the kernel loads only modules signed with a key that the firmware \
                trusts",
        remedy: Some(
            "enroll the key that signed the module with `mokutil --import`, which asks you to choose a password; at the \
            next boot, select Enroll MOK on the blue screen and enter it; or turn off Secure Boot in the firmware",
        ),
        fix: None,
        detects: &["driver-secureboot-unsigned"],
    },
    Entry {
        id: "gpu.nouveau",
        area: Area::Gpu,
        status: Status::Error,
        title: "nouveau or nova_core controls the NVIDIA card",
        cause: "the kernel's own drivers for NVIDIA cards, nouveau and nova_core, cannot run CUDA, and NVIDIA's driver \
                cannot use a card that one of them controls",
        remedy: Some(
            "disable that driver and restart; to undo this, delete /etc/modprobe.d/blacklist-nouveau.conf and rebuild the initramfs",
        ),
        fix: None,
        detects: &["nouveau-loaded"],
    },
    Entry {
        id: "gpu.switched-off",
        area: Area::Gpu,
        status: Status::Error,
        title: "The NVIDIA card is switched off, missing from the PCI bus, or reserved for a virtual machine",
        cause: "CUDA cannot use a card that is switched off, not on the bus, or reserved for a virtual machine",
        remedy: Some("switch the card on and restart; `sudo prime-select intel` undoes this"),
        fix: None,
        detects: &["optimus-runtime-suspend"],
    },
    Entry {
        id: "gpu.uvm-missing",
        area: Area::Gpu,
        status: Status::Error,
        title: "Device files of the NVIDIA driver are missing",
        cause: "nvidia-smi only needs /dev/nvidiactl and a file for each card, but CUDA also needs /dev/nvidia-uvm; without it, \
                programs fail with `CUDA unknown error`",
        remedy: Some("install nvidia-modprobe, which creates these files, and create them now"),
        fix: None,
        detects: &["uvm-device-missing"],
    },
    Entry {
        id: "gpu.uvm-closed",
        area: Area::Gpu,
        status: Status::Error,
        title: "CUDA's device file may not be opened",
        cause: "nvidia-smi only needs /dev/nvidiactl, but CUDA also needs /dev/nvidia-uvm; if it may not be opened, \
                programs fail with `CUDA unknown error` or `no CUDA-capable device is detected`",
        remedy: Some("allow this user, container or service to use the file"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.uvm-kaslr",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's module nvidia-uvm failed to start",
        cause: "on some kernels the module finds no free address range for heterogeneous memory management \
                (HMM), and every CUDA program fails at startup",
        remedy: Some(
            "turn off HMM, which training does not use, and reload the module; to undo this, \
                delete /etc/modprobe.d/uvm.conf",
        ),
        fix: None,
        detects: &["uvm-hmm-kaslr"],
    },
    Entry {
        id: "gpu.suspended",
        area: Area::Gpu,
        status: Status::Info,
        title: "The machine has been suspended since it started",
        cause: "suspending can corrupt the state of the nvidia-uvm module; CUDA then fails with `CUDA \
                unknown error` until the module is reloaded",
        remedy: Some(
            "nothing while CUDA works; if it reports `CUDA unknown error`, stop the programs that \
                use the GPU and reload the module",
        ),
        fix: None,
        detects: &["uvm-broken-after-suspend"],
    },
    Entry {
        id: "gpu.selinux",
        area: Area::Gpu,
        status: Status::Error,
        title: "SELinux denies access to the GPUs",
        cause: "the device files may be used by everybody, but SELinux's policy forbids it to this process; \
                containers on Fedora and RHEL are separated from devices by default",
        remedy: Some("look for the denial in the audit log, and restore the labels of the device files"),
        fix: None,
        detects: &[],
    },
];
