//! Driver and GPUs: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

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
        remedy: Some("see that the card is seated and powered, and that the container was given its GPUs"),
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
];
