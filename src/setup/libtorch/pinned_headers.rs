//! The pinned wheels whose headers the NCCL plugin is built with, without a GPU and without a CUDA
//! toolkit: NCCL's, which decides the layout of c10d's classes, and the headers of CUDA that c10d's
//! include. They fit the plugin for all CUDA variants, because it uses nothing of CUDA itself.

use super::pinned_wheels::{CUBLAS, CUDART, CUSOLVER, CUSPARSE, NCCL, PinnedWheel};

/// Headers of a CUDA wheel as its members.
macro_rules! headers {
    ($($name:literal),*) => {
        &[$((concat!("nvidia/cu13/include/", $name), concat!("include/", $name))),*]
    };
}
/// NCCL's version, which is that of libtorch.
pub(in crate::setup) const NCCL_VERSION: &str = NCCL.version;

/// All of them. The headers go to `include`.
pub(super) const NCCL_HEADERS: [&PinnedWheel; 7] = [
    &PinnedWheel {
        members: &[("nvidia/nccl/include/nccl.h", "include/nccl.h")],
        licenses: &[],
        packed: 6_412,
        unpacked: 25_657,
        ..NCCL
    },
    &PinnedWheel {
        members: headers![
            "builtin_types.h",
            "channel_descriptor.h",
            "cuComplex.h",
            "cuda.h",
            "cuda_bf16.h",
            "cuda_bf16.hpp",
            "cuda_device_runtime_api.h",
            "cuda_fp16.h",
            "cuda_fp16.hpp",
            "cuda_fp8.h",
            "cuda_fp8.hpp",
            "cuda_runtime.h",
            "cuda_runtime_api.h",
            "device_types.h",
            "driver_functions.h",
            "driver_types.h",
            "library_types.h",
            "surface_types.h",
            "texture_types.h",
            "vector_functions.h",
            "vector_functions.hpp",
            "vector_types.h"
        ],
        licenses: &[],
        packed: 477_613,
        unpacked: 2_997_548,
        ..CUDART
    },
    &PinnedWheel {
        members: headers!["cublasLt.h", "cublas_api.h", "cublas_v2.h"],
        licenses: &[],
        packed: 39_777,
        unpacked: 457_124,
        ..CUBLAS
    },
    &PinnedWheel {
        members: headers!["cusparse.h"],
        licenses: &[],
        packed: 16_875,
        unpacked: 296_819,
        ..CUSPARSE
    },
    &PinnedWheel {
        members: headers!["cusolverDn.h", "cusolver_common.h"],
        licenses: &[],
        packed: 11_167,
        unpacked: 154_343,
        ..CUSOLVER
    },
    &CRT,
    &CCCL,
];

const CRT: PinnedWheel = PinnedWheel {
    package: "nvidia-cuda-crt",
    version: "13.0.88",
    file: "nvidia_cuda_crt-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
    record_sha256: "689d1847121911088437dfce899d26daccdb29f0e46d21e04de5ba3a2f1871bb",
    members: headers!["crt/host_config.h", "crt/host_defines.h"],
    licenses: &[],
    packed: 5_949,
    unpacked: 22_578,
};

const CCCL: PinnedWheel = PinnedWheel {
    package: "nvidia-cuda-cccl",
    version: "13.0.85",
    file: "nvidia_cuda_cccl-13.0.85-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
    record_sha256: "7a0a2577268c4080833dbb7d7cde0949261e9b6eadac014a8409be1b885c9725",
    members: headers!["nv/target", "nv/detail/__preprocessor", "nv/detail/__target_macros"],
    licenses: &[],
    packed: 6_796,
    unpacked: 39_407,
};
