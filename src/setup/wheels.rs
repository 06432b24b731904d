//! The wheels that libtorch comes from, as pinned data: names, members, hashes.
//! A wheel's RECORD holds the SHA-256 of each member, so that one pinned hash of it pins all that we
//! take; where that hash is the pinned one, it does not matter who served the bytes.

use crate::fetch::Pick;

/// One wheel and what is taken from it.
#[derive(Debug)]
pub(super) struct Wheel {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// The file's name, by which a mirror serves it.
    pub(super) file: &'static str,
    /// SHA-256 of the whole wheel, in hexadecimal.
    pub(super) sha256: &'static str,
    /// SHA-256 of its RECORD.
    pub(super) record_sha256: &'static str,
    /// (member, place below the root), beside the licences.
    members: &'static [(&'static str, &'static str)],
    /// (member of the dist-info folder, place below the root).
    licences: &'static [(&'static str, &'static str)],
}

/// Headers in the archive and below the root.
const HEADERS: (&str, &str) = ("torch/include", "include");

/// Where a wheel's RECORD lies while it is installed.
pub(super) const RECORDS: &str = "records";

/// The CPU libraries out of the CUDA 13.0 wheel: libtorch_cpu runs without a GPU, and needs the two
/// small CUDA libraries to load (libtorch-c10d.md, "CPU-only libtorch out of the PyPI wheel").
pub(super) const CPU: [Wheel; 3] = [
    Wheel {
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
        licences: &[
            ("licenses/LICENSE", "licenses/torch/LICENSE"),
            ("licenses/NOTICE", "licenses/torch/NOTICE"),
        ],
    },
    Wheel {
        package: "nvidia-cuda-cupti",
        version: "13.0.85",
        file: "nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl",
        sha256: "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
        record_sha256: "f8ae8ddce85f8e319abac90e956bf45a572e31f4ff01af2d634f37aa3d78e3eb",
        members: &[("nvidia/cu13/lib/libcupti.so.13", "lib/libcupti.so.13")],
        licences: &[("licenses/License.txt", "licenses/nvidia-cuda-cupti/License.txt")],
    },
    Wheel {
        package: "nvidia-cuda-runtime",
        version: "13.0.96",
        file: "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        record_sha256: "34c7a65651597fd8a376b049b69bb26db399a9ea443a7a142ccd34f5a10f79c4",
        members: &[("nvidia/cu13/lib/libcudart.so.13", "lib/libcudart.so.13")],
        licences: &[("licenses/License.txt", "licenses/nvidia-cuda-runtime/License.txt")],
    },
];

/// PyTorch's own CPU build: another wheel than the one on package indexes, whole in itself.
pub(super) const CPU_OF_PYTORCH: Wheel = Wheel {
    package: "torch",
    version: "2.11.0+cpu",
    file: "torch-2.11.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    // Not seen yet: checked against the index's hash when streamed, else it rests on TLS.
    sha256: "",
    record_sha256: "",
    members: &[("torch/lib/", "lib")],
    licences: &[("licenses/", "licenses/torch")],
};

/// Bytes on the disk of the pinned members with headers, for a server that tells no sizes before.
pub(super) const UNPACKED: u64 = 500 << 20;

impl Wheel {
    /// `torch==2.11.0`.
    pub(super) fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }

    /// The same members with other hashes.
    #[cfg(test)]
    pub(super) fn with_pins(&self, sha256: &'static str, record_sha256: &'static str) -> Self {
        Self { sha256, record_sha256, ..*self }
    }

    /// Where RECORD is put while members are checked against it.
    pub(super) fn record_place(&self) -> String {
        format!("{RECORDS}/{}", self.package)
    }

    /// Everything to take, RECORD too.
    pub(super) fn picks(&self, headers: bool) -> Vec<Pick> {
        let info = format!("{}-{}.dist-info", self.package.replace('-', "_"), self.version);
        let pick = |from: String, to: &str| {
            if from.ends_with('/') { Pick::tree(&from, to) } else { Pick::file(from, to) }
        };
        let members = self.members.iter().map(|(from, to)| pick((*from).to_owned(), to));
        let licences = self.licences.iter().map(|(from, to)| pick(format!("{info}/{from}"), to));
        let mut picks: Vec<Pick> = members.chain(licences).collect();
        picks.push(Pick::file(format!("{info}/RECORD"), self.record_place()));
        if headers && self.package == "torch" {
            picks.push(Pick::tree(HEADERS.0, HEADERS.1));
        }
        picks
    }
}
