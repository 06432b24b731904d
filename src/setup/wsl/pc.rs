//! Finding out what a Windows PC is like: by `wsl.exe`, by a question to PowerShell that answers the
//! same in every language, and by the system itself. What does not answer is unknown, and stops
//! nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use yolo_checks::wsl::exe_output::{distributions, status, versions};
use yolo_checks::wsl::sizing::Pc;
use yolo_checks::wsl::vm::Vm;

use super::exe::{self, WslExe};
use super::facts::{PcFacts, WslFacts};
use super::plan::{Wishes, chosen};
use super::{WslError, config};
use crate::fetch;

/// How long PowerShell may take for its answer; it needs about two seconds.
const POWERSHELL: Duration = Duration::from_secs(15);
/// Whether a hypervisor runs, and if not, whether the firmware would let it.
const QUESTION: &str = "'hypervisor='+(Get-CimInstance Win32_ComputerSystem).HypervisorPresent; \
    'firmware='+@(Get-CimInstance Win32_Processor)[0].VirtualizationFirmwareEnabled";

/// A Windows PC, as far as it stays the same while setup runs.
#[derive(Debug, Clone)]
pub(super) struct WindowsPc {
    pub(super) wsl: WslExe,
    /// The user's folder, in which `.wslconfig` lies.
    pub(super) profile: PathBuf,
    pub(super) architecture: String,
    pub(super) pc: Option<Pc>,
    pub(super) virtualization: Option<bool>,
    /// When Windows started, in seconds since 1970.
    pub(super) started: u64,
    /// Where it is noted that features were installed.
    pub(super) note: PathBuf,
}

impl WindowsPc {
    /// This PC.
    pub(super) fn this(places: &crate::dirs::YoloDirs) -> Result<Self, WslError> {
        let profile = std::env::var_os("USERPROFILE").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let profile = profile.ok_or_else(|| WslError::NoProfile("USERPROFILE is not set".to_owned()))?;
        let mut system = sysinfo::System::new();
        system.refresh_memory();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let pc = (system.total_memory() > 0).then(|| Pc {
            memory: system.total_memory(),
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            windows_build: sysinfo::System::kernel_version().and_then(|build| build.parse().ok()),
            // The swap file lies in the folder for temporary files unless the user names a place.
            swap_disk_free: fetch::free_bytes(&std::env::temp_dir()).ok(),
        });
        Ok(Self {
            wsl: WslExe::of_this_pc(),
            profile,
            architecture: std::env::consts::ARCH.to_owned(),
            pc,
            virtualization: virtualization(),
            started: sysinfo::System::boot_time(),
            note: places.data().join("wsl-installed.json"),
        })
    }

    /// Everything that the plan needs, asked anew.
    pub(super) fn facts(&self, wishes: &Wishes) -> Result<PcFacts, WslError> {
        let mut facts = PcFacts {
            architecture: self.architecture.clone(),
            pc: self.pc,
            virtualization: self.virtualization,
            wsl: self.ask_wsl()?,
            restart_due: self.installed_since_start(),
            config: config::look(&self.profile)?,
            vm: None,
            program: None,
        };
        if facts.wsl.trouble.is_none()
            && let Some(name) = chosen(&facts, wishes)
        {
            if self.runs()? {
                facts.vm = self.vm(&name)?;
            }
            facts.program = self.program(&name)?;
        }
        Ok(facts)
    }

    fn ask_wsl(&self) -> Result<WslFacts, WslError> {
        let Some(answer) = self.wsl.ask(&["--status"])? else { return Ok(WslFacts::default()) };
        let all = answer.all();
        let told = status(&all);
        let mut facts = WslFacts {
            exe: true,
            status: answer.succeeded && told.default_version.is_some(),
            default_version: told.default_version,
            trouble: told.trouble,
            // The help text of a wsl.exe that is older than `--install` lists what it can.
            too_old: all.contains("--export") && !all.contains("--install"),
            ..WslFacts::default()
        };
        if facts.status {
            let ask = |words: &[&str]| Ok(self.wsl.ask(words)?.filter(|answer| answer.succeeded));
            facts.versions = ask(&["--version"])?.and_then(|answer| versions(&answer.stdout));
            facts.distributions =
                ask(&["-l", "-v"])?.map(|answer| distributions(&answer.stdout)).unwrap_or_default();
        }
        Ok(facts)
    }

