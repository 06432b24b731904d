//! From the facts of a PC to the steps that it needs: a pure function, so that every PC can be
//! tested on any machine. The plan assumes that each step succeeds; it is made again after every
//! step, from new facts.

use serde::Serialize;
use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::wsl::exe_output::Trouble;
use yolo_checks::wsl::sizing::{Proposal, Training, propose};
use yolo_checks::wsl::vm::differences;

use super::error::remedy;
use super::exe::WslExe;
use super::facts::{LEAST_BUILD, LEAST_KERNEL, PcFacts, REGISTERS_WITHOUT_LAUNCH};

/// The distribution that is installed where there is none.
const DISTRIBUTION: &str = "Ubuntu";
/// Unpacks the archive that comes in on stdin, and exchanges it for what was there, as root. Without
/// double quotes and backslashes, which Windows' command lines would change.
pub(super) const UNPACK: &str = "set -e; mkdir -p /opt /usr/local/bin; cd /opt; rm -rf .yolo-new .yolo-old; \
    mkdir .yolo-new; tar -xzf - -C .yolo-new --strip-components=1; if [ -e yolo ]; then mv yolo .yolo-old; fi; \
    mv .yolo-new yolo; rm -rf .yolo-old; ln -sfn /opt/yolo/yolo /usr/local/bin/yolo";

/// One step. Its command is what a person could type instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// WSL and the Windows features under it.
    InstallWsl,
    /// A newer WSL, with its kernel.
    UpdateWsl,
    /// Windows must start anew.
    RestartWindows,
    /// New distributions shall be of version 2.
    DefaultVersion,
    /// A distribution of this name.
    InstallDistribution(String),
    /// Version 2 for this distribution.
    ConvertDistribution(String),
    /// Values of `.wslconfig`.
    WriteConfig(Vec<Proposal>),
    /// The virtual machine must start anew.
    Shutdown(String),
    /// The Linux program for this distribution.
    PutProgram(String),
    /// `yolo setup` there.
    SetUpInside(String),
}

/// What a step asks of the user, beyond time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Asks {
    /// Nothing.
    Nothing,
    /// Administrator's rights; Windows asks for them.
    Rights,
    /// That Windows is restarted.
    Restart,
    /// That every Linux program on this PC ends.
    EndOfLinux,
    /// That a distribution changes for good.
    Conversion,
}

/// The steps, or why there can be none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Why WSL 2 cannot run, and what to do.
    pub(super) blocked: Option<(String, String)>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    /// The distribution by name.
    pub(super) distribution: Option<String>,
    /// The training that the values shall suit.
    pub(super) training: Training,
}

