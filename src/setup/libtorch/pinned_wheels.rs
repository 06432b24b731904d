//! The pinned wheels of libtorch: names, members, hashes and sizes. A wheel's RECORD contains the SHA-256 of
//! every member, so pinning the hash of RECORD pins all members, whichever server delivers them. All
//! libraries go into one directory, because they look for each other in their own (`$ORIGIN`).

/// A wheel and the members to install.
#[derive(Debug)]
pub(super) struct PinnedWheel {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// The file name.
    pub(super) file: &'static str,
    /// SHA-256 of the whole wheel, in hexadecimal.
    pub(super) sha256: &'static str,
    /// SHA-256 of its RECORD.
    pub(super) record_sha256: &'static str,
    /// (member, path in the installation).
    pub(super) members: &'static [(&'static str, &'static str)],
    /// (member, path in the installation).
    pub(super) licenses: &'static [(&'static str, &'static str)],
    /// Bytes of the members in the wheel, without headers.
    pub(super) packed: u64,
    /// Bytes of the members on the disk, without headers.
    pub(super) unpacked: u64,
}

/// The CPU libraries of the CUDA 13.0 wheel. libtorch_cpu runs without a GPU, but needs two small CUDA
/// libraries to load.
pub(super) const CPU: [&PinnedWheel; 3] = [&TORCH_CPU, &CUPTI, &CUDART];

/// Everything that libtorch_cuda of the CUDA 13.0 wheel loads, at start or later: cusolver by
/// libtorch_cuda_linalg, cuDNN's own parts by libcudnn, nvrtc by libcaffe2_nvrtc and by cuDNN.
pub(super) const CU130: [&PinnedWheel; 15] = [
    &TORCH_CUDA,
    &CUBLAS,
    &CUPTI,
    &NVRTC,
    &CUDART,
    &CUDNN,
    &CUFFT,
    &CUFILE,
    &CURAND,
    &CUSOLVER,
    &CUSPARSE,
    &CUSPARSELT,
    &NCCL,
    &NVJITLINK,
    &NVSHMEM,
];

const TORCH_CPU: PinnedWheel = PinnedWheel {
    package: "torch",
    version: "2.11.0",
    file: "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    sha256: "0f68f4ac6d95d12e896c3b7a912b5871619542ec54d3649cf48cc1edd4dd2756",
    record_sha256: "64d76220aff1572ba2ee949e3c4e5633a21f7aa626c634ee1730609464777fc5",
    members: &[
        ("torch/lib/libtorch_cpu.so", "lib/libtorch_cpu.so"),
        ("torch/lib/libc10.so", "lib/libc10.so"),
        ("torch/lib/libgomp.so.1", "lib/libgomp.so.1"),
    ],
    licenses: &[
        ("torch-2.11.0.dist-info/licenses/LICENSE", "licenses/torch/LICENSE"),
        ("torch-2.11.0.dist-info/licenses/NOTICE", "licenses/torch/NOTICE"),
    ],
    packed: 121_208_472,
    unpacked: 452_962_107,
};

const TORCH_CUDA: PinnedWheel = PinnedWheel {
    members: &[
        ("torch/lib/libc10.so", "lib/libc10.so"),
        ("torch/lib/libc10_cuda.so", "lib/libc10_cuda.so"),
        ("torch/lib/libcaffe2_nvrtc.so", "lib/libcaffe2_nvrtc.so"),
        ("torch/lib/libgomp.so.1", "lib/libgomp.so.1"),
        ("torch/lib/libtorch_cpu.so", "lib/libtorch_cpu.so"),
        ("torch/lib/libtorch_cuda.so", "lib/libtorch_cuda.so"),
        ("torch/lib/libtorch_cuda_linalg.so", "lib/libtorch_cuda_linalg.so"),
        ("torch/lib/libtorch_nvshmem.so", "lib/libtorch_nvshmem.so"),
    ],
    packed: 482_993_951,
    unpacked: 967_297_368,
    ..TORCH_CPU
};

pub(super) const CUBLAS: PinnedWheel = PinnedWheel {
    package: "nvidia-cublas",
    version: "13.1.0.3",
    file: "nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl",
    sha256: "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171",
    record_sha256: "35a31bf9f5d4fa709c63a127c3b0651f3ccfec462c422cf8bf5d9e964301de59",
    members: &[
        ("nvidia/cu13/lib/libcublas.so.13", "lib/libcublas.so.13"),
        ("nvidia/cu13/lib/libcublasLt.so.13", "lib/libcublasLt.so.13"),
    ],
    licenses: &[(
        "nvidia_cublas-13.1.0.3.dist-info/licenses/License.txt",
        "licenses/nvidia-cublas/License.txt",
    )],
    packed: 422_853_974,
    unpacked: 595_773_576,
};

