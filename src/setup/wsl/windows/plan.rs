//! The steps that a Windows PC needs: a pure function of its facts, so that every PC can be tested
//! on any machine. The plan assumes that each step succeeds; it is computed again after every step,
//! from new facts.

use yolo_checks::wsl::exe_output::{Trouble, Version, is_helper};
use yolo_checks::wsl::old_windows::OldWindows;
use yolo_checks::wsl::sizing::{Proposal, propose};
use yolo_checks::wsl::vm::differences;

use super::facts::{WindowsFacts, choose_distribution};
use super::restart::Features;
use super::step::WindowsStep;
use crate::setup::wsl::WslRequest;
use crate::setup::wsl::config;
use crate::setup::wsl::error::remedy;

/// The first WSL whose `--install --no-launch` leaves a usable distribution: before, only the first
/// launch registered it (release notes of WSL 2.4.4).
const REGISTERS_WITHOUT_LAUNCH: Version = Version([2, 4, 4, 0]);
/// The kernel that NVIDIA requires (CUDA on WSL user guide, section 5).
const LEAST_KERNEL: Version = Version([5, 10, 16, 3]);
/// The distribution to install if there is none.
const DISTRIBUTION: &str = "Ubuntu";

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

/// The steps that bring a PC with these facts to where `yolo train` starts.
pub(super) fn plan(facts: &WindowsFacts, request: &WslRequest) -> WindowsPlan {
    let mut plan = WindowsPlan { blocked: blocked(facts, request), ..WindowsPlan::default() };
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
fn blocked(facts: &WindowsFacts, request: &WslRequest) -> Option<Blocked> {
    const UPDATE: &str = "install Windows updates (Settings > Windows Update), then run this again";
    let blocked = |why: String, remedy: &str| Some(Blocked { why, remedy: remedy.to_owned() });
    if let Some(name) = request.distribution.as_deref().filter(|name| is_helper(name)) {
        let why = format!("{name} belongs to another program, such as Docker Desktop, and is not for users");
        return blocked(why, "omit --distribution, or name another one, such as Ubuntu");
    }
    if facts.architecture != "x86_64" {
        let why = format!("its CPU is {}, and libtorch with CUDA exists for x86-64 only", facts.architecture);
        return blocked(why, "use a PC with an Intel or AMD CPU");
    }
    let build = facts.pc.and_then(|pc| pc.windows_build);
    if let Some(old) = build.and_then(|build| OldWindows::of(build, facts.is_server)) {
        return blocked(
            format!("it has {}, and today's WSL 2 needs {}", old.name(), old.needed()),
            old.remedy(),
        );
    }
    if facts.wsl.is_too_old {
        return blocked("its wsl.exe is too old and does not support `wsl --install`".to_owned(), UPDATE);
    }
    if facts.virtualization == Some(false) {
        return blocked(
            "virtualization is off in its firmware, so no virtual machine can start".to_owned(),
            "enable virtualization (Intel VT-x, AMD SVM) in the PC's firmware, then run this again",
        );
    }
    // WSL says the same if only the optional component is off, which a step turns on. Once Windows has restarted with
    // it, something else is wrong.
    if facts.wsl.trouble == Some(Trouble::VirtualizationOff) && facts.features == Features::InEffect {
        return blocked(Trouble::VirtualizationOff.to_string(), remedy(Trouble::VirtualizationOff));
    }
    // Installing WSL would fail in the same way.
    if let Some(trouble @ (Trouble::ServiceDisabled | Trouble::Forbidden)) = facts.wsl.trouble {
        return blocked(trouble.to_string(), remedy(trouble));
    }
    None
}

/// WSL itself.
fn install(facts: &WindowsFacts, plan: &mut WindowsPlan) {
    let wsl = &facts.wsl;
    let features_off = matches!(
        wsl.trouble,
        Some(
            Trouble::FeatureOff | Trouble::NotInstalled | Trouble::NeedsRestart | Trouble::VirtualizationOff
        )
    );
    if !wsl.has_exe || !wsl.works || features_off {
        // Installed already, but Windows has not restarted since.
        if facts.features != Features::RestartDue {
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
    plan.notes
        .push(format!("the new {name} will start as root; to create a user, run `wsl.exe -d {name}` once"));
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

    use super::super::step::{Needs, UNPACK};
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
            is_server: false,
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
            features: Features::NotInstalled,
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
        assert_eq!(steps(&WindowsFacts { features: Features::RestartDue, ..bare }), all[1..]);
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
    fn the_platform_that_is_off_is_turned_on_unless_the_firmware_is_the_cause() {
        let mut facts = healthy();
        facts.wsl.trouble = Some(Trouble::VirtualizationOff);
        for virtualization in [Some(true), None] {
            facts.virtualization = virtualization;
            assert_eq!(steps(&facts)[..2], ["install-wsl", "restart-windows"]);
        }
        facts.features = Features::RestartDue;
        assert_eq!(steps(&facts)[0], "restart-windows");
        facts.virtualization = Some(false);
        assert_eq!(steps(&facts), [""; 0]);
    }

    #[test]
    fn a_helper_of_another_program_is_refused() {
        for name in ["docker-desktop", "Docker-Desktop-Data", "rancher-desktop", "podman-machine-default"] {
            let request = WslRequest { distribution: Some(name.to_owned()), ..WslRequest::default() };
            let plan = plan(&healthy(), &request);
            assert_eq!(plan.steps, []);
            assert!(plan.blocked.unwrap().why.contains("belongs to another program"));
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
        assert_eq!(
            blocked(old.clone()),
            "it has Windows 10 (build 18363), and today's WSL 2 needs Windows 10 version 2004 (build 19041)"
        );
        // Windows updates do not make another edition of it.
        old.pc.as_mut().unwrap().windows_build = Some(17763);
        let server = plan(&WindowsFacts { is_server: true, ..old }, &WslRequest::default()).blocked.unwrap();
        assert_eq!(
            server.why,
            "it has Windows Server (build 17763), and today's WSL 2 needs Windows Server 2022"
        );
        assert!(server.remedy.starts_with("use Windows Server 2025"));
        assert!(
            blocked(WindowsFacts { virtualization: Some(false), ..healthy() })
                .contains("virtualization is off")
        );
        // WSL reports it, and installing its features has not helped.
        let mut reported = healthy();
        reported.wsl.trouble = Some(Trouble::VirtualizationOff);
        reported.features = Features::InEffect;
        assert!(blocked(reported).contains("Virtual Machine Platform"));
        for (trouble, why) in
            [(Trouble::ServiceDisabled, "service that WSL needs"), (Trouble::Forbidden, "a policy")]
        {
            let mut reported = healthy();
            reported.wsl.trouble = Some(trouble);
            assert!(blocked(reported).contains(why));
        }
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
