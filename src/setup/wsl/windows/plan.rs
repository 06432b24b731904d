//! The steps that a Windows PC needs: a pure function of its facts, so that every PC can be tested
//! on any machine. The plan assumes that each step succeeds; it is computed again after every step,
//! from new facts.

use serde::Serialize;
use yolo_checks::wsl::exe_output::{Trouble, Version};
use yolo_checks::wsl::sizing::{Proposal, propose};
use yolo_checks::wsl::vm::differences;

use super::facts::{WindowsFacts, choose_distribution};
use crate::setup::wsl::WslRequest;
use crate::setup::wsl::config;
use crate::setup::wsl::error::remedy;
use crate::setup::wsl::exe::{PROGRAM, WslExe};
use crate::undo::Step;

/// The first build of Windows that has `wsl --install` and WSL 2: Windows 10 version 2004.
const LEAST_BUILD: u32 = 19041;
/// The first WSL whose `--install --no-launch` leaves a usable distribution: before, only the first
/// launch registered it (release notes of WSL 2.4.4).
const REGISTERS_WITHOUT_LAUNCH: Version = Version([2, 4, 4, 0]);
/// The kernel that NVIDIA requires (CUDA on WSL user guide, section 5).
const LEAST_KERNEL: Version = Version([5, 10, 16, 3]);
/// The distribution to install if there is none.
const DISTRIBUTION: &str = "Ubuntu";
/// Unpacks the archive from stdin and puts it in the place of an older one, as root.
// Invariant: no double quotes and no backslashes, which the command lines of Windows would change.
pub(super) const UNPACK: &str = "set -e; mkdir -p /opt /usr/local/bin; cd /opt; rm -rf .yolo-new .yolo-old; \
    mkdir .yolo-new; tar -xzf - -C .yolo-new --strip-components=1; if [ -e yolo ]; then mv yolo .yolo-old; fi; \
    mv .yolo-new yolo; rm -rf .yolo-old; ln -sfn /opt/yolo/yolo /usr/local/bin/yolo";

/// One step. Its command is what a person could type instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WindowsStep {
    /// Install WSL and the Windows features that it needs.
    InstallWsl,
    /// Update WSL and its kernel.
    UpdateWsl,
    /// The user restarts Windows.
    RestartWindows,
    /// Make version 2 the default for new distributions.
    DefaultVersion,
    /// Install the distribution of this name.
    InstallDistribution(String),
    /// Convert this distribution to version 2.
    ConvertDistribution(String),
    /// Write values of `.wslconfig`.
    WriteConfig(Vec<Proposal>),
    /// Stop the virtual machine, for this reason.
    Shutdown(String),
    /// Copy the Linux program into this distribution.
    PutProgram(String),
    /// Run `yolo setup` in this distribution.
    SetUpInside(String),
}

/// What a step needs from the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// Administrator rights; Windows asks for them.
    Rights,
    /// A restart of Windows.
    Restart,
    /// Consent to stopping every Linux program on this PC.
    EndOfLinux,
    /// Consent to changing a distribution for good.
    Conversion,
}

/// What `yolo undo` says about a step.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) what: String,
    /// How it is taken back.
    pub(super) steps: Vec<Step>,
    /// Why it stays, or what of it.
    pub(super) stays: Option<&'static str>,
    /// What a person can type instead.
    pub(super) by_hand: Option<String>,
}

/// The steps, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WindowsPlan {
    pub(crate) steps: Vec<WindowsStep>,
    /// Why WSL 2 cannot run, and what to do.
    pub(crate) blocked: Option<Blocked>,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

/// Why WSL 2 cannot run on a PC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) why: String,
    /// What the user can do.
    pub(crate) remedy: String,
}

impl WindowsStep {
    /// A stable name for programs.
    pub(crate) fn id(&self) -> &'static str {
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