impl Step {
    /// A stable name for programs.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::InstallWsl => "install-wsl",
            Self::UpdateWsl => "update-wsl",
            Self::RestartWindows => "restart-windows",
            Self::DefaultVersion => "default-version",
            Self::InstallDistribution(_) => "install-distribution",
            Self::ConvertDistribution(_) => "convert-distribution",
            Self::WriteConfig(_) => "write-config",
            Self::Shutdown(_) => "shutdown-wsl",
            Self::PutProgram(_) => "put-program",
            Self::SetUpInside(_) => "setup-inside",
        }
    }

    /// What it asks of the user.
    pub(super) fn asks(&self) -> Asks {
        match self {
            Self::InstallWsl => Asks::Rights,
            Self::UpdateWsl => Asks::Rights,
            Self::RestartWindows => Asks::Restart,
            Self::Shutdown(_) => Asks::EndOfLinux,
            Self::ConvertDistribution(_) => Asks::Conversion,
            _ => Asks::Nothing,
        }
    }

    /// The words after `wsl.exe`, for a step that `wsl.exe` takes.
    pub(super) fn words(&self) -> Option<Vec<&str>> {
        Some(match self {
            Self::InstallWsl => vec!["--install", "--no-distribution"],
            Self::UpdateWsl => vec!["--update"],
            Self::DefaultVersion => vec!["--set-default-version", "2"],
            Self::InstallDistribution(name) => vec!["--install", "-d", name, "--no-launch"],
            Self::ConvertDistribution(name) => vec!["--set-version", name, "2"],
            Self::Shutdown(_) => vec!["--shutdown"],
            Self::PutProgram(name) => vec!["-d", name, "-u", "root", "--exec", "sh", "-c", UNPACK],
            Self::SetUpInside(name) => vec!["-d", name, "--cd", "~", "--exec", "/opt/yolo/yolo", "setup"],
            Self::RestartWindows | Self::WriteConfig(_) => return None,
        })
    }

    /// The command as a person would type it.
    pub(super) fn command(&self) -> Option<String> {
        match self {
            Self::PutProgram(name) => {
                Some(format!("wsl.exe -d {name} -u root --exec sh -c \"… tar -xzf - …\""))
            }
            Self::RestartWindows => Some("shutdown.exe /r /t 0".to_owned()),
            step => step.words().map(|words| WslExe::words(&words)),
        }
    }

    /// What it does, without a full stop.
    pub(super) fn text(&self) -> String {
        match self {
            Self::InstallWsl => "install WSL and the Windows features that it needs".to_owned(),
            Self::UpdateWsl => "update WSL and its Linux kernel".to_owned(),
            Self::RestartWindows => "restart Windows, then type `yolo setup --wsl` again".to_owned(),
            Self::DefaultVersion => "let new distributions run under WSL 2".to_owned(),
            Self::InstallDistribution(name) => format!("download and install the Linux distribution {name}"),
            Self::ConvertDistribution(name) => {
                format!("convert {name} from WSL 1 to WSL 2, which takes minutes and keeps its files")
            }
            Self::WriteConfig(values) => {
                let values: Vec<_> = values.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
                format!("write {} into .wslconfig, and keep the rest of it", values.join(", "))
            }
            Self::Shutdown(why) => format!("end all Linux programs on this PC, so that {why}"),
            Self::PutProgram(name) => format!("put yolo {} into {name}", env!("CARGO_PKG_VERSION")),
            Self::SetUpInside(name) => format!("run `yolo setup` in {name}"),
        }
    }
}

/// The steps that bring a PC with these facts to where `yolo train` starts.
pub(super) fn plan(facts: &PcFacts, wishes: &Wishes) -> Plan {
    let mut plan = Plan { blocked: blocked(facts), ..Plan::default() };
    if plan.blocked.is_some() {
        return plan;
    }
    install(facts, &mut plan);
    let distribution = distribution(facts, wishes, &mut plan);
    configure(facts, wishes, &mut plan);
    if facts.program.as_deref() != Some(env!("CARGO_PKG_VERSION")) {
        plan.steps.push(Step::PutProgram(distribution.clone()));
    }
    plan.steps.push(Step::SetUpInside(distribution));
    plan
}

/// What no command of ours can mend.
fn blocked(facts: &PcFacts) -> Option<(String, String)> {
    if facts.architecture != "x86_64" {
        let why = format!(
            "its processor is {}, and libtorch with CUDA exists for x86-64 alone",
            facts.architecture
        );
        return Some((why, "use a PC with an Intel or AMD processor".to_owned()));
    }
    if let Some(build) = facts.pc.and_then(|pc| pc.windows_build).filter(|&build| build < LEAST_BUILD) {
        let why =
            format!("Windows is build {build}, and WSL 2 needs {LEAST_BUILD} (Windows 10 version 2004)");
        return Some((
            why,
            "install Windows' updates (Settings, Windows Update), then run this again".to_owned(),
        ));
    }
    if facts.wsl.too_old {
        let why = "its wsl.exe is older than `wsl --install`".to_owned();
        return Some((
            why,
            "install Windows' updates (Settings, Windows Update), then run this again".to_owned(),
        ));
    }
    if facts.virtualization == Some(false) || facts.wsl.trouble == Some(Trouble::VirtualizationOff) {
        let why = Trouble::VirtualizationOff.to_string();
        return Some((why, remedy(Trouble::VirtualizationOff).to_owned()));
    }
    None
}

