//! The steps inside WSL: a pure function of the facts.

use yolo_base::format;
use yolo_checks::shell_quote::quote;
use yolo_checks::wsl::config::Document;
use yolo_checks::wsl::sizing::{Pc, Proposal, Training, propose};
use yolo_checks::wsl::vm::{Difference, differences};
use yolo_checks::wsl::{DRIVER_LIBRARIES, LOADER_FILE};

use super::facts::LinuxFacts;
use crate::setup::wsl::config;

/// A clock that differs from that of Windows by more seconds breaks TLS and confuses cargo.
const HARMLESS_SKEW: i64 = 2;

/// What to do, and what else the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LinuxPlan {
    pub(crate) steps: Vec<LinuxStep>,
    pub(crate) notes: Vec<String>,
}

/// One step, or something that only the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinuxStep {
    /// Write values of `.wslconfig`.
    WriteConfig(Vec<Proposal>),
    /// Let the loader search the folder of the driver's libraries.
    Loader,
    /// `/etc/wsl.conf` keeps WSL from configuring the loader.
    LoaderForbidden,
    /// This clock is ahead of that of Windows by so many seconds; negative if it is behind.
    Clock(i64),
    /// A folder of a run is on a Windows drive.
    SlowFolder { what: &'static str, path: String },
    /// Restart the virtual machine, for this reason.
    Shutdown(String),
    /// A value has no effect although WSL has restarted since.
    NotTaken(Difference),
}

impl LinuxStep {
    /// A stable name for programs.
    pub(crate) fn id(&self) -> &'static str {
        match self {
            Self::WriteConfig(_) => "write-config",
            Self::Loader => "loader-path",
            Self::LoaderForbidden => "loader-forbidden",
            Self::Clock(_) => "clock",
            Self::SlowFolder { .. } => "slow-folder",
            Self::Shutdown(_) => "shutdown-wsl",
            Self::NotTaken(_) => "not-taken",
        }
    }

    /// What to type for it.
    pub(crate) fn command(&self) -> Option<String> {
        Some(match self {
            Self::Loader => format!("echo {DRIVER_LIBRARIES} | sudo tee {LOADER_FILE} && sudo ldconfig"),
            Self::Clock(_) => "sudo hwclock -s".to_owned(),
            Self::SlowFolder { path, .. } => format!("cp -r {} ~/", quote(path)),
            Self::Shutdown(_) => "wsl.exe --shutdown".to_owned(),
            Self::WriteConfig(_) | Self::LoaderForbidden | Self::NotTaken(_) => return None,
        })
    }

    /// What it does, or what is wrong, without a period.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::WriteConfig(values) => {
                let values: Vec<_> = values.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
                format!("set {} in .wslconfig, leaving the rest of the file unchanged", values.join(", "))
            }
            Self::Loader => format!(
                "the loader does not search {DRIVER_LIBRARIES}, where the Windows driver puts libcuda.so.1"
            ),
            Self::LoaderForbidden => {
                "ldconfig=false in /etc/wsl.conf prevents the loader from finding libcuda.so.1; remove that line"
                    .to_owned()
            }
            Self::Clock(skew) if *skew < 0 => {
                format!("the clock is {} behind the Windows clock", format::duration(-*skew as f64))
            }
            Self::Clock(skew) => {
                format!("the clock is {} ahead of the Windows clock", format::duration(*skew as f64))
            }
            Self::SlowFolder { what, path } => {
                format!(
                    "{what} ({path}) is on a Windows drive, which Linux reads many times more slowly: move it to the Linux disk"
                )
            }
            Self::Shutdown(why) => format!("restart WSL: {why}"),
            Self::NotTaken(one) => format!(
                ".wslconfig asks for {}={}, but WSL still uses {} after a restart",
                one.key, one.asked, one.has
            ),
        }
    }
}

/// The steps for these facts.
pub(super) fn plan(facts: &LinuxFacts, training: &Training) -> LinuxPlan {
    let mut plan = LinuxPlan { notes: config::notes(&facts.config, &facts.misnamed), ..LinuxPlan::default() };
    configure(facts, training, &mut plan);
    let steps = &mut plan.steps;
    if facts.has_driver && !facts.loader_finds_driver {
        steps.push(if facts.is_ldconfig_off { LinuxStep::LoaderForbidden } else { LinuxStep::Loader });
    }
    if let Some(skew) = facts.skew.filter(|skew| skew.abs() > HARMLESS_SKEW) {
        steps.push(LinuxStep::Clock(skew));
    }
    let slow = facts.slow_folders.iter();
    steps.extend(slow.map(|(what, path)| LinuxStep::SlowFolder { what, path: path.clone() }));
    plan
}

/// `.wslconfig`, and whether the virtual machine has its values.
fn configure(facts: &LinuxFacts, training: &Training, plan: &mut LinuxPlan) {
    let file = &facts.config.document;
    let mut changes = Vec::new();
    match pc_or_estimate(facts, file) {
        Some(pc) => {
            let proposals = propose(&pc, training, file);
            plan.notes.extend(proposals.warnings);
            changes.extend(proposals.values.into_iter().filter(Proposal::changes));
        }
        None => plan.notes.push(
            "cannot read this PC's memory size from inside WSL (interop with Windows is off), so .wslconfig is left unchanged"
                .to_owned(),
        ),
    }
    if !changes.is_empty() {
        plan.steps.push(LinuxStep::WriteConfig(changes));
        plan.steps.push(LinuxStep::Shutdown("the new values then take effect".to_owned()));
        return;
    }
    for one in differences(file, facts.pc.as_ref(), &facts.vm) {
        if facts.started_since_config {
            plan.steps.push(LinuxStep::NotTaken(one));
        } else {
            let why = format!(
                "{}={} of .wslconfig then takes effect; WSL still has {}",
                one.key, one.asked, one.has
            );
            plan.steps.push(LinuxStep::Shutdown(why));
            break;
        }
    }
}

/// The PC or, where Windows does not answer and the file does not limit the virtual machine, what
/// follows from WSL's defaults: half of the memory and all CPUs.
pub(super) fn pc_or_estimate(facts: &LinuxFacts, file: &Document) -> Option<Pc> {
    facts.pc.or_else(|| {
        let has_defaults =
            file.value("wsl2", "memory").is_none() && file.value("wsl2", "processors").is_none();
        has_defaults.then(|| Pc {
            memory: facts.vm.memory.saturating_mul(2),
            processors: facts.vm.processors,
            windows_build: None,
            swap_disk_free: facts.drive_free,
        })
    })
}
