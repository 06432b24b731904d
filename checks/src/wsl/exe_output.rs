//! Parsers of the output of `wsl.exe`, in any language. It writes UTF-16 without a mark to pipes unless
//! `WSL_UTF8=1` is set, which older releases ignore, and translates its labels, so no parser here
//! relies on a label. Numbers are found by form and place, and failures by the codes and links that
//! every translation keeps.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The text of an output in any encoding, with plain line ends.
pub fn decode(bytes: &[u8]) -> String {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    let text = match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        // UTF-16 has a zero byte in every line end; text in UTF-8 has none.
        _ if bytes.contains(&0) => utf16(bytes, u16::from_le_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    // Some releases end lines with two carriage returns.
    text.replace(['\r', '\0'], "")
}

/// A version such as 2.6.1 or 10.0.22631.4317; missing parts are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub [u32; 4]);

impl Version {
    /// From the digits and dots at the start of a text, at least two parts.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let parts: Vec<u32> = text[..end].split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        if !(2..=4).contains(&parts.len()) {
            return None;
        }
        let mut version = [0; 4];
        version[..parts.len()].copy_from_slice(&parts);
        Some(Self(version))
    }

    /// The build number of Windows, such as 22631.
    pub fn build(self) -> u32 {
        self.0[2]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        if d == 0 { write!(f, "{a}.{b}.{c}") } else { write!(f, "{a}.{b}.{c}.{d}") }
    }
}

/// The output of `wsl --version`, an option that the WSL that is part of Windows does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Of WSL itself.
    pub wsl: Version,
    /// Of its Linux kernel.
    pub kernel: Option<Version>,
    /// Of Windows.
    pub windows: Option<Version>,
}

/// Reads the output of `wsl --version`; `None` if it is something else, such as the help text.
pub fn versions(answer: &str) -> Option<Versions> {
    // One component per line: WSL, kernel, WSLg, MSRDC, Direct3D, DXCore, Windows.
    let mut lines = answer.lines().filter(|line| !line.trim().is_empty());
    let wsl = lines.next().and_then(last_version)?;
    let rest: Vec<Option<Version>> = lines.map(last_version).collect();
    // The oldest releases omit some at the end.
    let windows = rest.iter().flatten().rev().find(|version| version.0[..2] == [10, 0]);
    // Windows' own version would not come first.
    (wsl.0[0] < 10).then(|| Versions {
        wsl,
        kernel: rest.first().copied().flatten(),
        windows: windows.copied(),
    })
}

/// The version that a line ends with.
fn last_version(line: &str) -> Option<Version> {
    let value = value(line)?;
    value.starts_with(|c: char| c.is_ascii_digit()).then(|| Version::parse(value))?
}

/// What follows the colon of a line; East Asian translations use a wide one.
fn value(line: &str) -> Option<&str> {
    let (at, colon) = line.char_indices().rfind(|(_, c)| matches!(c, ':' | '：'))?;
    let value = line[at + colon.len_utf8()..].trim();
    (!value.is_empty()).then_some(value)
}

/// The output of `wsl --status`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Status {
    /// The distribution that `wsl` without arguments starts.
    pub default_distribution: Option<String>,
    /// The version, 1 or 2, that new distributions get.
    pub default_version: Option<u8>,
    /// Why WSL 2 cannot run.
    pub trouble: Option<Trouble>,
}

/// Reads the output of `wsl --status`.
pub fn status(answer: &str) -> Status {
    let mut status = Status { trouble: trouble(answer), ..Status::default() };
    for value in answer.lines().filter_map(value) {
        match value {
            "1" | "2" => {
                status.default_version = value.parse().ok();
                break;
            }
            // A name has no spaces; help texts and messages do.
            name if status.default_distribution.is_none() && !name.contains(char::is_whitespace) => {
                status.default_distribution = Some(name.to_owned());
            }
            _ => {}
        }
    }
    // Without a version it is some other text.
    if status.default_version.is_none() {
        status.default_distribution = None;
    }
    status
}

/// One line of `wsl --list --verbose`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Its name.
    pub name: String,
    /// Whether `wsl` without arguments starts it.
    pub default: bool,
    /// `Running`, `Stopped`, … in the language of Windows.
    pub state: String,
    /// 1 or 2.
    pub version: u8,
}

impl Distribution {
    /// Whether people work in it.
    pub fn is_usable(&self) -> bool {
        !is_helper(&self.name)
    }
}

/// Whether a distribution of this name is a helper of Docker, Rancher or Podman, in which nobody works.
pub fn is_helper(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["docker-desktop", "rancher-desktop", "podman-"].iter().any(|start| name.starts_with(start))
}

