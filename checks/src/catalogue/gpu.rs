//! Driver and GPUs: the rows of the catalogue.

use super::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "gpu.driver",
        area: Area::Gpu,
        status: Status::Ok,
        title: "The NVIDIA driver answers",
        cause: "the driver answers for the GPUs; its version decides which CUDA can run",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.driver-missing",
        area: Area::Gpu,
        status: Status::Error,
        title: "There is no NVIDIA driver",
        cause: "without the driver no program reaches the GPU, and training runs on the processor, many times \
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
        cause: "the module is loaded when the machine starts; after an update of the kernel it may not have \
                been built again",
        remedy: Some("load the module; if that fails, build it for the running kernel, or restart"),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.driver-mismatch",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's library and kernel module differ",
        cause: "an update replaced the driver's files while the old module was loaded; every CUDA program \
                fails until the new module is",
        remedy: Some("restart the machine, so that the new module is loaded"),
        fix: None,
        detects: &["driver-library-mismatch", "driver-runfile-vs-module-patchlevel"],
    },
    Entry {
        id: "gpu.driver-silent",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver does not answer",
        cause: "the driver is there, but refuses this user or this container, or a card is sick",
        remedy: Some("see what nvidia-smi says, and what the kernel's log says of NVRM"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.devices",
        area: Area::Gpu,
        status: Status::Ok,
        title: "A GPU",
        cause: "each rank of a run has a GPU of its own",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.none",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The driver shows no GPU",
        cause: "a driver without a GPU trains nothing",
        remedy: Some(
            "see that the card is seated and powered, and that the container was given its GPUs; until then \
             train on the processor",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.not-there",
        area: Area::Gpu,
        status: Status::Error,
        title: "The run names a GPU that is not there",
        cause: "each number of --device is a GPU, counted from 0 as nvidia-smi does",
        remedy: Some("name the GPUs that are there with --device"),
        fix: None,
        detects: &["cvd-invalid", "nccl-world-gt-gpus"],
    },
    Entry {
        id: "gpu.lost",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is lost",
        cause: "the card no longer answers on the PCI bus: power, heat, a riser or its slot; programs that \
                used it are dead",
        remedy: Some(
            "restart the machine; if the card is lost again, reseat it, check its power cables and cooling, \
             and try it in another slot; until then leave it out of --device",
        ),
        fix: None,
        detects: &["gpu-lost-xid79", "power-cable-missing", "gpu-reset-required"],
    },
    Entry {
        id: "gpu.memory-taken",
        area: Area::Gpu,
        status: Status::Warning,
        title: "Other processes hold memory of a GPU",
        cause: "what others hold is missing to the run, which may end with `CUDA out of memory`",
        remedy: Some("end those processes, choose another --device, or a smaller --batch-size"),
        fix: None,
        detects: &["gpu-memory-taken", "cuda-oom"],
    },
    Entry {
        id: "gpu.driver-not-built",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's module was not built for the running kernel",
        cause: "a new kernel needs the module built anew, which needs its headers; without them the driver \
                stays behind",
        remedy: Some("install the headers of the running kernel, and build and load the module"),
        fix: None,
        detects: &["driver-kernel-updated-dkms"],
    },
    Entry {
        id: "gpu.driver-unsuited",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's module does not run this card",
        cause: "a driver serves the cards of some years: new ones need the open kind of its kernel module, \
                cards before the RTX 20 and GTX 16 series the proprietary kind, and old ones an old branch",
        remedy: Some("install the driver that the kernel's log asks for, then restart"),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.no-address-space",
        area: Area::Gpu,
        status: Status::Error,
        title: "The firmware gave the card no address space",
        cause: "the driver reaches a card's memory through a range of addresses that the firmware gives out \
                at the start; without one it cannot use the card, and loading the module again does not help",
        remedy: Some(
            "in the firmware's settings turn on \"Above 4G Decoding\" (and \"Resizable BAR\", where it is \
                there) and turn off CSM; if that is so already, or there is no such setting, start Linux \
                with `pci=realloc`; in a virtual machine give it a larger 64-bit PCI window",
        ),
        fix: None,
        detects: &["driver-missing"],
    },
    Entry {
        id: "gpu.fabric-manager",
        area: Area::Gpu,
        status: Status::Error,
        title: "NVIDIA's Fabric Manager does not run",
        cause: "the GPUs of this machine are joined by NVSwitch, and until Fabric Manager has set the switches \
                up every CUDA program fails with `system not yet initialized` (error 802), while nvidia-smi \
                looks healthy",
        remedy: Some("start the service; it must be of the driver's own version"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.driver-unsigned",
        area: Area::Gpu,
        status: Status::Error,
        title: "Secure Boot refuses the driver's module",
        cause: "with Secure Boot on, the kernel loads only modules that are signed with a key that the \
                machine knows",
        remedy: Some(
            "make the machine know the key that signed the module: the command asks for a password, and \
                the blue screen at the next start asks for it again (Enroll MOK); or turn Secure Boot off \
                in the firmware",
        ),
        fix: None,
        detects: &["driver-secureboot-unsigned"],
    },
    Entry {
        id: "gpu.nouveau",
        area: Area::Gpu,
        status: Status::Error,
        title: "nouveau holds the NVIDIA card",
        cause: "nouveau is the free driver for NVIDIA cards, which cannot run CUDA; while it holds a card, \
                NVIDIA's driver cannot",
        remedy: Some("turn nouveau off and restart; to go back, delete the file in /etc/modprobe.d"),
        fix: None,
        detects: &["nouveau-loaded"],
    },
    Entry {
        id: "gpu.switched-off",
        area: Area::Gpu,
        status: Status::Error,
        title: "The NVIDIA card is switched off or given away",
        cause: "a card that is switched off or held for a virtual machine is not there for CUDA",
        remedy: Some("switch the card on and restart; `sudo prime-select intel` goes back"),
        fix: None,
        detects: &["optimus-runtime-suspend"],
    },
    Entry {
        id: "gpu.uvm-missing",
        area: Area::Gpu,
        status: Status::Error,
        title: "CUDA's device file is missing",
        cause: "nvidia-smi needs /dev/nvidiactl alone, CUDA also needs /dev/nvidia-uvm: without it \
                programs fail with `CUDA unknown error`",
        remedy: Some("install nvidia-modprobe, which makes the file, and make it now"),
        fix: None,
        detects: &["uvm-device-missing"],
    },
    Entry {
        id: "gpu.uvm-kaslr",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver's module nvidia-uvm failed to start",
        cause: "on some kernels the module finds no room in the address space for its heterogeneous \
                memory, and every CUDA program fails at its start",
        remedy: Some(
            "turn that feature off, which training does not use, and load the module again; to go back, \
                delete /etc/modprobe.d/uvm.conf",
        ),
        fix: None,
        detects: &["uvm-hmm-kaslr"],
    },
    Entry {
        id: "gpu.suspended",
        area: Area::Gpu,
        status: Status::Info,
        title: "The machine was suspended since its start",
        cause: "suspending can lose the state of the module nvidia-uvm: CUDA then fails with `CUDA unknown \
                error` until it is loaded again",
        remedy: Some(
            "nothing while CUDA works; if it says `CUDA unknown error`, end the programs that use the \
                GPU and load the module again",
        ),
        fix: None,
        detects: &["uvm-broken-after-suspend"],
    },
    Entry {
        id: "gpu.xid",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU had an error that stays until a reset",
        cause: "the driver logged an error of the card or its firmware; until a reset programs on it may \
                hang or fail",
        remedy: Some(
            "restart the machine; if the error comes again, check power, heat and the slot of that card",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.hidden",
        area: Area::Gpu,
        status: Status::Info,
        title: "CUDA_VISIBLE_DEVICES hides GPUs",
        cause: "yolo counts GPUs as nvidia-smi does and shows each rank its own, whatever the variable \
                says; other programs of this shell see only those that it names, and number them from 0",
        remedy: Some("unset the variable, or name GPUs that it shows"),
        fix: Some(Fix {
            does: "unset the variable in the file to source, when it hides all GPUs",
            undo: "the script that it names puts back the file of variables",
        }),
        detects: &["cvd-remap"],
    },
    Entry {
        id: "gpu.visible-unreadable",
        area: Area::Gpu,
        status: Status::Warning,
        title: "CUDA_VISIBLE_DEVICES cannot be read",
        cause: "CUDA stops reading at the first word that is no GPU, without a message: programs of this \
                shell see fewer GPUs, or none",
        remedy: Some(
            "write the numbers of nvidia-smi with commas and without spaces, such as 0,1; or unset it",
        ),
        fix: Some(Fix {
            does: "unset the variable in the file to source",
            undo: "the script that it names puts back the file of variables",
        }),
        detects: &["cvd-bad-token"],
    },
    Entry {
        id: "gpu.order",
        area: Area::Gpu,
        status: Status::Info,
        title: "CUDA may number these GPUs otherwise",
        cause: "CUDA numbers the fastest card 0, nvidia-smi and yolo go by the place on the bus",
        remedy: Some("nothing for yolo; for other programs set the order"),
        fix: Some(Fix {
            does: "set the variable in the file to source",
            undo: "the script that it names puts back the file of variables",
        }),
        detects: &["cvd-remap"],
    },
    Entry {
        id: "gpu.mixed",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The GPUs of a run differ",
        cause: "ranks have equal shares of the batch and wait for each other at every step: the slowest card \
                sets the pace, and the smallest how large the batch can be",
        remedy: Some(
            "choose the batch by the smallest card; see with a short run whether the stronger cards alone \
             are faster",
        ),
        fix: None,
        detects: &["multi-gpu-mixed-arch"],
    },
    Entry {
        id: "gpu.exclusive",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is kept for one program, or for none",
        cause: "in exclusive mode a second program fails with `all CUDA-capable devices are busy or \
                unavailable`; in Prohibited every one does",
        remedy: Some(
            "allow programs to share the card, unless the administrator of a cluster set this on \
                purpose",
        ),
        fix: None,
        detects: &["compute-mode-exclusive"],
    },
    Entry {
        id: "gpu.persistence-off",
        area: Area::Gpu,
        status: Status::Info,
        title: "Persistence mode is off",
        cause: "without a program on it the driver puts the card down, and the next start waits for it",
        remedy: Some("keep the driver ready"),
        fix: None,
        detects: &["persistence-off"],
    },
    Entry {
        id: "gpu.mig",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is divided into instances",
        cause: "a process can use one instance only, and NCCL does not connect ranks on several instances",
        remedy: Some("make the card whole again, or train with one --device"),
        fix: None,
        detects: &["mig-multi-gpu"],
    },
    Entry {
        id: "gpu.memory-errors",
        area: Area::Gpu,
        status: Status::Error,
        title: "The memory of a GPU has errors",
        cause: "numbers in that memory may be wrong, and the driver ends programs that meet them (Xid 48, \
                94, 95)",
        remedy: Some("reset the card; if the errors come again, have it replaced"),
        fix: None,
        detects: &["ecc-uncorrected"],
    },
    Entry {
        id: "gpu.power-brake",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is slowed by its power supply",
        cause: "the power supply or the board's controller asks the card to slow down, often to a quarter \
                of its speed",
        remedy: Some(
            "check the power supply, its cables to the card, and the events of the board's controller \
                (BMC)",
        ),
        fix: None,
        detects: &["throttle-power-brake"],
    },
    Entry {
        id: "gpu.hot",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is slowed by heat",
        cause: "a hot card lowers its clocks until it is cooler, and all ranks wait for the slowest",
        remedy: Some("clean the fans and let air through; a lower power limit (nvidia-smi -pl) helps too"),
        fix: None,
        detects: &["throttle-thermal"],
    },
    Entry {
        id: "gpu.power-cap",
        area: Area::Gpu,
        status: Status::Info,
        title: "A GPU may draw less power than usual",
        cause: "a lower limit costs speed under load; laptops set one on battery",
        remedy: Some("raise the limit, or plug the laptop in"),
        fix: None,
        detects: &["throttle-power-cap"],
    },
    Entry {
        id: "gpu.link-narrow",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU uses only a part of its PCIe link",
        cause: "images and gradients travel over this link; a narrow one makes the card wait, above all \
                with several GPUs",
        remedy: Some(
            "move the card to a full slot, replace the riser, or see the firmware's settings of the \
                slot (bifurcation)",
        ),
        fix: None,
        detects: &["pcie-link-degraded"],
    },
    Entry {
        id: "gpu.link-errors",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A PCIe link has errors",
        cause: "packets are sent again, which takes time; a link that gets worse loses its card",
        remedy: Some(
            "reseat the card, replace the riser or cable, or lower the slot's PCIe generation in the \
                firmware",
        ),
        fix: None,
        detects: &["pcie-aer-errors"],
    },
    Entry {
        id: "gpu.peer-redirected",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The IOMMU redirects what GPUs send to each other",
        cause: "with the IOMMU translating, or access control on PCIe bridges, direct traffic takes a detour that some mainboards lose: training hangs at its first exchange with all GPUs at 100 %",
        remedy: Some(
            "if a run hangs at its start, switch direct traffic off (slower), or add iommu=pt to the kernel's command line and restart",
        ),
        fix: None,
        detects: &["p2p-iommu-acs-hang"],
    },
    Entry {
        id: "gpu.peer-fault",
        area: Area::Gpu,
        status: Status::Warning,
        title: "These GPUs hang when they talk directly",
        cause: "reported for these cards, or this driver: the first exchange never ends",
        remedy: Some("switch direct traffic off (slower), or update the driver"),
        fix: None,
        detects: &["p2p-driver-bug", "p2p-blackwell-workstation"],
    },
    Entry {
        id: "gpu.peer-none",
        area: Area::Gpu,
        status: Status::Info,
        title: "GPUs talk through the machine's memory",
        cause: "cards of this kind offer no direct path over PCIe; NCCL says so and uses shared memory, which is normal",
        remedy: None,
        fix: None,
        detects: &["p2p-geforce-none"],
    },
];
