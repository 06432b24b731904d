//! The Windows PC as hardware: its memory, CPUs, firmware and clock. On Windows the system itself
//! answers. From WSL PowerShell must be asked, which takes seconds: the doctor makes do with
//! [`Host::estimated_pc`], and setup asks for [`Host::windows_pc`].

use std::time::Duration;

use crate::facts::answer::{Fact, Output, Unknown};
use crate::facts::host::Host;
use crate::wsl::exe_output;
use crate::wsl::sizing::Pc;

/// How long PowerShell may take; its first start from WSL is slow.
const POWERSHELL_BUDGET: Duration = Duration::from_secs(20);
/// The script that PowerShell runs for a [`WindowsReport`]: numbers and names that no translation
/// changes.
pub const WINDOWS_REPORT: &str = "$c=Get-CimInstance Win32_ComputerSystem; 'memory='+$c.TotalPhysicalMemory; \
    'processors='+$c.NumberOfLogicalProcessors; 'build='+[Environment]::OSVersion.Version.Build; \
    'profile='+$env:USERPROFILE; 'time='+[DateTimeOffset]::UtcNow.ToUnixTimeSeconds()";
/// Whether a hypervisor runs and, if not, whether the firmware allows one.
const VIRTUALIZATION: &str = "'hypervisor='+(Get-CimInstance Win32_ComputerSystem).HypervisorPresent; \
    'firmware='+@(Get-CimInstance Win32_Processor)[0].VirtualizationFirmwareEnabled";
/// The clock that Windows gives the virtual machine, in UTC; every user may read it.
pub(crate) const WINDOWS_CLOCK: &str = "/sys/class/rtc/rtc0/since_epoch";

/// What PowerShell reports about the PC; `None` is what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowsReport {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Logical CPUs.
    pub processors: Option<u32>,
    /// The build of Windows, such as 22631.
    pub build: Option<u32>,
    /// The user's folder as Windows writes it, such as `C:\Users\mara`.
    pub profile: Option<String>,
    /// Seconds since 1970.
    pub time: Option<i64>,
}

impl Host {
    /// What PowerShell reports about the PC that WSL runs on.
    pub fn windows_report(&self) -> Fact<WindowsReport> {
        let text = self.powershell(WINDOWS_REPORT)?;
        Ok(WindowsReport {
            memory: field(&text, "memory").and_then(|bytes| bytes.parse().ok()).filter(|&bytes| bytes > 0),
            processors: field(&text, "processors")
                .and_then(|count| count.parse().ok())
                .filter(|&count| count > 0),
            build: field(&text, "build").and_then(|build| build.parse().ok()),
            profile: field(&text, "profile").map(ToOwned::to_owned),
            time: field(&text, "time").and_then(|time| time.parse().ok()),
        })
    }

    /// The PC, by PowerShell's report where this is WSL.
    pub fn windows_pc(&self) -> Fact<Pc> {
        if self.is_windows()? {
            let cores = self.system()?.cores.and_then(|cores| u32::try_from(cores).ok());
            // The swap file is in the folder for temporary files unless the user names another.
            let temporary = ["TEMP", "TMP"].iter().find_map(|name| self.env(name).ok().flatten());
            return Ok(Pc {
                memory: installed_bytes(self.windows_memory()?),
                processors: cores.ok_or_else(|| Unknown::because("Windows does not report its CPUs"))?,
                windows_build: self.windows_build().ok(),
                swap_disk_free: temporary.and_then(|folder| self.file_system(&folder).ok()?.available),
            });
        }
        let report = self.windows_report()?;
        let missing = || Unknown::because("PowerShell does not report the PC's memory and CPUs");
        Ok(Pc {
            memory: installed_bytes(report.memory.ok_or_else(missing)?),
            processors: report.processors.ok_or_else(missing)?,
            windows_build: report.build,
            swap_disk_free: self.file_system(&self.windows_drive()).ok().and_then(|disk| disk.available),
        })
    }

    /// The PC as far as it is known without PowerShell: it has at least the CPUs of the virtual
    /// machine. Only mirrored networking needs the build of Windows, and `wsl.exe` is slow to
    /// report it.
    pub fn estimated_pc(&self) -> Fact<Pc> {
        Ok(Pc {
            memory: installed_bytes(self.windows_memory()?),
            processors: self.wsl_vm().map_or(1, |vm| vm.processors),
            windows_build: None,
            swap_disk_free: None,
        })
    }

    /// Whether virtual machines can run on this Windows PC.
    pub fn virtualization(&self) -> Fact<bool> {
        virtualization(&self.powershell(VIRTUALIZATION)?)
            .ok_or_else(|| Unknown::because("Windows does not report whether virtual machines can run"))
    }