const CUPTI: PinnedWheel = PinnedWheel {
    package: "nvidia-cuda-cupti",
    version: "13.0.85",
    file: "nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl",
    sha256: "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
    record_sha256: "f8ae8ddce85f8e319abac90e956bf45a572e31f4ff01af2d634f37aa3d78e3eb",
    members: &[("nvidia/cu13/lib/libcupti.so.13", "lib/libcupti.so.13")],
    licenses: &[(
        "nvidia_cuda_cupti-13.0.85.dist-info/licenses/License.txt",
        "licenses/nvidia-cuda-cupti/License.txt",
    )],
    packed: 1_485_037,
    unpacked: 4_152_208,
};

const NVRTC: PinnedWheel = PinnedWheel {
    package: "nvidia-cuda-nvrtc",
    version: "13.0.88",
    file: "nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
    sha256: "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
    record_sha256: "c836d98d0eebc101713a79a8d2802f22dfe8b3f9118403d987470bc0b59c9e0b",
    members: &[
        ("nvidia/cu13/lib/libnvrtc-builtins.so.13.0", "lib/libnvrtc-builtins.so.13.0"),
        ("nvidia/cu13/lib/libnvrtc.so.13", "lib/libnvrtc.so.13"),
    ],
    licenses: &[(
        "nvidia_cuda_nvrtc-13.0.88.dist-info/licenses/License.txt",
        "licenses/nvidia-cuda-nvrtc/License.txt",
    )],
    packed: 45_077_074,
    unpacked: 113_718_680,
};

pub(super) const CUDART: PinnedWheel = PinnedWheel {
    package: "nvidia-cuda-runtime",
    version: "13.0.96",
    file: "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    record_sha256: "34c7a65651597fd8a376b049b69bb26db399a9ea443a7a142ccd34f5a10f79c4",
    members: &[("nvidia/cu13/lib/libcudart.so.13", "lib/libcudart.so.13")],
    licenses: &[(
        "nvidia_cuda_runtime-13.0.96.dist-info/licenses/License.txt",
        "licenses/nvidia-cuda-runtime/License.txt",
    )],
    packed: 203_707,
    unpacked: 704_288,
};

const CUDNN: PinnedWheel = PinnedWheel {
    package: "nvidia-cudnn-cu13",
    version: "9.19.0.56",
    file: "nvidia_cudnn_cu13-9.19.0.56-py3-none-manylinux_2_27_x86_64.whl",
    sha256: "d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf",
    record_sha256: "f3d7140798fccda99fb75841ff41c5dd88de4bc6bd5bffb49200c9b7bf791ca8",
    members: &[
        ("nvidia/cudnn/lib/libcudnn.so.9", "lib/libcudnn.so.9"),
        ("nvidia/cudnn/lib/libcudnn_adv.so.9", "lib/libcudnn_adv.so.9"),
        ("nvidia/cudnn/lib/libcudnn_cnn.so.9", "lib/libcudnn_cnn.so.9"),
        ("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9", "lib/libcudnn_engines_precompiled.so.9"),
        (
            "nvidia/cudnn/lib/libcudnn_engines_runtime_compiled.so.9",
            "lib/libcudnn_engines_runtime_compiled.so.9",
        ),
        ("nvidia/cudnn/lib/libcudnn_graph.so.9", "lib/libcudnn_graph.so.9"),
        ("nvidia/cudnn/lib/libcudnn_heuristic.so.9", "lib/libcudnn_heuristic.so.9"),
        ("nvidia/cudnn/lib/libcudnn_ops.so.9", "lib/libcudnn_ops.so.9"),
    ],
    licenses: &[(
        "nvidia_cudnn_cu13-9.19.0.56.dist-info/licenses/License.txt",
        "licenses/nvidia-cudnn-cu13/License.txt",
    )],
    packed: 365_982_998,
    unpacked: 493_410_224,
};

const CUFFT: PinnedWheel = PinnedWheel {
    package: "nvidia-cufft",
    version: "12.0.0.61",
    file: "nvidia_cufft-12.0.0.61-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3",
    record_sha256: "50d86a39c8b16aaedabf82f2e54418ecd00435467f47bdcc12f08b3f00c5dcb4",
    members: &[("nvidia/cu13/lib/libcufft.so.12", "lib/libcufft.so.12")],
    licenses: &[(
        "nvidia_cufft-12.0.0.61.dist-info/licenses/License.txt",
        "licenses/nvidia-cufft/License.txt",
    )],
    packed: 213_725_357,
    unpacked: 286_542_352,
};

const CUFILE: PinnedWheel = PinnedWheel {
    package: "nvidia-cufile",
    version: "1.15.1.6",
    file: "nvidia_cufile-1.15.1.6-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44",
    record_sha256: "71e64aad4a5cac9a56b737d732caa43c0ebc36e4e5ac4f63b523f45ab50285d6",
    members: &[("nvidia/cu13/lib/libcufile.so.0", "lib/libcufile.so.0")],
    licenses: &[(
        "nvidia_cufile-1.15.1.6.dist-info/licenses/License.txt",
        "licenses/nvidia-cufile/License.txt",
    )],
    packed: 1_183_207,
    unpacked: 3_170_800,
};

