//! What the plan for a Windows PC is computed from.

use yolo_checks::Host;
use yolo_checks::facts::{WslConfig, WslInstallation};
use yolo_checks::wsl::exe_output::Distribution;
use yolo_checks::wsl::sizing::Pc;
use yolo_checks::wsl::vm::Vm;

use super::restart::Features;
use crate::setup::wsl::error::WslError;
use crate::setup::wsl::exe::PROGRAM;

/// A Windows PC. `None` means unknown.
#[derive(Debug, Clone)]
pub(crate) struct WindowsFacts {
    /// `x86_64`, `aarch64`.
    pub(crate) architecture: String,
    /// Whether it runs Windows Server.
    pub(crate) is_server: bool,
    /// Memory, CPUs, the build of Windows.
    pub(crate) pc: Option<Pc>,
    /// Whether the firmware allows virtual machines.
    pub(crate) virtualization: Option<bool>,
    /// The state of WSL.
    pub(crate) wsl: WslInstallation,
    /// What setup has done about the Windows features that WSL needs.
    pub(crate) features: Features,
    /// `.wslconfig`.
    pub(crate) config: WslConfig,
    /// Files that were probably meant to be `.wslconfig`.
    pub(crate) misnamed: Vec<String>,
    /// The virtual machine, if it runs.
    pub(crate) vm: Option<Vm>,
    /// The version of `yolo` in the chosen distribution.
    pub(crate) program: Option<String>,
}

impl WindowsFacts {
    /// The facts of this PC.
    pub(super) fn of(host: &Host, wanted: Option<&str>, features: Features) -> Result<Self, WslError> {
        let profile = host.windows_profile().map_err(WslError::Unknown)?;
        let facts = Self {
            // A program for x86-64 is emulated there, and is told that this is its processor.
            architecture: match host.is_arm_windows() {
                true => "aarch64".to_owned(),
                false => host.arch().map_err(WslError::Unknown)?,
            },
            is_server: host.is_windows_server(),
            pc: host.windows_pc().ok(),
            virtualization: host.virtualization().ok(),
            wsl: WslInstallation::default(),
            features,
            config: host.wslconfig_in(&profile).map_err(WslError::Unknown)?,
            misnamed: host.misnamed_wslconfigs(&profile),
            vm: None,
            program: None,
        };
        facts.with_wsl_of(host, wanted)
    }

    /// The facts after a step: what a step can change is asked again. The PC stays the same, and
    /// PowerShell takes seconds.
    pub(super) fn after_step(
        &self,
        host: &Host,
        wanted: Option<&str>,
        features: Features,
    ) -> Result<Self, WslError> {
        let profile = host.windows_profile().map_err(WslError::Unknown)?;
        let config = host.wslconfig_in(&profile).map_err(WslError::Unknown)?;
        let facts = Self { config, features, vm: None, program: None, ..self.clone() };
        facts.with_wsl_of(host, wanted)
    }

    fn with_wsl_of(mut self, host: &Host, wanted: Option<&str>) -> Result<Self, WslError> {
        self.wsl = host.wsl_installation().map_err(WslError::Unknown)?;
        let chosen = choose_distribution(&self.wsl, wanted).filter(|chosen| chosen.version == 2);
        if let (None, Some(chosen)) = (self.wsl.trouble, chosen) {
            let name = chosen.name.clone();
            if host.is_wsl_running().map_err(WslError::Unknown)? {
                self.vm = host.wsl_vm_of(&name).map_err(WslError::Unknown)?;
            }
            self.program = program_version(host, &name)?;
        }
        Ok(self)
    }
}

/// The distribution to use: the one named, else the default one, else any of version 2. Docker and
/// the like bring helper distributions, which do not count.
pub(super) fn choose_distribution<'a>(
    wsl: &'a WslInstallation,
    wanted: Option<&str>,
) -> Option<&'a Distribution> {
    if let Some(name) = wanted {
        return wsl.distributions.iter().find(|one| one.name.eq_ignore_ascii_case(name));
    }
    let usable = || wsl.distributions.iter().filter(|one| one.is_usable());
    usable()
        .find(|one| one.default && one.version == 2)
        .or_else(|| usable().find(|one| one.version == 2))
        .or_else(|| usable().find(|one| one.default))
        .or_else(|| usable().next())
}

/// The version of `yolo` in a distribution.
fn program_version(host: &Host, distribution: &str) -> Result<Option<String>, WslError> {
    let arguments = ["-d", distribution, "-u", "root", "--exec", PROGRAM, "--version"];
    let output = host.wsl_exe(&arguments).map_err(WslError::Unknown)?;
    let text = output.filter(|output| output.succeeded()).map(|output| output.text()).unwrap_or_default();
    Ok(text.trim().strip_prefix("yolo ").map(str::to_owned))
}
