//! Which GPUs a run may use: those that exist, that a variable or a mode leaves to it, and what others hold of them.

use crate::catalogue::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
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
        id: "gpu.hidden",
        area: Area::Gpu,
        status: Status::Info,
        title: "CUDA_VISIBLE_DEVICES hides GPUs",
        cause: "yolo numbers GPUs as nvidia-smi does and uses only those that the variable lists; for other \
                programs in this shell, the listed GPUs are numbered from 0",
        remedy: Some(
            "use GPUs that the variable lists, or unset it; in a batch job leave it as it is, because the others belong to \
             other jobs",
        ),
        fix: Some(Fix {
            does: "if the variable hides all GPUs and no batch system has set it, unset it in yolo's variables file, which you then \
                   source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["cvd-remap"],
    },
    Entry {
        id: "gpu.job-unknown",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A shell in a batch job does not know which GPUs the job has",
        cause: "without the variables of the job, a program uses all GPUs that it sees, and collides with the jobs to which the others \
                belong: out of memory, or `CUDA-capable device(s) is/are busy or unavailable`",
        remedy: Some("start the run so that it gets the variables of the job, such as CUDA_VISIBLE_DEVICES"),
        fix: None,
        detects: &[],
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
            "split the batch in proportion to the cards with --batch-split auto; a short run shows whether the faster cards \
            alone finish sooner",
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
];
