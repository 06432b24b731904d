//! Catalogue entries about the driver and GPUs.

use super::{Area, Entry, Fix};
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
        id: "gpu.devices",
        area: Area::Gpu,
        status: Status::Ok,
        title: "A GPU is available",
        cause: "each rank of a run uses its own GPU",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.none",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The driver reports no GPU",
        cause: "without a GPU, training runs on the CPU, many times slower",
        remedy: Some(
            "check that the card is seated and powered, and that the container was given its \
                GPUs; until then, train on the CPU",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.not-there",
        area: Area::Gpu,
        status: Status::Error,
        title: "The run uses a GPU that does not exist",
        cause: "--device takes GPU indices as listed by nvidia-smi, starting at 0",
        remedy: Some("pass GPUs that exist to --device"),
        fix: None,
        detects: &["cvd-invalid", "nccl-world-gt-gpus"],
    },
    Entry {
        id: "gpu.lost",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is lost",
        cause: "the card no longer responds on the PCI bus; usual causes are its power supply, heat, a riser or its slot; programs that used it have failed",
        remedy: Some(
            "restart the machine; if it happens again, reseat the card, check its power cables \
                and cooling, and try another slot; until then, exclude it from --device",
        ),
        fix: None,
        detects: &["gpu-lost-xid79", "power-cable-missing", "gpu-reset-required"],
    },
    Entry {
        id: "gpu.memory-taken",
        area: Area::Gpu,
        status: Status::Warning,
        title: "Other processes use a GPU's memory",
        cause: "memory held by other processes is unavailable to the run, which may fail with `CUDA out of \
                memory`",
        remedy: Some("stop those processes, or choose another --device or a smaller --batch"),
        fix: None,
        detects: &["gpu-memory-taken", "cuda-oom"],
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
        id: "gpu.boost-off",
        area: Area::Gpu,
        status: Status::Info,
        title: "A laptop's GPU stays at its base power",
        cause: "the service nvidia-powerd lets the GPU use power that the CPU does not need (Dynamic Boost); without it \
                the GPU is slower under load",
        remedy: Some("start the service now and whenever the machine starts"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.fabric-manager",
        area: Area::Gpu,
        status: Status::Error,
        title: "NVIDIA Fabric Manager is not running",
        cause: "NVSwitch connects the GPUs of this machine; until Fabric Manager has configured the \
                switches, every CUDA program fails with `system not yet initialized` (error 802), although \
                nvidia-smi shows no problem",
        remedy: Some("start the service; its version must match the driver's"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.driver-unsigned",
        area: Area::Gpu,
        status: Status::Error,
        title: "Secure Boot refuses the driver's module",
        cause: "with Secure Boot on, the kernel loads only modules signed with a key that the firmware \
                trusts",
        remedy: Some(
            "enroll the key that signed the module with `mokutil --import`, which asks you to choose a password; at the next boot, select Enroll MOK on the blue screen and enter it; or turn off Secure Boot in the firmware",
        ),
        fix: None,
        detects: &["driver-secureboot-unsigned"],
    },
    Entry {
        id: "gpu.nouveau",
        area: Area::Gpu,
        status: Status::Error,
        title: "The nouveau driver controls the NVIDIA card",
        cause: "nouveau, the open-source driver for NVIDIA cards, cannot run CUDA, and NVIDIA's driver \
                cannot use a card that nouveau controls",
        remedy: Some("disable nouveau and restart; to undo this, delete the file in /etc/modprobe.d"),
        fix: None,
        detects: &["nouveau-loaded"],
    },
    Entry {
        id: "gpu.switched-off",
        area: Area::Gpu,
        status: Status::Error,
        title: "The NVIDIA card is switched off or reserved for a virtual machine",
        cause: "CUDA cannot use a card that is switched off or reserved for a virtual machine",
        remedy: Some("switch the card on and restart; `sudo prime-select intel` undoes this"),
        fix: None,
        detects: &["optimus-runtime-suspend"],
    },
    Entry {
        id: "gpu.uvm-missing",
        area: Area::Gpu,
        status: Status::Error,
        title: "CUDA's device file is missing",
        cause: "nvidia-smi only needs /dev/nvidiactl, but CUDA also needs /dev/nvidia-uvm; without it, \
                programs fail with `CUDA unknown error`",
        remedy: Some("install nvidia-modprobe, which creates the file, and create it now"),
        fix: None,
        detects: &["uvm-device-missing"],
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
        id: "gpu.xid",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU reported an error that requires a reset",
        cause: "the driver logged a hardware or firmware error; until the card is reset, programs that use \
                it may hang or fail",
        remedy: Some(
            "restart the machine; if the error returns, check the card's power supply, cooling \
                and slot",
        ),
        fix: None,
        detects: &["xid-109-154-gsp"],
    },
    Entry {
        id: "gpu.recovery-action",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver asks for a GPU to be reset",
        cause: "after a fault the driver remembers what has to be done with the card; until then it lists the card \
                as usual, but programs on it fail",
        remedy: Some("stop the programs that use the card and reset it, or restart the machine"),
        fix: None,
        detects: &["nvml-recovery-action"],
    },
    Entry {
        id: "gpu.hidden",
        area: Area::Gpu,
        status: Status::Info,
        title: "CUDA_VISIBLE_DEVICES hides GPUs",
        cause: "yolo numbers GPUs as nvidia-smi does and uses only those that the variable lists; for other \
                programs in this shell, the listed GPUs are numbered from 0",
        remedy: Some("unset the variable, or use GPUs that it lists"),
        fix: Some(Fix {
            does: "if the variable hides all GPUs, unset it in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["cvd-remap"],
    },
    Entry {
        id: "gpu.visible-unreadable",
        area: Area::Gpu,
        status: Status::Warning,
        title: "CUDA_VISIBLE_DEVICES is invalid",
        cause: "CUDA stops at the first invalid entry, and PyTorch sees no GPU if one is named twice, both without a \
                message: programs in this shell see fewer GPUs, or none",
        remedy: Some(
            "list GPU indices as in nvidia-smi, each once and separated by commas, such as 0,1; or unset the variable",
        ),
        fix: Some(Fix {
            does: "unset the variable in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["cvd-bad-token"],
    },
    Entry {
        id: "gpu.order",
        area: Area::Gpu,
        status: Status::Info,
        title: "CUDA may number the GPUs differently",
        cause: "by default, CUDA numbers the fastest card 0; nvidia-smi and yolo number the cards by PCI \
                bus address",
        remedy: Some("nothing for yolo; for other programs, set CUDA_DEVICE_ORDER"),
        fix: Some(Fix {
            does: "set the variable in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["cvd-remap"],
    },
    Entry {
        id: "gpu.mixed",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The run's GPUs differ",
        cause: "every rank gets an equal share of the batch and waits for the others at each step, so the \
                slowest card sets the pace and the smallest card limits the batch",
        remedy: Some(
            "split the batch in proportion to the cards with --batch-split auto; a short run shows whether the faster cards alone finish sooner",
        ),
        fix: None,
        detects: &["multi-gpu-mixed-arch"],
    },
    Entry {
        id: "gpu.exclusive",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is in exclusive or prohibited compute mode",
        cause: "in exclusive mode a second program fails with `all CUDA-capable devices are busy or \
                unavailable`; in prohibited mode every program does",
        remedy: Some(
            "switch to the default compute mode, unless an administrator chose this mode on purpose",
        ),
        fix: None,
        detects: &["compute-mode-exclusive"],
    },
    Entry {
        id: "gpu.mps",
        area: Area::Gpu,
        status: Status::Error,
        title: "MPS keeps the run from a GPU, or limits it",
        cause: "NVIDIA's Multi-Process Service (MPS) computes for the programs of one user at a time; others fail with \
                errors 805 or 807 (`MPS server is not ready to accept new MPS client requests`) although nvidia-smi works",
        remedy: Some(
            "use another GPU, or have the owner of the MPS daemon stop it (`echo quit | nvidia-cuda-mps-control`)",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.persistence-off",
        area: Area::Gpu,
        status: Status::Info,
        title: "Persistence mode is off",
        cause: "when no program uses the GPU, the driver shuts it down, and the next program waits until \
                it is initialized again",
        remedy: Some("enable persistence mode"),
        fix: None,
        detects: &["persistence-off"],
    },
    Entry {
        id: "gpu.mig",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is partitioned into MIG instances",
        cause: "a process can use only one instance, and NCCL 2.30 and earlier do not connect ranks on \
                several instances",
        remedy: Some("disable MIG, or name instances in --device: `nvidia-smi -L` lists their UUIDs"),
        fix: None,
        detects: &["mig-multi-gpu"],
    },
    Entry {
        id: "gpu.memory-errors",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU's memory has errors",
        cause: "data in this memory may be wrong, and the driver stops programs that read it (Xid 48, 94, \
                95)",
        remedy: Some("reset the card; if the errors return, have it replaced"),
        fix: None,
        detects: &["ecc-uncorrected"],
    },
    Entry {
        id: "gpu.power-brake",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is throttled by its power supply",
        cause: "the power supply or the motherboard signals the card to slow down, often to a quarter of its speed",
        remedy: Some(
            "check the power supply, its cables to the card, and the event log of the server's management controller (BMC)",
        ),
        fix: None,
        detects: &["throttle-power-brake"],
    },
    Entry {
        id: "gpu.hot",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is throttled because of heat",
        cause: "a hot card lowers its clocks until it cools down, and all ranks wait for the slowest",
        remedy: Some(
            "clean the fans and improve the airflow; a lower power limit (nvidia-smi -pl) also \
                helps",
        ),
        fix: None,
        detects: &["throttle-thermal", "gpu-fan-stuck"],
    },
    Entry {
        id: "gpu.power-cap",
        area: Area::Gpu,
        status: Status::Info,
        title: "A GPU's power limit is below its default",
        cause: "a lower limit slows the GPU down under load; laptops lower it on battery power",
        remedy: Some("raise the limit, or plug the laptop in"),
        fix: None,
        detects: &["throttle-power-cap"],
    },
    Entry {
        id: "gpu.link-narrow",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU uses only part of its PCIe link",
        cause: "images and gradients travel over this link; a narrow link makes the card wait, especially \
                with several GPUs",
        remedy: Some(
            "move the card to a full-width slot, replace the riser, or check the slot's \
                bifurcation setting in the firmware",
        ),
        fix: None,
        detects: &["pcie-link-degraded"],
    },
    Entry {
        id: "gpu.link-errors",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A PCIe link has errors",
        cause: "failed packets are sent again, which takes time; if the link gets worse, the card drops \
                off the bus",
        remedy: Some(
            "reseat the card, replace the riser or cable, or lower the slot's PCIe generation in \
                the firmware",
        ),
        fix: None,
        detects: &["pcie-aer-errors"],
    },
    Entry {
        id: "gpu.peer-redirected",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The IOMMU redirects traffic between GPUs",
        cause: "IOMMU translation, or access control (ACS) on PCIe bridges, redirects direct GPU-to-GPU traffic (P2P), which some motherboards do not handle: training hangs at the first exchange, with all GPUs at 100%",
        remedy: Some(
            "if a run hangs at its start, disable P2P (slower), or add iommu=pt to the \
                kernel command line and restart",
        ),
        fix: None,
        detects: &["p2p-iommu-acs-hang"],
    },
    Entry {
        id: "gpu.peer-fault",
        area: Area::Gpu,
        status: Status::Warning,
        title: "Direct traffic between these GPUs hangs",
        cause: "these cards or this driver version have a known problem with direct GPU-to-GPU traffic (P2P): the first exchange never completes",
        remedy: Some("disable P2P (slower), or update the driver"),
        fix: None,
        detects: &["p2p-driver-bug", "p2p-blackwell-workstation", "p2p-blackwell-topo-ok-hang"],
    },
    Entry {
        id: "gpu.peer-silent",
        area: Area::Gpu,
        status: Status::Warning,
        title: "Direct traffic between these GPUs may be corrupted",
        cause: "with this driver, copies between two of these cards were reported to be corrupted without an \
                error: the loss becomes NaN only with several cards",
        remedy: Some(
            "let --deep compare direct copies with copies through memory; if they differ, set NCCL_P2P_DISABLE=1 and \
             try another driver version",
        ),
        fix: None,
        detects: &["p2p-silent-corruption"],
    },
    Entry {
        id: "gpu.peer-patched",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The driver is patched for direct traffic between GPUs",
        cause: "the version of the kernel module ends in -p2p: a patch lets GeForce cards communicate directly, which \
                NVIDIA's own driver does not offer; on some machines it corrupts data",
        remedy: Some(
            "let --deep compare direct copies with copies through memory; if they differ, set NCCL_P2P_DISABLE=1, or \
             install NVIDIA's own driver",
        ),
        fix: None,
        detects: &["p2p-patched-driver"],
    },
    Entry {
        id: "gpu.peer-none",
        area: Area::Gpu,
        status: Status::Info,
        title: "GPUs communicate through system memory",
        cause: "with NVIDIA's own driver these cards have no direct path over PCIe; NCCL uses shared memory instead, which is \
                normal",
        remedy: None,
        fix: None,
        detects: &["p2p-geforce-none"],
    },
];