/// Reads the output of `wsl --list --verbose`: every line that ends with a 1 or a 2, which the
/// heading does not in any language.
pub fn distributions(answer: &str) -> Vec<Distribution> {
    answer
        .lines()
        .filter_map(|line| {
            let line = line.trim_end();
            let default = line.trim_start().starts_with('*');
            let row = line.trim_start_matches([' ', '*']);
            let (rest, version) = row.rsplit_once(char::is_whitespace)?;
            let version = version.parse().ok().filter(|version| matches!(version, 1 | 2))?;
            // At least two spaces separate columns; a state may contain one.
            let rest = rest.trim_end();
            let (name, state) = rest.split_once("  ").or_else(|| rest.split_once(' '))?;
            Some(Distribution { name: name.to_owned(), default, state: state.trim().to_owned(), version })
        })
        .collect()
}

/// Why `wsl.exe` could not do something, from the code or the link in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// The hypervisor does not run: the optional component Virtual Machine Platform is off, or virtualization in the
    /// firmware. WSL has one message for both.
    VirtualizationOff,
    /// The Windows features that WSL 2 needs are off, or need a restart.
    FeatureOff,
    /// WSL is not installed: `wsl.exe` is the stub of Windows that can install it.
    NotInstalled,
    /// A Windows service that WSL needs is disabled.
    ServiceDisabled,
    /// WSL 2 has no kernel yet.
    KernelMissing,
    /// No distribution is installed, or none of that name.
    NoDistribution,
    /// Administrator rights are needed.
    NeedsRights,
    /// The installation of WSL itself is damaged, or was never completed.
    Damaged,
    /// Windows must be restarted first.
    NeedsRestart,
    /// A download failed.
    Network,
    /// A disk is full, on the Windows side.
    DiskFull,
    /// The disk of the distribution cannot be opened.
    DiskBroken,
    /// The administrator of this PC does not allow it.
    Forbidden,
}

/// Codes and names in messages, with their meaning. Sources: microsoft/WSL
/// `wslservice.idl`, `wslutil.cpp`; MicrosoftDocs/WSL `troubleshooting.md`; Windows' error codes.
const CODES: &[(&str, Trouble)] = &[
    ("REGDB_E_CLASSNOTREG", Trouble::Damaged),
    ("Wsl/CallMsi", Trouble::Damaged),
    ("0x80370102", Trouble::VirtualizationOff),
    ("HCS_E_HYPERV_NOT_INSTALLED", Trouble::VirtualizationOff),
    ("aka.ms/enablevirtualization", Trouble::VirtualizationOff),
    ("WSL_E_VIRTUAL_MACHINE_PLATFORM_REQUIRED", Trouble::FeatureOff),
    ("WSL_E_WSL_OPTIONAL_COMPONENT_REQUIRED", Trouble::FeatureOff),
    ("HCS_E_SERVICE_NOT_AVAILABLE", Trouble::FeatureOff),
    ("0x80370114", Trouble::FeatureOff),
    ("0x8007019e", Trouble::FeatureOff),
    ("0x80040154", Trouble::FeatureOff),
    ("0x80070422", Trouble::ServiceDisabled),
    ("ERROR_SERVICE_DISABLED", Trouble::ServiceDisabled),
    ("0x800701bc", Trouble::KernelMissing),
    ("0x1bc", Trouble::KernelMissing),
    ("aka.ms/wsl2kernel", Trouble::KernelMissing),
    ("WSL_E_DEFAULT_DISTRO_NOT_FOUND", Trouble::NoDistribution),
    ("WSL_E_DISTRO_NOT_FOUND", Trouble::NoDistribution),
    ("0x800702e4", Trouble::NeedsRights),
    ("ERROR_ELEVATION_REQUIRED", Trouble::NeedsRights),
    ("0x80070005", Trouble::NeedsRights),
    ("E_ACCESSDENIED", Trouble::NeedsRights),
    ("0x80070bc2", Trouble::NeedsRestart),
    ("ERROR_SUCCESS_REBOOT_REQUIRED", Trouble::NeedsRestart),
    ("WSL_E_INSTALL_COMPONENT_FAILED", Trouble::NeedsRestart),
    ("0x80072ee7", Trouble::Network),
    ("WININET_E_", Trouble::Network),
    ("0x80072efd", Trouble::Network),
    ("0x80072ee2", Trouble::Network),
    ("0x80070070", Trouble::DiskFull),
    ("ERROR_DISK_FULL", Trouble::DiskFull),
    ("ERROR_FILE_CORRUPT", Trouble::DiskBroken),
    ("0x80070570", Trouble::DiskBroken),
    ("MountVhd/", Trouble::DiskBroken),
    ("MountDisk/", Trouble::DiskBroken),
    ("0x800704ec", Trouble::Forbidden),
    ("ERROR_ACCESS_DISABLED_BY_POLICY", Trouble::Forbidden),
    // What Windows prints of a program that AppLocker blocks, without a code.
    ("blocked by group policy", Trouble::Forbidden),
    ("durch eine Gruppenrichtlinie geblockt", Trouble::Forbidden),
];

