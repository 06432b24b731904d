//! Whether this is WSL, and which. The releases of Microsoft's kernels name it: `4.4.0-…-Microsoft` is
//! WSL 1, `microsoft-standard` WSL 2, even if built from Microsoft's source by someone else. For a
//! custom kernel, the interop socket or `/dev/dxg` decides; an ordinary guest of Hyper-V can have this device too,
//! and, unlike WSL, firmware that names the machine.

use super::version::Version;
use super::virtual_machine::Guest;
use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;
use crate::wsl::exe_output::generation_of_kernel;

/// The generations of WSL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wsl {
    /// System calls translated by Windows: no GPU, no Linux kernel.
    One,
    /// A Linux kernel in a virtual machine.
    Two,
}

/// The device through which a virtual machine uses a GPU that Windows shares.
const WINDOWS_GPU: &str = "/dev/dxg";

impl Host {
    /// Which WSL this system runs in; `None` where it does not.
    pub fn wsl(&self) -> Fact<Option<Wsl>> {
        if self.os().is_ok_and(|os| os != "linux") {
            return Ok(None);
        }
        let release = self.kernel_release()?;
        if let Some(wsl) = of_kernel(&release) {
            return Ok(Some(wsl));
        }
        let full = self.text("/proc/version").ok().flatten().and_then(|text| of_kernel(&text));
        let marked = || self.env("WSL_INTEROP").is_ok_and(|value| value.is_some());
        let device = || self.exists(WINDOWS_GPU).unwrap_or(false) && !self.is_on_hyper_v();
        Ok(full.or_else(|| (marked() || device()).then_some(Wsl::Two)))
    }

    fn is_on_hyper_v(&self) -> bool {
        matches!(self.guest(), Some(Guest::HyperV | Guest::Cloud("Azure")))
    }

    /// Whether this is a guest of Hyper-V other than WSL that uses the GPU through the driver of its Windows host, as
    /// WSL does (GPU-PV). The guest's owner copies that driver's libraries.
    pub fn has_gpu_of_windows_host(&self) -> bool {
        self.exists(WINDOWS_GPU) == Ok(true) && self.is_on_hyper_v() && self.wsl() == Ok(None)
    }

    /// Whether this is WSL 2.
    pub fn is_wsl2(&self) -> Fact<bool> {
        Ok(self.wsl()? == Some(Wsl::Two))
    }

    /// The release of the kernel, such as `6.6.87.2-microsoft-standard-WSL2`.
    pub fn kernel_release(&self) -> Fact<String> {
        if let Ok(Some(text)) = self.text("/proc/sys/kernel/osrelease") {
            return Ok(text.trim().to_owned());
        }
        if let Ok(Some(text)) = self.text("/proc/version")
            && let Some(release) = text.split_whitespace().nth(2)
        {
            return Ok(release.to_owned());
        }
        if let Some(kernel) = self.system().ok().and_then(|system| system.kernel) {
            return Ok(kernel);
        }
        let uname = self.command(&["uname", "-r"]).ok().flatten().map(|output| output.text());
        uname
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .ok_or_else(|| Unknown::because("the kernel release is unknown"))
    }

    /// The version of the kernel.
    pub fn kernel_version(&self) -> Fact<Version> {
        let release = self.kernel_release()?;
        Version::find(&release)
            .ok_or_else(|| Unknown(format!("the kernel release {release} contains no version")))
    }
}

fn of_kernel(text: &str) -> Option<Wsl> {
    Some(if generation_of_kernel(text)? == 1 { Wsl::One } else { Wsl::Two })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wsl(release: &str) -> Option<Wsl> {
        let recording = json!({ "version": 1, "os": "linux", "env": {}, "folders": { "/dev": [] },
            "files": { "/proc/version": format!("Linux version {release} (builder@host) (gcc) #1 SMP") } });
        Host::from_value(recording).unwrap().0.wsl().unwrap()
    }

    #[test]
    fn wsl_is_recognized_by_its_kernel() {
        assert_eq!(wsl("6.6.87.2-microsoft-standard-WSL2"), Some(Wsl::Two));
        assert_eq!(wsl("5.15.153.1-microsoft-standard-WSL2+"), Some(Wsl::Two));
        assert_eq!(wsl("4.19.128-microsoft-standard"), Some(Wsl::Two));
        assert_eq!(wsl("4.4.0-19041-Microsoft"), Some(Wsl::One));
        assert_eq!(wsl("6.8.0-45-generic"), None);
    }

    #[test]
    fn windows_is_not_wsl() {
        let recording = json!({ "version": 1, "os": "windows" });
        assert_eq!(Host::from_value(recording).unwrap().0.wsl().unwrap(), None);
    }

    #[test]
    fn a_custom_kernel_is_recognized_by_its_device() {
        let recording = json!({ "version": 1, "os": "linux", "env": {}, "folders": { "/dev": ["dxg"] },
            "stats": { "/dev/dxg": { "kind": "char" } },
            "files": { "/proc/version": "Linux version 6.9.1-custom (me@pc) #1" } });
        assert_eq!(Host::from_value(recording).unwrap().0.wsl().unwrap(), Some(Wsl::Two));
    }

    #[test]
    fn a_guest_of_hyper_v_with_the_device_is_not_wsl() {
        let recording = json!({ "version": 1, "os": "linux", "env": {}, "folders": { "/dev": ["dxg"] },
            "stats": { "/dev/dxg": { "kind": "char" } },
            "files": { "/proc/version": "Linux version 5.15.0-134-generic (buildd@builder) #145-Ubuntu SMP",
                "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n",
                "/sys/class/dmi/id/product_name": "Virtual Machine\n" } });
        let host = Host::from_value(recording).unwrap().0;
        assert_eq!(host.wsl().unwrap(), None);
        assert!(host.has_gpu_of_windows_host());
    }
}
