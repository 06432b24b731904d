//! The two files that configure WSL, as WSL reads them, and when the virtual machine started, which
//! is when it read the first of them.

use crate::change::{Change, Edit};
use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;
use crate::wsl::config::{ConfigFile, Document};
use crate::wsl::vm::Vm;

/// Names under which `.wslconfig` is found unread: Notepad adds `.txt`.
const MISNAMED: [&str; 5] = [".wslconfig.txt", "wslconfig", "wslconfig.txt", ".wslconf", ".wslconfig.ini"];

/// `.wslconfig` of the Windows user.
#[derive(Debug, Clone, PartialEq)]
pub struct WslConfig {
    /// Its path, as this program opens it.
    pub path: String,
    /// Whether it exists; without it WSL's defaults apply.
    pub is_there: bool,
    /// Its contents.
    pub document: Document,
    /// When it last changed, in seconds since 1970.
    pub modified: Option<u64>,
}

impl WslConfig {
    /// The value in effect of a key of `[wsl2]`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.document.value("wsl2", key)
    }

    /// A change of the file; without edits only its encoding changes.
    pub(crate) fn change(&self, edits: Vec<Edit>) -> Change {
        Change::Settings { file: self.path.clone(), of: ConfigFile::WslConfig, edits }
    }

    /// A boolean of `[wsl2]`; `None` if it is not set.
    pub fn flag(&self, key: &str) -> Option<bool> {
        flag(self.value(key)?)
    }
}

/// A file in a Windows user's folder, with the separator of that path.
fn in_profile(profile: &str, name: &str) -> String {
    let separator = if profile.starts_with('/') { '/' } else { '\\' };
    format!("{}{separator}{name}", profile.trim_end_matches(separator))
}

/// A boolean as WSL reads it.
fn flag(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

impl Host {
    /// `.wslconfig` of the Windows user, empty if there is none.
    pub fn wslconfig(&self) -> Fact<WslConfig> {
        self.wslconfig_in(&self.windows_profile()?)
    }

    /// `.wslconfig` in this folder of a Windows user.
    pub fn wslconfig_in(&self, profile: &str) -> Fact<WslConfig> {
        let path = in_profile(profile, ".wslconfig");
        let bytes = self.file(&path)?;
        let modified = match &bytes {
            Some(_) => self.stat(&path).ok().flatten().and_then(|stat| stat.modified),
            None => None,
        };
        let document = Document::parse(ConfigFile::WslConfig, bytes.as_deref().unwrap_or_default());
        Ok(WslConfig { path, is_there: bytes.is_some(), document, modified })
    }

    /// Files in this folder of a Windows user that were probably meant to be `.wslconfig`.
    pub fn misnamed_wslconfigs(&self, profile: &str) -> Vec<String> {
        let paths = MISNAMED.iter().map(|name| in_profile(profile, name));
        paths.filter(|path| self.exists(path) == Ok(true)).collect()
    }

    /// `/etc/wsl.conf` of this distribution, empty if there is none.
    pub fn wsl_conf(&self) -> Fact<Document> {
        let bytes = self.file("/etc/wsl.conf")?;
        Ok(Document::parse(ConfigFile::WslConf, bytes.as_deref().unwrap_or_default()))
    }

    /// A boolean of `/etc/wsl.conf`; `None` if it is not set or not known.
    pub fn wsl_conf_flag(&self, section: &str, key: &str) -> Option<bool> {
        flag(self.wsl_conf().ok()?.value(section, key)?)
    }

    /// The networking mode in `.wslconfig`, in lower case; `nat` by default.
    pub fn wsl_network(&self) -> Fact<String> {
        let config = self.wslconfig()?;
        Ok(config.value("networkingMode").map_or_else(|| "nat".to_owned(), str::to_ascii_lowercase))
    }

    /// The running virtual machine of WSL.
    pub fn wsl_vm(&self) -> Fact<Vm> {
        let memory = self.memory()?;
        let cores = self.system().ok().and_then(|system| system.cores).or_else(|| {
            let table = self.text("/proc/cpuinfo").ok()??;
            Some(table.lines().filter(|line| line.starts_with("processor")).count() as u64)
        });
        let processors = cores
            .and_then(|cores| u32::try_from(cores).ok())
            .ok_or_else(|| Unknown::because("the number of CPUs is unknown"))?;
        Ok(Vm { memory: memory.total, swap: memory.swap_total, processors })
    }

    /// The days since the start, of which one has begun; one if that is unknown.
    pub(crate) fn days_up(&self) -> u64 {
        let seconds = || self.time().ok()?.checked_sub(self.boot_time().ok()?);
        seconds().map_or(1, |seconds| seconds.div_ceil(86_400)).max(1)
    }

    /// Seconds since 1970 when the kernel started.
    pub fn boot_time(&self) -> Fact<u64> {
        if let Ok(Some(text)) = self.text("/proc/stat")
            && let Some(time) = text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
        {
            return Ok(time);
        }
        let uptime = self.text("/proc/uptime")?.unwrap_or_default();
        let seconds = uptime.split('.').next().and_then(|seconds| seconds.trim().parse::<u64>().ok());
        seconds
            .and_then(|seconds| self.time().ok()?.checked_sub(seconds))
            .ok_or_else(|| Unknown::because("/proc/stat does not contain the boot time"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_file_is_read_through_the_windows_drive() {
        let recording = json!({ "version": 1, "os": "linux", "env": { "USERPROFILE": "C:\\Users\\ada" },
            "files": { "/etc/wsl.conf": "[automount]\nroot=/win\nldconfig = false\n", "/proc/stat": "cpu 1\nbtime 1763690000\n",
                "/win/c/Users/ada/.wslconfig": "[wsl2]\nnetworkingMode=Mirrored\ngpuSupport=0\n" },
            "stats": { "/win/c/Users/ada/.wslconfig": { "kind": "file", "modified": 1763690100 } } });
        let (host, _) = Host::from_value(recording).unwrap();
        let config = host.wslconfig().unwrap();
        assert_eq!((config.flag("gpuSupport"), config.modified), (Some(false), Some(1_763_690_100)));
        assert_eq!(host.wsl_network().unwrap(), "mirrored");
        assert_eq!(host.wsl_conf_flag("automount", "ldconfig"), Some(false));
        assert_eq!(host.boot_time(), Ok(1_763_690_000));
    }

    #[test]
    fn without_a_file_the_defaults_apply() {
        let recording = json!({ "version": 1, "os": "windows", "env": { "USERPROFILE": "C:\\Users\\ada" },
            "files": { "C:\\Users\\ada\\.wslconfig": null } });
        let (host, _) = Host::from_value(recording).unwrap();
        assert!(!host.wslconfig().unwrap().is_there);
        assert_eq!(host.wsl_network().unwrap(), "nat");
    }
}
