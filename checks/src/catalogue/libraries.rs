//! Catalogue entries about CUDA, cuDNN, NCCL and libtorch.

use super::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "libraries.libtorch",
        area: Area::Libraries,
        status: Status::Ok,
        title: "libtorch is installed",
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
        cause: "the trainer computes with libtorch, which the first run downloads",
        remedy: Some("download it now, or let the first run do it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.libtorch-cpu",
        area: Area::Libraries,
        status: Status::Warning,
        title: "libtorch cannot use the GPUs",
        cause: "this libtorch was built without CUDA, so training runs on the CPU, many times slower",
        remedy: Some(
            "set LIBTORCH to a libtorch 2.11 with CUDA, such as the `torch` folder of a Python \
                environment",
        ),
        fix: None,
        detects: &["libtorch-cpu-build"],
    },
    Entry {
        id: "libraries.cuda",
        area: Area::Libraries,
        status: Status::Ok,
        title: "The driver supports libtorch's CUDA version",
        cause: "a driver runs every CUDA release of its own major version and of older ones",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.driver-too-old",
        area: Area::Libraries,
        status: Status::Error,
        title: "The driver is too old for libtorch's CUDA version",
        cause: "a driver cannot run a newer CUDA major version than its own: CUDA fails with `driver version \
                is insufficient`",
        remedy: Some("update the NVIDIA driver and restart"),
        fix: None,
        detects: &["driver-too-old-for-cuda"],
    },
    Entry {
        id: "libraries.driver-minor",
        area: Area::Libraries,
        status: Status::Info,
        title: "The driver is older than libtorch's CUDA version, but compatible",
        cause: "both have the same CUDA major version, within which a driver also runs builds for later minor \
                versions: nothing needs to be done for training",
        remedy: None,
        fix: None,
        detects: &["driver-old-within-major"],
    },
    Entry {
        id: "libraries.kernels",
        area: Area::Libraries,
        status: Status::Ok,
        title: "libtorch has kernels for the GPUs",
        cause: "each build of libtorch is compiled for certain compute capabilities",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.no-kernels",
        area: Area::Libraries,
        status: Status::Error,
        title: "libtorch has no kernels for a GPU",
        cause: "the first operation on the GPU fails with `no kernel image is available for execution on \
                the device`",
        remedy: Some("use a build of libtorch that supports the GPU"),
        fix: None,
        detects: &["arch-no-kernel-image", "arch-warning-sm86", "cuda126-builds-end"],
    },
    Entry {
        id: "libraries.kernels-ptx",
        area: Area::Libraries,
        status: Status::Info,
        title: "libtorch's kernels must be compiled for a GPU first",
        cause: "the GPU is newer than this libtorch: the driver compiles each kernel from PTX on first \
                use, which takes several minutes once, and caches it in ~/.nv/ComputeCache",
        remedy: Some("wait during the first epoch; later runs start immediately"),
        fix: None,
        detects: &["arch-no-kernel-image"],
    },
    Entry {
        id: "libraries.no-common-build",
        area: Area::Libraries,
        status: Status::Warning,
        title: "No build of libtorch supports all GPUs",
        cause: "all ranks of a run use the same libtorch, and no build has kernels for both the older and \
                the newer GPUs",
        remedy: Some("train on GPUs that one build supports, and exclude the others from --device"),
        fix: None,
        detects: &["multi-gpu-mixed-arch", "arch-no-kernel-image"],
    },
    Entry {
        id: "libraries.gpu-unserved",
        area: Area::Libraries,
        status: Status::Error,
        title: "No build of libtorch supports one of the GPUs",
        cause: "libtorch 2.11 has kernels for compute capability 5.0 and later, except for some embedded \
                GPUs",
        remedy: Some("exclude that GPU from --device, or train with --device cpu"),
        fix: None,
        detects: &["arch-no-kernel-image"],
    },
    Entry {
        id: "libraries.foreign-nccl",
        area: Area::Libraries,
        status: Status::Error,
        title: "The loader finds an NCCL that does not suit libtorch",
        cause: "libtorch needs the NCCL version that it was built with, or a newer one; with an older one it fails \
                with \"undefined symbol: nccl…\"",
        remedy: Some(
            "remove that library's folder from LD_LIBRARY_PATH, or unset the variable, also where a profile such as ~/.bashrc \
             sets it",
        ),
        fix: None,
        detects: &["nccl-ldpath-conflict", "nccl-225-rtx50", "nccl-231-destroy-after-abort"],
    },
    Entry {
        id: "libraries.foreign-libstdcxx",
        area: Area::Libraries,
        status: Status::Warning,
        title: "An older C++ library comes first",
        cause: "libtorch and yolo load the C++ library that the loader finds first; an older one lacks versions of symbols that \
                they need (`GLIBCXX_3.4.30 not found`)",
        remedy: Some(
            "remove that folder or file from the variable, also where a profile such as ~/.bashrc sets it",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.old-runtime",
        area: Area::Libraries,
        status: Status::Error,
        title: "An old OpenMP runtime or libgcc comes first",
        cause: "libtorch and yolo load the OpenMP runtime (libgomp) and libgcc that the loader finds first; an old one lacks \
                versions of symbols that they need (`GOMP_4.0 not found`)",
        remedy: Some(
            "remove that folder or file from the variable, also where a profile such as ~/.bashrc sets it",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.foreign-cudnn",
        area: Area::Libraries,
        status: Status::Error,
        title: "The loader finds a cuDNN other than libtorch's own",
        cause: "cuDNN consists of several libraries that must have the same version; otherwise it fails \
                with \"Could not load library libcudnn…\" or CUDNN_STATUS_…",
        remedy: Some(
            "remove that library's folder from LD_LIBRARY_PATH, or unset the variable, also where a profile such as ~/.bashrc \
             sets it",
        ),
        fix: None,
        detects: &["cudnn-ldpath-conflict"],
    },
    Entry {
        id: "libraries.foreign-cuda",
        area: Area::Libraries,
        status: Status::Error,
        title: "The loader finds an older CUDA library than libtorch's own",
        cause: "libraries of CUDA call functions of each other that an older release lacks; libtorch then does not load, \
                with \"undefined symbol: __nvJitLink…\" or \"cublasLt…\", or stops with CUBLAS_STATUS_INVALID_VALUE",
        remedy: Some(
            "remove that library's folder from LD_LIBRARY_PATH, or unset the variable, also where a profile such as ~/.bashrc \
             sets it",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.libtorch-version",
        area: Area::Libraries,
        status: Status::Error,
        title: "libtorch has an unsupported version",
        cause: "the trainer works with exactly one version of libtorch; others have a different API, and before 2.7 even a \
            different C++ ABI",
        remedy: Some("let yolo download its own libtorch"),
        fix: None,
        detects: &["tch-version-mismatch", "libtorch-cxx11-abi"],
    },
    Entry {
        id: "libraries.libtorch-named",
        area: Area::Libraries,
        status: Status::Error,
        title: "LIBTORCH does not point to libtorch",
        cause: "LIBTORCH takes precedence over the libtorch that yolo downloads, and must name the folder \
                that contains `lib`",
        remedy: Some(
            "set it to the folder that contains libtorch's `lib`, or unset it and let yolo \
                download its own",
        ),
        fix: None,
        detects: &["ld-torch-not-found", "libtorch-so-not-found"],
    },
    Entry {
        id: "libraries.libtorch-incomplete",
        area: Area::Libraries,
        status: Status::Error,
        title: "libtorch is incomplete",
        cause: "the trainer does not start without these libraries: it fails with `cannot open shared \
                object file`, or on Windows with 0xC0000135",
        remedy: Some("download libtorch again, or set LIBTORCH to a complete one"),
        fix: None,
        detects: &["libtorch-so-not-found", "win-torch-dll-not-found"],
    },
    Entry {
        id: "libraries.libgomp-missing",
        area: Area::Libraries,
        status: Status::Error,
        title: "The OpenMP runtime is missing",
        cause: "libtorch needs libgomp.so.1, which minimal containers do not include",
        remedy: Some("install your distribution's libgomp package"),
        fix: None,
        detects: &["libgomp-missing"],
    },
    Entry {
        id: "libraries.bundled-glibc",
        area: Area::Libraries,
        status: Status::Warning,
        title: "libtorch contains parts of the C library",
        cause: "the C library must come from the system: the trainer may fail with `version GLIBC_PRIVATE \
                not found`",
        remedy: Some("move those files to a folder that the loader does not search"),
        fix: None,
        detects: &["libtorch-bundled-librt"],
    },
    Entry {
        id: "libraries.debug-build",
        area: Area::Libraries,
        status: Status::Error,
        title: "This libtorch is a debug build",
        cause: "a debug libtorch in a release program fails with an access violation at startup",
        remedy: Some("use the release build"),
        fix: None,
        detects: &["win-debug-release-abi"],
    },
    Entry {
        id: "libraries.no-room",
        area: Area::Libraries,
        status: Status::Warning,
        title: "There may not be enough space for libtorch",
        cause: "a libtorch with CUDA needs up to 8 GB while it is unpacked",
        remedy: Some("free some space there, or keep yolo's files on another disk"),
        fix: None,
        detects: &["libtorch-size-disk"],
    },
    Entry {
        id: "libraries.glibc",
        area: Area::Libraries,
        status: Status::Ok,
        title: "The C library is new enough",
        cause: "libtorch needs glibc 2.28 or later",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.glibc-old",
        area: Area::Libraries,
        status: Status::Error,
        title: "The C library is too old for libtorch",
        cause: "libtorch 2.11 needs glibc 2.28: with an older version the loader fails with `version \
                GLIBC_2.28 not found`",
        remedy: Some(
            "use a newer system, such as Ubuntu 20.04, Debian 10, RHEL 8 or later, or a container \
                of one",
        ),
        fix: None,
        detects: &["glibc-too-old", "libtorch-zip-glibc-floor"],
    },
    Entry {
        id: "libraries.executable-stack",
        area: Area::Libraries,
        status: Status::Error,
        title: "A library asks for an executable stack",
        cause: "glibc 2.41 and later do not load a library that asks for an executable stack: \
                `cannot enable executable stack as shared object requires`; some builds of libtorch for conda \
                ask for one, although they do not need it",
        remedy: Some(
            "unset the variable that names the library, so that yolo uses its own; to try whether the library \
             works otherwise, set GLIBC_TUNABLES=glibc.rtld.execstack=2 for one run",
        ),
        fix: None,
        detects: &["library-executable-stack"],
    },
    Entry {
        id: "libraries.noexec",
        area: Area::Libraries,
        status: Status::Error,
        title: "libtorch is on a disk that is mounted noexec",
        cause: "a file system that is mounted noexec lets nothing be loaded from it, whatever the permissions: the \
                loader fails with `failed to map segment from shared object`, and programs with `Permission denied`",
        remedy: Some(
            "set YOLO_HOME to a folder on another file system, without noexec, and run `yolo setup`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.musl",
        area: Area::Libraries,
        status: Status::Error,
        title: "The C library is musl",
        cause: "libtorch is not available for musl, the C library of Alpine Linux",
        remedy: Some("use a system or container with glibc, such as debian or ubuntu"),
        fix: None,
        detects: &["musl-unsupported"],
    },
    Entry {
        id: "libraries.libcuda-missing",
        area: Area::Libraries,
        status: Status::Error,
        title: "The driver's libcuda is missing",
        cause: "CUDA calls the driver through libcuda.so.1, which some packages and containers do not \
                include",
        remedy: Some("install the driver's compute libraries"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.libcuda-stub",
        area: Area::Libraries,
        status: Status::Error,
        title: "The loader finds the wrong libcuda",
        cause: "only the running driver's libcuda works: the toolkit's stub fails with `CUDA driver is a \
                stub library`, and that of cuda-compat with `forward compatibility was attempted on non \
                supported HW`",
        remedy: Some(
            "remove that library's folder from LD_LIBRARY_PATH or /etc/ld.so.conf.d, then run `sudo \
                ldconfig`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "libraries.build-variables",
        area: Area::Libraries,
        status: Status::Warning,
        title: "TORCH_CUDA_VERSION is invalid",
        cause: "a build from source reads TORCH_CUDA_VERSION, for example cu130, and falls back to a CPU-only libtorch if \
            the value is invalid; an installed yolo does not read it",
        remedy: Some("set it to the name of a build, such as cu130, or unset it"),
        fix: None,
        detects: &["env-swapped-vars"],
    },
];
