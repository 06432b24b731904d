//! A wheel, pinned or not: which of its members are installed, where, and what is known of its bytes.

use super::installation::LIBTORCH_VERSION;
use super::pinned_wheels::PinnedWheel;
use super::variant::Variant;
use crate::fetch::MemberPattern;

/// The headers' directory in the wheel and in the installation.
const HEADERS: (&str, &str) = ("torch/include", "include");

/// Headers of the pinned wheel: bytes to download, and on the disk.
pub(super) const HEADERS_SIZE: (u64, u64) = (9_700_000, 38_800_000);

/// Where RECORD files are kept during the installation.
pub(super) const RECORDS: &str = "records";

/// Where METADATA is kept during the installation.
pub(super) const METADATA: &str = "records/metadata";

/// The estimate for a CUDA variant whose sizes are not known in advance. CUDA libraries have about 5 GB,
/// the CPU variant half a gigabyte.
pub(super) const UNKNOWN_CUDA: u64 = 6 << 30;
/// The estimate for the CPU variant.
pub(super) const UNKNOWN_CPU: u64 = 600 << 20;

/// A wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wheel {
    pub(super) package: String,
    pub(super) version: String,
    /// The file name, if known in advance.
    pub(super) file: Option<String>,
    /// The SHA-256 of the whole wheel in hexadecimal, if pinned.
    pub(super) sha256: Option<String>,
    /// The SHA-256 of its RECORD, if pinned.
    pub(super) record_sha256: Option<String>,
    members: Members,
    /// Bytes to download without headers, and on the disk, if known.
    pub(super) size: Option<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Members {
    /// Named one by one: (member, path in the installation).
    Named(Vec<(String, String)>),
    /// All libraries in torch/lib, or of an NVIDIA package.
    Libraries,
}

impl From<&PinnedWheel> for Wheel {
    fn from(pin: &PinnedWheel) -> Self {
        let all = pin.members.iter().chain(pin.licenses);
        let members = all.map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        Self {
            package: pin.package.to_owned(),
            version: pin.version.to_owned(),
            file: Some(pin.file.to_owned()),
            sha256: Some(pin.sha256.to_owned()),
            record_sha256: Some(pin.record_sha256.to_owned()),
            members: Members::Named(members),
            size: Some((pin.packed, pin.unpacked)),
        }
    }
}

impl Wheel {
    /// PyTorch's build of a variant, which is not the wheel on package indexes.
    pub(super) fn of_pytorch(variant: Variant) -> Self {
        let version = format!("{LIBTORCH_VERSION}+{}", variant.name());
        let file = format!("torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl");
        Self { file: Some(file), ..Self::unseen("torch", &version) }
    }

    /// A wheel of which only name and version are known.
    pub(super) fn unseen(package: &str, version: &str) -> Self {
        Self {
            package: package.to_owned(),
            version: version.to_owned(),
            file: None,
            sha256: None,
            record_sha256: None,
            members: Members::Libraries,
            size: None,
        }
    }