const CURAND: PinnedWheel = PinnedWheel {
    package: "nvidia-curand",
    version: "10.4.0.35",
    file: "nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_x86_64.whl",
    sha256: "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc",
    record_sha256: "a4340ab778f30ac2b39e95dd8447a6d79925287d312442c102dac6e2105dc025",
    members: &[("nvidia/cu13/lib/libcurand.so.10", "lib/libcurand.so.10")],
    licenses: &[(
        "nvidia_curand-10.4.0.35.dist-info/licenses/License.txt",
        "licenses/nvidia-curand/License.txt",
    )],
    packed: 59_033_800,
    unpacked: 132_698_328,
};

pub(super) const CUSOLVER: PinnedWheel = PinnedWheel {
    package: "nvidia-cusolver",
    version: "12.0.4.66",
    file: "nvidia_cusolver-12.0.4.66-py3-none-manylinux_2_27_x86_64.whl",
    sha256: "0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112",
    record_sha256: "2b13143036698247ffae6687e0645d1b903cef6d6851c04bc3f45536f918cb92",
    members: &[("nvidia/cu13/lib/libcusolver.so.12", "lib/libcusolver.so.12")],
    licenses: &[(
        "nvidia_cusolver-12.0.4.66.dist-info/licenses/License.txt",
        "licenses/nvidia-cusolver/License.txt",
    )],
    packed: 121_286_843,
    unpacked: 141_152_872,
};

pub(super) const CUSPARSE: PinnedWheel = PinnedWheel {
    package: "nvidia-cusparse",
    version: "12.6.3.3",
    file: "nvidia_cusparse-12.6.3.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b",
    record_sha256: "1bc905cfcd5b254d22a6866884cd7280da178e2bf7971dcfef65dd6c11c72dfd",
    members: &[("nvidia/cu13/lib/libcusparse.so.12", "lib/libcusparse.so.12")],
    licenses: &[(
        "nvidia_cusparse-12.6.3.3.dist-info/licenses/License.txt",
        "licenses/nvidia-cusparse/License.txt",
    )],
    packed: 145_908_273,
    unpacked: 162_565_256,
};

const CUSPARSELT: PinnedWheel = PinnedWheel {
    package: "nvidia-cusparselt-cu13",
    version: "0.8.0",
    file: "nvidia_cusparselt_cu13-0.8.0-py3-none-manylinux2014_x86_64.whl",
    sha256: "25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd",
    record_sha256: "43278a3f845551894a9cf1381e29b7c5b845aa1eae0b14bb4f8338c470c042ff",
    members: &[("nvidia/cusparselt/lib/libcusparseLt.so.0", "lib/libcusparseLt.so.0")],
    licenses: &[("nvidia/cusparselt/LICENSE.txt", "licenses/nvidia-cusparselt-cu13/LICENSE.txt")],
    packed: 169_871_193,
    unpacked: 233_613_145,
};

pub(super) const NCCL: PinnedWheel = PinnedWheel {
    package: "nvidia-nccl-cu13",
    version: "2.28.9",
    file: "nvidia_nccl_cu13-2.28.9-py3-none-manylinux_2_18_x86_64.whl",
    sha256: "e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42",
    record_sha256: "354815308954b2fd5ffcfe2fc264ed611ee91912cadbab28632d10424988f4bb",
    members: &[("nvidia/nccl/lib/libnccl.so.2", "lib/libnccl.so.2")],
    licenses: &[(
        "nvidia_nccl_cu13-2.28.9.dist-info/licenses/License.txt",
        "licenses/nvidia-nccl-cu13/License.txt",
    )],
    packed: 196_416_213,
    unpacked: 217_995_896,
};

const NVJITLINK: PinnedWheel = PinnedWheel {
    package: "nvidia-nvjitlink",
    version: "13.0.88",
    file: "nvidia_nvjitlink-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
    sha256: "13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b",
    record_sha256: "8deabe93d94e96f22180365bcd7c5a39c30c41e97d3cd7f9bb375cd1460eddfa",
    members: &[("nvidia/cu13/lib/libnvJitLink.so.13", "lib/libnvJitLink.so.13")],
    licenses: &[(
        "nvidia_nvjitlink-13.0.88.dist-info/licenses/License.txt",
        "licenses/nvidia-nvjitlink/License.txt",
    )],
    packed: 40_693_857,
    unpacked: 98_806_736,
};

const NVSHMEM: PinnedWheel = PinnedWheel {
    package: "nvidia-nvshmem-cu13",
    version: "3.4.5",
    file: "nvidia_nvshmem_cu13-3.4.5-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80",
    record_sha256: "b6aa8392b88088391e5b1ce756ca95d02035d25c26ea070f65794b24cb095fd7",
    members: &[("nvidia/nvshmem/lib/libnvshmem_host.so.3", "lib/libnvshmem_host.so.3")],
    licenses: &[(
        "nvidia_nvshmem_cu13-3.4.5.dist-info/licenses/License.txt",
        "licenses/nvidia-nvshmem-cu13/License.txt",
    )],
    packed: 37_444_092,
    unpacked: 41_241_312,
};
