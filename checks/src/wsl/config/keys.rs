//! The keys that WSL supports, with the type of each value. Sources: microsoft/WSL
//! `WslCoreConfig.h`, `WslCoreConfig.cpp` and `WslDistributionConfig.cpp`, and Microsoft's page
//! "Advanced settings configuration in WSL", 2026-08.

use super::ConfigFile;

/// What a key's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A number of bytes with a unit: `8GB`.
    Size,
    /// A whole number, also in hexadecimal or octal.
    Number,
    /// `true`, `false`, `1` or `0`.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A Windows path, whose backslashes must be doubled.
    Path,
    /// Anything.
    Text,
}

/// One supported key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The section it belongs to.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What its value must be.
    pub value: Value,
    /// The section it was in while it was experimental, which WSL still reads.
    pub former: Option<&'static str>,
}

const fn key(section: &'static str, name: &'static str, value: Value) -> Key {
    Key { section, name, value, former: None }
}

/// A key of `[wsl2]` that used to be experimental.
const fn moved(name: &'static str, value: Value) -> Key {
    Key { section: "wsl2", name, value, former: Some("experimental") }
}

/// The values of `networkingMode`.
pub const NETWORKING_MODES: &[&str] = &["none", "nat", "bridged", "mirrored", "virtioproxy", "consomme"];

const WSL_CONFIG: &[Key] = &[
    key("wsl2", "memory", Value::Size),
    key("wsl2", "processors", Value::Number),
    key("wsl2", "swap", Value::Size),
    key("wsl2", "swapFile", Value::Path),
    moved("networkingMode", Value::Choice(NETWORKING_MODES)),
    moved("dnsTunneling", Value::Bool),
    moved("firewall", Value::Bool),
    moved("autoProxy", Value::Bool),
    key("wsl2", "localhostForwarding", Value::Bool),
    key("wsl2", "kernel", Value::Path),
    key("wsl2", "kernelModules", Value::Path),
    key("wsl2", "kernelCommandLine", Value::Text),
    key("wsl2", "loadKernelModules", Value::Text),
    key("wsl2", "loadDefaultKernelModules", Value::Bool),
    key("wsl2", "safeMode", Value::Bool),
    key("wsl2", "guiApplications", Value::Bool),
    key("wsl2", "gpuSupport", Value::Bool),
    key("wsl2", "debugConsole", Value::Bool),
    key("wsl2", "debugConsoleLogFile", Value::Path),
    key("wsl2", "earlyBootLogging", Value::Bool),
    key("wsl2", "maxCrashDumpCount", Value::Number),
    key("wsl2", "crashDumpFolder", Value::Path),
    key("wsl2", "nestedVirtualization", Value::Bool),
    key("wsl2", "hardwarePerformanceCounters", Value::Bool),
    key("wsl2", "vmIdleTimeout", Value::Number),
    key("wsl2", "dnsProxy", Value::Bool),
    key("wsl2", "defaultVhdSize", Value::Size),
    key("wsl2", "ipv6", Value::Bool),
    key("wsl2", "dhcp", Value::Bool),
    key("wsl2", "dhcpTimeout", Value::Number),
    key("wsl2", "vmSwitch", Value::Text),
    key("wsl2", "macAddress", Value::Text),
    key("wsl2", "kernelBootTimeout", Value::Number),
    key("wsl2", "kernelDebugPort", Value::Number),
    key("wsl2", "distributionStartTimeout", Value::Number),
    key("wsl2", "mountDeviceTimeout", Value::Number),
    key("wsl2", "hostFileSystemAccess", Value::Bool),
    key("wsl2", "virtio", Value::Bool),
    key("wsl2", "virtio9p", Value::Bool),
    key("wsl2", "virtiofs", Value::Bool),
    key("wsl2", "systemDistro", Value::Path),
    key("wsl2", "telemetry", Value::Bool),
    key("wsl2", "isolateDistroCgroup", Value::Bool),
    key("general", "instanceIdleTimeout", Value::Number),
    key("general", "distributionInstallPath", Value::Path),
    key("experimental", "autoMemoryReclaim", Value::Choice(&["disabled", "gradual", "dropCache"])),
    key("experimental", "sparseVhd", Value::Bool),
    key("experimental", "bestEffortDnsParsing", Value::Bool),
    key("experimental", "dnsTunnelingIpAddress", Value::Text),
    key("experimental", "initialAutoProxyTimeout", Value::Number),
    key("experimental", "ignoredPorts", Value::Text),
    key("experimental", "hostAddressLoopback", Value::Bool),
    key("experimental", "setVersionDebug", Value::Bool),
    key("experimental", "swiotlb", Value::Text),
    key("experimental", "virtioFsAggregateShares", Value::Bool),
];

const WSL_CONF: &[Key] = &[
    key("automount", "enabled", Value::Bool),
    key("automount", "mountFsTab", Value::Bool),
    key("automount", "root", Value::Text),
    key("automount", "options", Value::Text),
    key("automount", "ldconfig", Value::Bool),
    key("automount", "cgroups", Value::Choice(&["v1", "v2"])),
    key("filesystem", "umask", Value::Number),
    key("network", "generateHosts", Value::Bool),
    key("network", "generateResolvConf", Value::Bool),
    key("network", "hostname", Value::Text),
    key("interop", "enabled", Value::Bool),
    key("interop", "appendWindowsPath", Value::Bool),
    key("user", "default", Value::Text),
    key("boot", "systemd", Value::Bool),
    key("boot", "command", Value::Text),
    key("boot", "initTimeout", Value::Number),
    key("boot", "protectBinfmt", Value::Bool),
    key("gpu", "enabled", Value::Bool),
    key("gpu", "appendLibPath", Value::Bool),
    key("time", "useWindowsTimezone", Value::Bool),
    key("fileServer", "enabled", Value::Bool),
    key("fileServer", "logFile", Value::Text),
    key("fileServer", "logLevel", Value::Number),
    key("fileServer", "logTruncate", Value::Bool),
    key("general", "guiApplications", Value::Bool),
];

/// All keys of a file.
pub fn all(kind: ConfigFile) -> &'static [Key] {
    match kind {
        ConfigFile::WslConfig => WSL_CONFIG,
        ConfigFile::WslConf => WSL_CONF,
    }
}

/// The key of that name in that section or in its former section.
pub fn find(kind: ConfigFile, section: &str, name: &str) -> Option<&'static Key> {
    all(kind).iter().find(|key| {
        key.name.eq_ignore_ascii_case(name)
            && (key.section.eq_ignore_ascii_case(section)
                || key.former.is_some_and(|former| former.eq_ignore_ascii_case(section)))
    })
}

/// Whether two (section, key) pairs mean the same setting.
pub(super) fn same(kind: ConfigFile, one: (&str, &str), other: (&str, &str)) -> bool {
    let name = |(section, name): (&str, &str)| match find(kind, section, name) {
        Some(key) => (key.section.to_ascii_lowercase(), key.name.to_ascii_lowercase()),
        None => (section.to_ascii_lowercase(), name.to_ascii_lowercase()),
    };
    one.1.eq_ignore_ascii_case(other.1) && name(one) == name(other)
}
