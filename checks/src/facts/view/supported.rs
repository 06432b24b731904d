//! Whether libtorch exists for this system at all. Where it does not, nothing that rests on libtorch or on
//! NVIDIA's driver is worth saying: no advice about them would make a run possible.

use crate::facts::host::Host;
use crate::facts::view::wsl::Wsl;

impl Host {
    /// Whether the system's C library is musl, as on Alpine.
    pub fn is_musl(&self) -> bool {
        let alpine = self.distribution().is_ok_and(|distribution| distribution.id == "alpine");
        let said = self.recorded_output("ldd").is_some_and(|text| text.contains("musl"));
        // Some glibc systems also have musl's loader, for programs built with musl.
        let only = || {
            self.exists("/lib/ld-musl-x86_64.so.1") == Ok(true)
                && self.exists("/lib64/ld-linux-x86-64.so.2") == Ok(false)
        };
        alpine || said || only()
    }

    /// Whether this is a Windows PC with a processor of ARM, on which a program for x86-64 is emulated.
    pub fn is_arm_windows(&self) -> bool {
        let starts = |name: &str, start: &str| {
            self.env(name).is_ok_and(|value| value.is_some_and(|value| value.trim().starts_with(start)))
        };
        self.is_windows().unwrap_or(false)
            && (starts("PROCESSOR_IDENTIFIER", "ARM") || starts("PROCESSOR_ARCHITEW6432", "ARM64"))
    }

    /// Whether this operating system and CPU have a libtorch that `yolo` can use; `true` if they are
    /// unknown.
    pub fn has_libtorch_build(&self) -> bool {
        self.arch().is_ok_and(|arch| arch == "x86_64")
            && !self.is_arm_windows()
            && self.os().is_ok_and(|os| os == "linux" || os == "windows")
            || self.arch().is_err()
            || self.os().is_err()
    }

    /// Whether a training run could ever start on this system: not without a libtorch for it, on musl, or
    /// in WSL 1, which has no GPU and translates system calls.
    pub fn can_train(&self) -> bool {
        self.has_libtorch_build() && !matches!(self.wsl(), Ok(Some(Wsl::One))) && !self.is_musl()
    }
}