/// WSL itself.
fn install(facts: &PcFacts, plan: &mut Plan) {
    let wsl = &facts.wsl;
    let features_off =
        matches!(wsl.trouble, Some(Trouble::FeatureOff | Trouble::NotInstalled | Trouble::NeedsRestart));
    if !wsl.exe || !wsl.status || features_off {
        // Installed already, and Windows has not started since.
        if !facts.restart_due {
            plan.steps.push(Step::InstallWsl);
        }
        plan.steps.push(Step::RestartWindows);
        plan.steps.push(Step::DefaultVersion);
        return;
    }
    let old_kernel =
        wsl.versions.and_then(|versions| versions.kernel).is_some_and(|kernel| kernel < LEAST_KERNEL);
    if wsl.versions.is_none() || old_kernel || wsl.trouble == Some(Trouble::KernelMissing) {
        plan.steps.push(Step::UpdateWsl);
    }
    if wsl.default_version == Some(1) {
        plan.steps.push(Step::DefaultVersion);
    }
}

/// The distribution to work in: the one named, else the default one, else any of version 2; the
/// helpers of Docker and its like are none.
fn distribution(facts: &PcFacts, wishes: &Wishes, plan: &mut Plan) -> String {
    let list = &facts.wsl.distributions;
    let chosen = match &wishes.distribution {
        Some(name) => list.iter().find(|one| one.name.eq_ignore_ascii_case(name)),
        None => {
            let usable = || list.iter().filter(|one| one.is_usable());
            usable()
                .find(|one| one.default && one.version == 2)
                .or_else(|| usable().find(|one| one.version == 2))
                .or_else(|| usable().find(|one| one.default))
                .or_else(|| usable().next())
        }
    };
    match chosen {
        Some(one) if one.version == 2 => one.name.clone(),
        Some(one) => {
            plan.steps.push(Step::ConvertDistribution(one.name.clone()));
            one.name.clone()
        }
        None => {
            let name = wishes.distribution.clone().unwrap_or_else(|| DISTRIBUTION.to_owned());
            let old = facts.wsl.versions.is_some_and(|versions| versions.wsl < REGISTERS_WITHOUT_LAUNCH);
            if old && !plan.steps.contains(&Step::UpdateWsl) {
                plan.steps.push(Step::UpdateWsl);
            }
            plan.steps.push(Step::InstallDistribution(name.clone()));
            plan.notes.push(format!(
                "{name} starts with the user root; `wsl.exe -d {name}` asks for a user of your own the first time"
            ));
            name
        }
    }
}

/// The name of the distribution that a plan without changes to the list of them would use.
pub(super) fn chosen(facts: &PcFacts, wishes: &Wishes) -> Option<String> {
    let mut steps = Plan::default();
    let name = distribution(facts, wishes, &mut steps);
    steps.steps.is_empty().then_some(name)
}

/// `.wslconfig`, and whether the virtual machine has its values.
fn configure(facts: &PcFacts, wishes: &Wishes, plan: &mut Plan) {
    let file = Document::parse(ConfigFile::WslConfig, facts.config.bytes.as_deref().unwrap_or_default());
    if let Some(misnamed) = &facts.config.misnamed {
        plan.notes.push(format!("WSL does not read {}: its file is called .wslconfig", misnamed.display()));
    }
    for found in file.problems() {
        let place = found.line.map_or_else(String::new, |line| format!(" line {line}"));
        plan.notes.push(format!(".wslconfig{place}: {}", found.problem));
    }
    let Some(pc) = facts.pc else {
        plan.notes.push("this PC's memory could not be found out, so .wslconfig stays as it is".to_owned());
        return;
    };
    let proposals = propose(&pc, &wishes.training, &file);
    plan.notes.extend(proposals.warnings);
    let changes: Vec<Proposal> = proposals.values.into_iter().filter(Proposal::changes).collect();
    let due = match &facts.vm {
        None => None,
        Some(_) if !changes.is_empty() => Some("the new values take effect".to_owned()),
        Some(vm) => differences(&file, Some(&pc), vm).first().map(|one| {
            format!("{}={} of .wslconfig takes effect: WSL still has {}", one.key, one.asked, one.has)
        }),
    };
    if !changes.is_empty() {
        plan.steps.push(Step::WriteConfig(changes));
    }
    plan.steps.extend(due.map(Step::Shutdown));
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