    /// Whether the virtual machine runs: some distribution does.
    fn runs(&self) -> Result<bool, WslError> {
        // Names alone, one a line; where none runs, a sentence instead and a failure.
        let answer = self.wsl.ask(&["-l", "--running", "-q"])?;
        Ok(answer.is_some_and(|answer| answer.succeeded && !answer.stdout.trim().is_empty()))
    }

    /// The virtual machine, as a distribution sees it. It is started if it does not run.
    pub(super) fn vm(&self, distribution: &str) -> Result<Option<Vm>, WslError> {
        let words = ["-d", distribution, "-u", "root", "--exec", "sh", "-c", "nproc; cat /proc/meminfo"];
        let Some(answer) = self.wsl.ask(&words)?.filter(|answer| answer.succeeded) else { return Ok(None) };
        let (processors, meminfo) = answer.stdout.split_once('\n').unwrap_or_default();
        Ok(processors.trim().parse().ok().and_then(|processors| Vm::from_meminfo(meminfo, processors)))
    }

    /// The version of `yolo` in a distribution.
    fn program(&self, distribution: &str) -> Result<Option<String>, WslError> {
        let words = ["-d", distribution, "-u", "root", "--exec", "/opt/yolo/yolo", "--version"];
        let answer = self.wsl.ask(&words)?.filter(|answer| answer.succeeded);
        Ok(answer.and_then(|answer| answer.stdout.trim().strip_prefix("yolo ").map(str::to_owned)))
    }

    /// Notes that Windows must be restarted.
    pub(super) fn note_installed(&self) -> Result<(), WslError> {
        let note = serde_json::json!(Installed { at: now() }).to_string();
        if let Some(folder) = self.note.parent() {
            std::fs::create_dir_all(folder).map_err(WslError::file("create", folder))?;
        }
        std::fs::write(&self.note, note).map_err(WslError::file("write", &self.note))
    }

    fn installed_since_start(&self) -> bool {
        let note =
            std::fs::read(&self.note).ok().and_then(|note| serde_json::from_slice::<Installed>(&note).ok());
        note.is_some_and(|note| note.at > self.started)
    }
}

/// When features were installed, in seconds since 1970.
#[derive(Serialize, Deserialize)]
struct Installed {
    at: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Whether virtual machines can run, by Windows' own account.
fn virtualization() -> Option<bool> {
    let windows = PathBuf::from(std::env::var_os("SystemRoot")?);
    let program = windows.join(Path::new("System32/WindowsPowerShell/v1.0/powershell.exe"));
    let answer =
        exe::question(&program, &["-NoProfile", "-NonInteractive", "-Command", QUESTION], POWERSHELL)?;
    told_virtualization(&answer)
}

/// Reads that answer. While a hypervisor runs, Windows says of the firmware that it does not allow
/// one.
fn told_virtualization(answer: &str) -> Option<bool> {
    let told = |name: &str| {
        let value = answer.lines().find_map(|line| line.trim().strip_prefix(name))?;
        match value {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    };
    if told("hypervisor=") == Some(true) { Some(true) } else { told("firmware=") }
}

#[cfg(test)]
mod tests {
    use super::told_virtualization;

    #[test]
    fn a_running_hypervisor_outweighs_the_firmware() {
        for (answer, known) in [
            ("hypervisor=True\r\nfirmware=False\r\n", Some(true)),
            ("hypervisor=False\r\nfirmware=True\r\n", Some(true)),
            ("hypervisor=False\r\nfirmware=False\r\n", Some(false)),
            ("hypervisor=\r\nfirmware=\r\n", None),
            ("", None),
        ] {
            assert_eq!(told_virtualization(answer), known, "{answer:?}");
        }
    }
}