    /// What it needs from the user.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::InstallWsl => Needs::Rights,
            Self::UpdateWsl => Needs::Rights,
            Self::RestartWindows => Needs::Restart,
            Self::Shutdown(_) => Needs::EndOfLinux,
            Self::ConvertDistribution(_) => Needs::Conversion,
            _ => Needs::Nothing,
        }
    }

    /// What `yolo undo` says about it; `None` for a step that changes nothing by itself.
    pub(super) fn note(&self) -> Option<Note> {
        let note = |what: String, stays: &'static str, by_hand: Option<String>| {
            Some(Note { what, steps: Vec::new(), stays: Some(stays), by_hand })
        };
        match self {
            Self::InstallWsl => note(
                "installed WSL and the Windows features that it needs".to_owned(),
                "other programs and distributions may use WSL by now",
                None,
            ),
            Self::UpdateWsl => {
                note("updated WSL".to_owned(), "Windows has no older version to go back to", None)
            }
            Self::DefaultVersion => note(
                "made version 2 the default for new WSL distributions".to_owned(),
                "distributions that were installed since depend on it",
                Some("wsl.exe --set-default-version 1".to_owned()),
            ),
            Self::InstallDistribution(name) => note(
                format!("installed the WSL distribution {name}"),
                "it may hold your files by now, and unregistering a distribution deletes all of them",
                None,
            ),
            Self::ConvertDistribution(name) => note(
                format!("converted the WSL distribution {name} to version 2"),
                "converting a distribution moves all of its files",
                Some(WslExe::command_line(&["--set-version", name, "1"])),
            ),
            Self::PutProgram(name) => Some(Note {
                what: format!("installed yolo in the WSL distribution {name}"),
                steps: vec![Step::LinuxProgram { distribution: name.clone() }],
                stays: Some(
                    "what `yolo setup` installed inside the distribution; `yolo undo` inside it lists that, as \
                     long as yolo is there",
                ),
                by_hand: None,
            }),
            Self::RestartWindows | Self::WriteConfig(_) | Self::Shutdown(_) | Self::SetUpInside(_) => None,
        }
    }

    /// The arguments of `wsl.exe`, for a step that it runs.
    pub(super) fn arguments(&self) -> Option<Vec<&str>> {
        Some(match self {
            Self::InstallWsl => vec!["--install", "--no-distribution"],
            Self::UpdateWsl => vec!["--update"],
            Self::DefaultVersion => vec!["--set-default-version", "2"],
            Self::InstallDistribution(name) => vec!["--install", "-d", name, "--no-launch"],
            Self::ConvertDistribution(name) => vec!["--set-version", name, "2"],
            Self::Shutdown(_) => vec!["--shutdown"],
            Self::PutProgram(name) => vec!["-d", name, "-u", "root", "--exec", "sh", "-c", UNPACK],
            Self::SetUpInside(name) => vec!["-d", name, "--cd", "~", "--exec", PROGRAM, "setup"],
            Self::RestartWindows | Self::WriteConfig(_) => return None,
        })
    }

    /// The command as a person would type it.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::PutProgram(name) => {
                Some(format!("wsl.exe -d {name} -u root --exec sh -c \"… tar -xzf - …\""))
            }
            Self::RestartWindows => Some("shutdown.exe /r /t 0".to_owned()),
            step => step.arguments().map(|arguments| WslExe::command_line(&arguments)),
        }
    }

    /// What it does, without a period.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::InstallWsl => "install WSL and the Windows features that it needs".to_owned(),
            Self::UpdateWsl => "update WSL and its Linux kernel".to_owned(),
            Self::RestartWindows => "restart Windows, then run `yolo setup --wsl` again".to_owned(),
            Self::DefaultVersion => "make WSL 2 the default for new distributions".to_owned(),
            Self::InstallDistribution(name) => format!("download and install the Linux distribution {name}"),
            Self::ConvertDistribution(name) => {
                format!("convert {name} from WSL 1 to WSL 2, which takes minutes and keeps its files")
            }
            Self::WriteConfig(values) => {
                let values: Vec<_> = values.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
                format!("set {} in .wslconfig, leaving the rest of the file unchanged", values.join(", "))
            }
            Self::Shutdown(why) => format!("stop all Linux programs on this PC, so that {why}"),
            Self::PutProgram(name) => format!("install yolo {} in {name}", env!("CARGO_PKG_VERSION")),
            Self::SetUpInside(name) => format!("run `yolo setup` in {name}"),
        }
    }
}

/// The steps that bring a PC with these facts to where `yolo train` starts.
pub(super) fn plan(facts: &WindowsFacts, request: &WslRequest) -> WindowsPlan {
    let mut plan = WindowsPlan { blocked: blocked(facts), ..WindowsPlan::default() };
    if plan.blocked.is_some() {
        return plan;
    }
    install(facts, &mut plan);
    let distribution = distribution(facts, request.distribution.as_deref(), &mut plan);
    configure(facts, request, &mut plan);
    if facts.program.as_deref() != Some(env!("CARGO_PKG_VERSION")) {
        plan.steps.push(WindowsStep::PutProgram(distribution.clone()));
    }
    plan.steps.push(WindowsStep::SetUpInside(distribution));
    plan
}