    /// Seconds since 1970 by the clock of Windows, and what they were read from; `None` where WSL
    /// has no such clock.
    pub fn windows_time(&self) -> Fact<Option<(i64, &'static str)>> {
        if let Some(time) = self.recorded_windows_time() {
            return Ok(Some((time, "PowerShell")));
        }
        let clock = self.text(WINDOWS_CLOCK)?.and_then(|text| text.trim().parse().ok());
        Ok(clock.map(|time| (time, WINDOWS_CLOCK)))
    }

    /// The time in a recorded output: a person asks in whichever way they know.
    fn recorded_windows_time(&self) -> Option<i64> {
        let outputs = ["ToUnixTimeSeconds", "UFormat %s", "hwclock"].map(|part| self.recorded_texts(part));
        let text = outputs.iter().flatten().next()?;
        let text = exe_output::decode(text.as_bytes());
        let text = field(&text, "time").unwrap_or(&text);
        text.split(|letter: char| !letter.is_ascii_digit()).find(|digits| digits.len() == 10)?.parse().ok()
    }

    /// The output of a PowerShell script.
    fn powershell(&self, script: &str) -> Fact<String> {
        const PATH: &str = "System32/WindowsPowerShell/v1.0/powershell.exe";
        let program = if self.is_windows()? {
            let windows = self.env(yolo_base::env::SystemRoot).ok().flatten();
            windows
                .map_or("powershell.exe".to_owned(), |folder| format!("{folder}/{PATH}").replace('/', "\\"))
        } else if self.interop() == Ok(false) {
            return Err(Unknown::because("WSL cannot start Windows programs: interop is off"));
        } else {
            format!("{}/Windows/{PATH}", self.windows_drive())
        };
        let words = [&program, "-NoProfile", "-NonInteractive", "-Command", script];
        let output = self.command_within(&words, POWERSHELL_BUDGET)?.filter(Output::succeeded);
        let output =
            output.ok_or_else(|| Unknown::because("PowerShell failed or did not respond in time"))?;
        Ok(exe_output::decode(&output.stdout))
    }
}

/// The value of a line `name=value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
}

/// While a hypervisor runs, Windows reports that the firmware does not allow one.
fn virtualization(text: &str) -> Option<bool> {
    let flag = |name: &str| match field(text, name)? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    if flag("hypervisor") == Some(true) { Some(true) } else { flag("firmware") }
}

/// The installed memory: a whole number of gigabytes, of which Windows sees a little less.
fn installed_bytes(seen: u64) -> u64 {
    const GIB: u64 = 1 << 30;
    let whole = seen.div_ceil(GIB).saturating_mul(GIB);
    if whole.saturating_sub(seen) < GIB * 3 / 5 { whole } else { seen }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_running_hypervisor_outweighs_the_firmware() {
        for (answer, expected) in [
            ("hypervisor=True\r\nfirmware=False\r\n", Some(true)),
            ("hypervisor=False\r\nfirmware=True\r\n", Some(true)),
            ("hypervisor=False\r\nfirmware=False\r\n", Some(false)),
            ("hypervisor=\r\nfirmware=\r\n", None),
            ("", None),
        ] {
            assert_eq!(virtualization(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn powershell_reports_the_pc_around_wsl() {
        let words = [
            "/mnt/c/Windows/System32/WindowsPowerShell/v1.0/powershell.exe",
            "-NoProfile",
            "-NonInteractive",
            "-Command",
            WINDOWS_REPORT,
        ];
        let answer = "memory=34190295040\r\nprocessors=16\r\nbuild=26100\r\n\
                      profile=C:\\Users\\Ada Rossi\r\ntime=1800000000\r\n";
        let recording = json!({ "version": 1, "os": "linux", "commands": { crate::facts::command_line(&words): answer } });
        let (host, _) = Host::from_value(recording).unwrap();
        let pc = host.windows_pc().unwrap();
        assert_eq!((pc.memory, pc.processors, pc.windows_build), (32 << 30, 16, Some(26100)));
        assert_eq!(host.windows_report().unwrap().profile.as_deref(), Some("C:\\Users\\Ada Rossi"));
        assert_eq!(host.windows_time(), Ok(Some((1_800_000_000, "PowerShell"))));
    }

    proptest! {
        #[test]
        fn any_output_is_read(text in "(hypervisor|firmware|time|=|True|\\PC|\n){0,12}") {
            let _ = (virtualization(&text), field(&text, "time"));
        }
    }
}
