//! CUDA, cuDNN, NCCL and libtorch: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "libraries.libtorch",
        area: Area::Libraries,
        status: Status::Ok,
        title: "libtorch",
        cause: "the trainer computes with libtorch",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.libtorch-missing",
        area: Area::Libraries,
        status: Status::Info,
        title: "libtorch is not installed yet",
        cause: "the trainer computes with libtorch, which the first run fetches",
        remedy: Some("fetch it now, or let the first run do it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.libtorch-cpu",
        area: Area::Libraries,
        status: Status::Warning,
        title: "libtorch cannot use the GPUs",
        cause: "this libtorch was built without CUDA, so training runs on the processor, many times slower",
        remedy: Some(
            "name a libtorch 2.11 with CUDA, such as the `torch` folder of a Python environment, in LIBTORCH",
        ),
        fix: None,
        detects: &["libtorch-cpu-build"],
    },
    Entry {
        id: "libraries.cuda",
        area: Area::Libraries,
        status: Status::Ok,
        title: "The driver runs libtorch's CUDA",
        cause: "a driver runs the CUDA of its own generation and of older ones",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.driver-too-old",
        area: Area::Libraries,
        status: Status::Error,
        title: "The driver is too old for libtorch's CUDA",
        cause: "a driver runs no CUDA of a newer generation than its own: CUDA fails with `driver version is \
                insufficient`",
        remedy: Some("update the NVIDIA driver and restart"),
        fix: None,
        detects: &["driver-too-old-for-cuda"],
    },
    Entry {
        id: "libraries.driver-minor",
        area: Area::Libraries,
        status: Status::Info,
        title: "The driver is older than libtorch's CUDA, of the same generation",
        cause: "minor-version compatibility lets it run; only what is compiled on the card (PTX) or needs a \
                newer driver fails",
        remedy: Some("nothing for training; update the driver when it suits you"),
        fix: None,
        detects: &["driver-old-within-major"],
    },
    Entry {
        id: "libraries.kernels",
        area: Area::Libraries,
        status: Status::Ok,
        title: "libtorch has kernels for the GPUs",
        cause: "each build of libtorch is compiled for some compute capabilities",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.no-kernels",
        area: Area::Libraries,
        status: Status::Error,
        title: "libtorch has no kernels for a GPU",
        cause: "the first operation on that card fails with `no kernel image is available for execution on \
                the device`",
        remedy: Some("use a build of libtorch that serves the card"),
        fix: None,
        detects: &["arch-no-kernel-image", "arch-warning-sm86"],
    },
    Entry {
        id: "libraries.kernels-ptx",
        area: Area::Libraries,
        status: Status::Info,
        title: "A GPU runs libtorch through PTX",
        cause: "the card is newer than this libtorch: the driver compiles each kernel on its first use, which \
                takes minutes once, and keeps them in ~/.nv/ComputeCache",
        remedy: Some("let the first epoch take its time; later runs start at once"),
        fix: None,
        detects: &["arch-no-kernel-image"],
    },
    Entry {
        id: "libraries.no-common-build",
        area: Area::Libraries,
        status: Status::Warning,
        title: "No one build of libtorch serves all GPUs",
        cause: "all ranks of a run use one libtorch: the builds for the newer cards have no kernels for the \
                older one",
        remedy: Some("train on cards that one build serves, and leave the others out of --device"),
        fix: None,
        detects: &["multi-gpu-mixed-arch", "arch-no-kernel-image"],
    },
    Entry {
        id: "libraries.gpu-unserved",
        area: Area::Libraries,
        status: Status::Error,
        title: "No build of libtorch serves a GPU",
        cause: "libtorch 2.11 is compiled for compute capability 5.0 and later, and not for every small \
                embedded one between",
        remedy: Some("leave that card out of --device, or train with --device cpu"),
        fix: None,
        detects: &["arch-no-kernel-image"],
    },
];