/// The trouble that a message of `wsl.exe` reports, if it is a known one.
pub fn trouble(answer: &str) -> Option<Trouble> {
    let answer = answer.to_ascii_lowercase();
    let of_code = CODES.iter().find(|(code, _)| answer.contains(&code.to_ascii_lowercase()));
    let of_code = of_code.map(|&(_, trouble)| trouble);
    of_code
        .or_else(|| is_app_control(&answer).then_some(Trouble::Forbidden))
        .or_else(|| offers_itself(&answer).then_some(Trouble::NotInstalled))
}

/// Whether App Control for Business (WDAC, Device Guard) or Smart App Control keeps WSL from starting: codes, and what
/// PowerShell and cmd say of the program.
pub fn is_app_control(answer: &str) -> bool {
    const WORDS: [&str; 6] = [
        "0x800711c7",
        "error_system_integrity_policy_violation",
        "device guard to block this app",
        "an application control policy has blocked this file",
        "eine anwendungssteuerungsrichtlinie hat diese datei blockiert",
        "(os error 4551)",
    ];
    let answer = answer.to_ascii_lowercase();
    WORDS.iter().any(|words| answer.contains(words))
}

/// The stub that is part of Windows says to run a plain `wsl.exe --install`, or links to the
/// instructions; with arguments the command installs a distribution or a component.
fn offers_itself(answer: &str) -> bool {
    const OFFER: &str = "wsl.exe --install";
    let is_alone = |(at, _): (usize, &str)| {
        let rest = answer[at + OFFER.len()..].trim_start();
        !rest.starts_with(['-', '<', '[', '–'])
    };
    answer.contains("aka.ms/wslinstall") || answer.match_indices(OFFER).any(is_alone)
}

/// The error code in a message: `Wsl/Service/…` or `0x80370102`.
pub fn code(answer: &str) -> Option<&str> {
    codes(answer).next()
}

/// All error codes in a message, in their order. A warning that begins with `wsl:` omits `Wsl/Service/`.
pub fn codes(answer: &str) -> impl Iterator<Item = &str> {
    answer
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '：'))
        .map(|word| word.trim_matches(['.', ',', ':', '\'', '"']))
        .filter(|word| {
            let starts =
                |path: &str| word.get(..path.len()).is_some_and(|start| start.eq_ignore_ascii_case(path));
            let number = word.strip_prefix("0x").is_some_and(|digits| {
                digits.len() == 8
                    && (digits.starts_with(['8', 'c', 'C', 'd', 'D'])
                        || digits.eq_ignore_ascii_case("ffffffff"))
                    && digits.chars().all(|c| c.is_ascii_hexdigit())
            });
            starts("wsl/") || starts("createinstance/") || number
        })
}

impl Trouble {
    /// Whether it is about a disk or rights, which [`start_failure`](super::start_failure) tells apart.
    pub fn is_of_disk(self) -> bool {
        matches!(self, Self::DiskBroken | Self::NeedsRights)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VirtualizationOff => {
                "the Virtual Machine Platform of Windows or virtualization in the PC's firmware is off, so no virtual \
                 machine can start"
            }
            Self::FeatureOff => "a Windows feature that WSL 2 needs is off, or needs a restart to take effect",
            Self::NotInstalled => "WSL is not installed",
            Self::ServiceDisabled => "a Windows service that WSL needs is disabled",
            Self::KernelMissing => "WSL 2 has no Linux kernel yet",
            Self::NoDistribution => "no Linux distribution is installed",
            Self::NeedsRights => "administrator rights are required",
            Self::Damaged => "the installation of WSL is damaged or was not completed",
            Self::NeedsRestart => "Windows must be restarted first",
            Self::Network => "the download failed",
            Self::DiskFull => "the Windows disk is full",
            Self::DiskBroken => "the virtual disk of the distribution cannot be opened",
            Self::Forbidden => "a policy of this PC's administrator forbids it",
        })
    }
}

/// The version of WSL, 1 or 2, from the release of the running kernel or /proc/version; Microsoft
/// names its kernels, that of WSL 1 with a capital letter: `4.4.0-22621-Microsoft`.
pub fn generation_of_kernel(release: &str) -> Option<u8> {
    if release.contains("WSL2") || release.contains("microsoft-standard") {
        Some(2)
    } else if release.contains("-Microsoft") {
        Some(1)
    } else {
        None
    }
}