    /// `torch==2.11.0`.
    pub(super) fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }

    /// `torch 2.11.0`, for messages.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.package, self.version)
    }

    /// Whether a file name is this wheel's, for this platform.
    pub(super) fn is_named(&self, file: &str) -> bool {
        match &self.file {
            Some(known) => known == file,
            None => {
                let start = format!("{}-{}-", self.distribution(), self.version);
                file.starts_with(&start) && file.ends_with("x86_64.whl") && file.contains("manylinux")
            }
        }
    }

    /// Whether it is the torch wheel, which has the headers.
    pub(super) fn is_torch(&self) -> bool {
        self.package == "torch"
    }

    /// Whether it requires other wheels that only its METADATA names.
    pub(super) fn names_others(&self) -> bool {
        self.is_torch() && self.members == Members::Libraries && !self.version.ends_with("+cpu")
    }

    /// The package name as written in file names.
    fn distribution(&self) -> String {
        self.package.replace(['-', '.'], "_")
    }

    fn info(&self) -> String {
        format!("{}-{}.dist-info", self.distribution(), self.version)
    }

    /// Where RECORD is kept while members are verified.
    pub(super) fn record_place(&self) -> String {
        format!("{RECORDS}/{}", self.package)
    }

    /// All members to install, and RECORD.
    pub(super) fn patterns(&self, headers: bool) -> Vec<MemberPattern> {
        let info = self.info();
        let mut patterns: Vec<MemberPattern> = match &self.members {
            Members::Named(members) => {
                members.iter().map(|(from, to)| MemberPattern::file(from, to)).collect()
            }
            Members::Libraries if self.is_torch() => vec![
                MemberPattern::libraries("torch/lib", "lib"),
                MemberPattern::tree(&format!("{info}/licenses"), "licenses/torch"),
            ],
            Members::Libraries => vec![
                MemberPattern::libraries("nvidia/*/lib", "lib").optional(),
                MemberPattern::tree(&info, format!("licenses/{}", self.package))
                    .only(&["icense", "ICENSE", "NOTICE"])
                    .optional(),
            ],
        };
        patterns.push(MemberPattern::file(format!("{info}/RECORD"), self.record_place()));
        if headers && self.is_torch() {
            patterns.push(MemberPattern::tree(HEADERS.0, HEADERS.1));
        }
        patterns
    }

    /// Its METADATA only.
    pub(super) fn metadata_pattern(&self) -> MemberPattern {
        MemberPattern::file(format!("{}/METADATA", self.info()), METADATA)
    }

    /// The same wheel with other hashes.
    #[cfg(test)]
    pub(super) fn with_pins(mut self, sha256: &str, record_sha256: &str) -> Self {
        self.sha256 = Some(sha256.to_owned());
        self.record_sha256 = Some(record_sha256.to_owned());
        self
    }
}

/// The NVIDIA wheels that a METADATA requires on Linux: `Requires-Dist: nvidia-cublas-cu12==12.6.4.1; …`.
pub(super) fn requirements(metadata: &str) -> Vec<Wheel> {
    let lines = metadata.lines().take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| {
            let requirement = line.strip_prefix("Requires-Dist:")?.trim();
            let (requirement, marker) = requirement.split_once(';').unwrap_or((requirement, ""));
            let on_linux =
                !marker.contains("extra") && !marker.contains("win32") && !marker.contains("darwin");
            let (package, version) = requirement.split_once("==")?;
            let plain = !version.contains(['*', ',']) && package.trim().starts_with("nvidia-");
            (on_linux && plain).then(|| Wheel::unseen(package.trim(), version.trim()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_wheels_are_read_from_metadata() {
        let text = "Metadata-Version: 2.1\nName: torch\n\
            Requires-Dist: filelock\n\
            Requires-Dist: nvidia-cublas-cu12==12.6.4.1; platform_system == \"Linux\"\n\
            Requires-Dist: nvidia-nccl-cu12 == 2.28.9 ; platform_system == \"Linux\" and platform_machine == \"x86_64\"\n\
            Requires-Dist: nvidia-other==1.0; extra == \"opt\"\n\
            Requires-Dist: triton==3.6.0; platform_system == \"Linux\"\n\n\
            Requires-Dist: nvidia-prose==1\n";
        let found: Vec<String> = requirements(text).iter().map(Wheel::requirement).collect();
        assert_eq!(found, ["nvidia-cublas-cu12==12.6.4.1", "nvidia-nccl-cu12==2.28.9"]);
    }

    #[test]
    fn a_wheel_without_a_known_name_is_recognised_by_package_version_and_platform() {
        let wheel = Wheel::unseen("nvidia-cublas-cu12", "12.6.4.1");
        assert!(
            wheel.is_named(
                "nvidia_cublas_cu12-12.6.4.1-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
            )
        );
        for other in [
            "nvidia_cublas_cu12-12.6.4.1-py3-none-manylinux2014_aarch64.whl",
            "nvidia_cublas_cu12-12.6.4.1-py3-none-win_amd64.whl",
            "nvidia_cublas_cu12-12.6.4.10-py3-none-manylinux2014_x86_64.whl",
        ] {
            assert!(!wheel.is_named(other), "{other}");
        }
    }
}
