//! Which Windows is too old for today's WSL 2, and what to do about it. The doctor and setup follow this one rule.

/// The first build of Windows with `wsl --install`, which the WSL of today needs as well: Windows 10 version 2004.
const LEAST_BUILD: u32 = 19041;
/// The builds of the LTSC editions before it, of 2015, 2016 and 2019. Others of these builds are rare by now.
const LTSC: [u32; 3] = [10240, 14393, 17763];

/// A Windows that is too old for today's WSL 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldWindows {
    build: u32,
    is_server: bool,
}

impl OldWindows {
    /// A Windows of this build, if it is too old.
    pub fn of(build: u32, is_server: bool) -> Option<Self> {
        (build < LEAST_BUILD).then_some(Self { build, is_server })
    }

    /// `Windows 10 (build 17763)`
    pub fn name(&self) -> String {
        let name = if self.is_server { "Windows Server" } else { "Windows 10" };
        format!("{name} (build {})", self.build)
    }

    /// What WSL 2 needs instead.
    pub const fn needed(&self) -> &'static str {
        if self.is_server { "Windows Server 2022" } else { "Windows 10 version 2004 (build 19041)" }
    }

    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        if self.is_server {
            "use Windows Server 2025 or Windows 11, or a machine with Linux; at a cloud provider, an instance with Linux and \
             NVIDIA's driver is the simplest"
        } else if LTSC.contains(&self.build) {
            "upgrade to Windows 11; an LTSC edition has to be reinstalled, because Windows Update does not upgrade it"
        } else {
            "update Windows to 22H2 or Windows 11 with Windows Update"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_old_windows_has_its_remedy() {
        let remedy = |build, is_server| OldWindows::of(build, is_server).map(|old| old.remedy());
        assert!(remedy(18363, false).unwrap().contains("Windows Update"));
        assert!(remedy(17763, false).unwrap().contains("LTSC"));
        assert!(remedy(17763, true).unwrap().contains("Windows Server 2025"));
        assert_eq!((remedy(19041, false), remedy(20348, true)), (None, None));
    }
}