/// What no step can fix.
fn blocked(facts: &WindowsFacts) -> Option<Blocked> {
    const UPDATE: &str = "install Windows updates (Settings > Windows Update), then run this again";
    let blocked = |why: String, remedy: &str| Some(Blocked { why, remedy: remedy.to_owned() });
    if facts.architecture != "x86_64" {
        let why = format!("its CPU is {}, and libtorch with CUDA exists for x86-64 only", facts.architecture);
        return blocked(why, "use a PC with an Intel or AMD CPU");
    }
    if let Some(build) = facts.pc.and_then(|pc| pc.windows_build).filter(|&build| build < LEAST_BUILD) {
        let why =
            format!("Windows is build {build}, and WSL 2 needs {LEAST_BUILD} (Windows 10 version 2004)");
        return blocked(why, UPDATE);
    }
    if facts.wsl.is_too_old {
        return blocked("its wsl.exe is too old and does not support `wsl --install`".to_owned(), UPDATE);
    }
    if facts.virtualization == Some(false) || facts.wsl.trouble == Some(Trouble::VirtualizationOff) {
        return blocked(Trouble::VirtualizationOff.to_string(), remedy(Trouble::VirtualizationOff));
    }
    // An installation would fail in the same way.
    if let Some(trouble @ Trouble::ServiceDisabled) = facts.wsl.trouble {
        return blocked(trouble.to_string(), remedy(trouble));
    }
    None
}

/// WSL itself.
fn install(facts: &WindowsFacts, plan: &mut WindowsPlan) {
    let wsl = &facts.wsl;
    let features_off =
        matches!(wsl.trouble, Some(Trouble::FeatureOff | Trouble::NotInstalled | Trouble::NeedsRestart));
    if !wsl.has_exe || !wsl.works || features_off {
        // Installed already, but Windows has not restarted since.
        if !facts.restart_due {
            plan.steps.push(WindowsStep::InstallWsl);
        }
        plan.steps.push(WindowsStep::RestartWindows);
        plan.steps.push(WindowsStep::DefaultVersion);
        return;
    }
    let old_kernel =
        wsl.versions.and_then(|versions| versions.kernel).is_some_and(|kernel| kernel < LEAST_KERNEL);
    if wsl.versions.is_none() || old_kernel || wsl.trouble == Some(Trouble::KernelMissing) {
        plan.steps.push(WindowsStep::UpdateWsl);
    }
    if wsl.default_version == Some(1) {
        plan.steps.push(WindowsStep::DefaultVersion);
    }
}

/// The name of the distribution to use, which is installed or converted where necessary.
fn distribution(facts: &WindowsFacts, wanted: Option<&str>, plan: &mut WindowsPlan) -> String {
    if let Some(chosen) = choose_distribution(&facts.wsl, wanted) {
        if chosen.version != 2 {
            plan.steps.push(WindowsStep::ConvertDistribution(chosen.name.clone()));
        }
        return chosen.name.clone();
    }
    let name = wanted.unwrap_or(DISTRIBUTION).to_owned();
    let old = facts.wsl.versions.is_some_and(|versions| versions.wsl < REGISTERS_WITHOUT_LAUNCH);
    if old && !plan.steps.contains(&WindowsStep::UpdateWsl) {
        plan.steps.push(WindowsStep::UpdateWsl);
    }
    plan.steps.push(WindowsStep::InstallDistribution(name.clone()));
    plan.notes.push(format!("{name} starts as root; to create a user, run `wsl.exe -d {name}` once"));
    name
}

/// `.wslconfig`, and whether the virtual machine has its values.
fn configure(facts: &WindowsFacts, request: &WslRequest, plan: &mut WindowsPlan) {
    let file = &facts.config.document;
    plan.notes.extend(config::notes(&facts.config, &facts.misnamed));
    let Some(pc) = facts.pc else {
        plan.notes.push("cannot read this PC's memory size, so .wslconfig is left unchanged".to_owned());
        return;
    };
    let proposals = propose(&pc, &request.training, file);
    plan.notes.extend(proposals.warnings);
    let changes: Vec<Proposal> = proposals.values.into_iter().filter(Proposal::changes).collect();
    let reason = match &facts.vm {
        None => None,
        Some(_) if !changes.is_empty() => Some("the new values take effect".to_owned()),
        Some(vm) => differences(file, Some(&pc), vm).first().map(|one| {
            format!("{}={} of .wslconfig takes effect: WSL still has {}", one.key, one.asked, one.has)
        }),
    };
    if !changes.is_empty() {
        plan.steps.push(WindowsStep::WriteConfig(changes));
    }
    plan.steps.extend(reason.map(WindowsStep::Shutdown));
}

#[cfg(test)]
mod tests {
    use yolo_checks::facts::{WslConfig, WslInstallation};
    use yolo_checks::wsl::config::{ConfigFile, Document};
    use yolo_checks::wsl::exe_output::{Distribution, Versions};
    use yolo_checks::wsl::sizing::Pc;
    use yolo_checks::wsl::vm::Vm;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn distribution(name: &str, default: bool, version: u8) -> Distribution {
        Distribution { name: name.to_owned(), default, state: "Stopped".to_owned(), version }
    }

    fn config(text: &str) -> WslConfig {
        let document = Document::parse(ConfigFile::WslConfig, text.as_bytes());
        WslConfig { path: ".wslconfig".to_owned(), is_there: !text.is_empty(), document, modified: None }
    }

    /// A PC of 16 GB on which WSL is installed, with Ubuntu and with `yolo` in it.
    fn healthy() -> WindowsFacts {
        WindowsFacts {
            architecture: "x86_64".to_owned(),
            pc: Some(Pc {
                memory: 16 * GIB,
                processors: 8,
                windows_build: Some(22631),
                swap_disk_free: Some(100 * GIB),
            }),
            virtualization: Some(true),
            wsl: WslInstallation {
                has_exe: true,
                works: true,
                versions: Some(Versions {
                    wsl: Version([2, 5, 7, 0]),
                    kernel: Some(Version([6, 6, 87, 1])),
                    windows: None,
                }),
                default_version: Some(2),
                distributions: vec![distribution("Ubuntu", true, 2)],
                ..WslInstallation::default()
            },
            restart_due: false,
            config: config("[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\nprocessors=8\r\n"),
            misnamed: Vec::new(),
            vm: None,
            program: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }
    }

    fn steps(facts: &WindowsFacts) -> Vec<&'static str> {
        plan(facts, &WslRequest::default()).steps.iter().map(WindowsStep::id).collect()
    }

    #[test]
    fn a_complete_pc_only_runs_setup_inside() {
        assert_eq!(steps(&healthy()), ["setup-inside"]);
    }

    #[test]
    fn a_pc_with_nothing_gets_everything() {
        let bare =
            WindowsFacts { wsl: WslInstallation::default(), program: None, config: config(""), ..healthy() };
        let all = [
            "install-wsl",
            "restart-windows",
            "default-version",
            "install-distribution",
            "write-config",
            "put-program",
            "setup-inside",
        ];
        assert_eq!(steps(&bare), all);
        // After the step, before the restart.
        assert_eq!(steps(&WindowsFacts { restart_due: true, ..bare }), all[1..]);
    }

    #[test]
    fn features_that_are_off_are_installed() {
        for trouble in [Trouble::FeatureOff, Trouble::NeedsRestart] {
            let mut facts = healthy();
            facts.wsl.trouble = Some(trouble);
            assert_eq!(steps(&facts)[..2], ["install-wsl", "restart-windows"]);
        }
    }

    #[test]
    fn the_wsl_that_came_with_windows_and_old_kernels_are_updated() {
        let mut facts = healthy();
        facts.wsl.versions = None;
        facts.wsl.default_version = Some(1);
        assert_eq!(steps(&facts), ["update-wsl", "default-version", "setup-inside"]);
        let mut facts = healthy();
        facts.wsl.versions = Some(Versions {
            wsl: Version([0, 50, 2, 0]),
            kernel: Some(Version([5, 4, 72, 0])),
            windows: None,
        });
        assert_eq!(steps(&facts)[0], "update-wsl");
    }

    #[test]
    fn a_wsl_that_only_downloads_distributions_is_updated_before_one_is_installed() {
        let mut facts = healthy();
        facts.wsl.versions.as_mut().unwrap().wsl = Version([2, 3, 26, 0]);
        assert_eq!(steps(&facts), ["setup-inside"]);
        facts.wsl.distributions.clear();
        assert_eq!(steps(&facts), ["update-wsl", "install-distribution", "setup-inside"]);
    }

    #[test]
    fn the_distribution_is_the_default_one_without_helpers() {
        let chosen_of = |list: Vec<Distribution>, wish: Option<&str>| {
            let mut facts = healthy();
            facts.wsl.distributions = list;
            let request = WslRequest { distribution: wish.map(str::to_owned), ..WslRequest::default() };
            let plan = plan(&facts, &request);
            let names: Vec<String> = plan
                .steps
                .iter()
                .filter_map(|step| match step {
                    WindowsStep::InstallDistribution(name) => Some(format!("install {name}")),
                    WindowsStep::ConvertDistribution(name) => Some(format!("convert {name}")),
                    WindowsStep::SetUpInside(name) => Some(name.clone()),
                    _ => None,
                })
                .collect();
            names.join(", ")
        };
        let docker = distribution("docker-desktop", true, 2);
        let debian = distribution("Debian", false, 2);
        let old = distribution("Ubuntu-20.04", false, 1);
        assert_eq!(chosen_of(vec![docker.clone(), old.clone(), debian.clone()], None), "Debian");
        assert_eq!(chosen_of(vec![docker.clone(), old.clone()], None), "convert Ubuntu-20.04, Ubuntu-20.04");
        assert_eq!(chosen_of(vec![docker], None), "install Ubuntu, Ubuntu");
        assert_eq!(
            chosen_of(vec![debian.clone(), old], Some("ubuntu-20.04")),
            "convert Ubuntu-20.04, Ubuntu-20.04"
        );
        assert_eq!(chosen_of(vec![debian], Some("Ubuntu-24.04")), "install Ubuntu-24.04, Ubuntu-24.04");
    }

    #[test]
    fn what_no_step_can_fix_blocks_the_plan() {
        let blocked = |facts: WindowsFacts| {
            let plan = plan(&facts, &WslRequest::default());
            assert_eq!(plan.steps, []);
            plan.blocked.unwrap().why
        };
        let mut old = healthy();
        old.pc.as_mut().unwrap().windows_build = Some(18363);
        assert!(blocked(old).contains("build 18363, and WSL 2 needs 19041"));
        assert!(
            blocked(WindowsFacts { virtualization: Some(false), ..healthy() })
                .contains("virtualization is off")
        );
        let mut reported = healthy();
        reported.wsl.trouble = Some(Trouble::VirtualizationOff);
        assert!(blocked(reported).contains("virtualization is off"));
        assert!(
            blocked(WindowsFacts { architecture: "aarch64".to_owned(), ..healthy() }).contains("aarch64")
        );
        let mut ancient = healthy();
        ancient.wsl.is_too_old = true;
        assert!(blocked(ancient).contains("too old"));
    }

    #[test]
    fn unsuitable_values_are_written_and_a_running_wsl_is_restarted() {
        let mut facts = healthy();
        facts.config = config("[wsl2]\r\nmemory=8\r\nswap=2GB\r\nprocessors=8\r\n");
        assert_eq!(steps(&facts), ["write-config", "setup-inside"]);
        let plan_now = plan(&facts, &WslRequest::default());
        assert!(plan_now.notes.iter().any(|note| note.contains("means 8 bytes")), "{:?}", plan_now.notes);
        facts.vm = Some(Vm { memory: 250 << 20, swap: 2 * GIB, processors: 8 });
        assert_eq!(steps(&facts), ["write-config", "shutdown-wsl", "setup-inside"]);
    }

    #[test]
    fn a_virtual_machine_older_than_the_file_is_restarted() {
        let mut facts = healthy();
        facts.vm = Some(Vm { memory: 7 * GIB + (800 << 20), swap: 2 * GIB, processors: 8 });
        assert_eq!(steps(&facts), ["setup-inside"]);
        facts.vm = Some(Vm { memory: 4 * GIB, swap: 2 * GIB, processors: 8 });
        assert_eq!(steps(&facts), ["shutdown-wsl", "setup-inside"]);
    }

    #[test]
    fn a_pc_whose_size_is_unknown_keeps_its_file() {
        let facts = WindowsFacts { pc: None, ..healthy() };
        assert_eq!(steps(&facts), ["setup-inside"]);
    }

    #[test]
    fn steps_ask_for_rights_restarts_and_shutdowns() {
        let step = WindowsStep::InstallWsl;
        assert_eq!(
            (step.needs(), step.command().as_deref()),
            (Needs::Rights, Some("wsl.exe --install --no-distribution"))
        );
        assert_eq!(WindowsStep::Shutdown(String::new()).needs(), Needs::EndOfLinux);
        assert_eq!(WindowsStep::RestartWindows.needs(), Needs::Restart);
        assert!(!UNPACK.contains(['"', '\\']), "Windows' command lines would change it");
    }
}
