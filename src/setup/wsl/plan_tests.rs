//! PCs of many kinds, and the steps that each needs.

use yolo_checks::wsl::exe_output::{Distribution, Version, Versions};
use yolo_checks::wsl::sizing::Pc;
use yolo_checks::wsl::vm::Vm;

use super::super::facts::{ConfigFacts, WslFacts};
use super::*;

const GIB: u64 = 1 << 30;

fn distribution(name: &str, default: bool, version: u8) -> Distribution {
    Distribution { name: name.to_owned(), default, state: "Stopped".to_owned(), version }
}

/// A PC of 16 GB on which WSL is installed, with Ubuntu and with `yolo` in it.
fn healthy() -> PcFacts {
    let mut facts = PcFacts {
        architecture: "x86_64".to_owned(),
        pc: Some(Pc {
            memory: 16 * GIB,
            processors: 8,
            windows_build: Some(22631),
            swap_disk_free: Some(100 * GIB),
        }),
        virtualization: Some(true),
        wsl: WslFacts {
            exe: true,
            status: true,
            versions: Some(Versions {
                wsl: Version([2, 5, 7, 0]),
                kernel: Some(Version([6, 6, 87, 1])),
                windows: None,
            }),
            default_version: Some(2),
            distributions: vec![distribution("Ubuntu", true, 2)],
            ..WslFacts::default()
        },
        program: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ..PcFacts::default()
    };
    facts.config.bytes = Some(b"[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\nprocessors=8\r\n".to_vec());
    facts
}

fn steps(facts: &PcFacts) -> Vec<&'static str> {
    plan(facts, &Wishes::default()).steps.iter().map(Step::id).collect()
}

#[test]
fn a_pc_that_has_everything_runs_setup_inside_alone() {
    assert_eq!(steps(&healthy()), ["setup-inside"]);
}

#[test]
fn a_pc_with_nothing_gets_everything() {
    let bare =
        PcFacts { wsl: WslFacts::default(), program: None, config: ConfigFacts::default(), ..healthy() };
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
    assert_eq!(steps(&PcFacts { restart_due: true, ..bare }), all[1..]);
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
    facts.wsl.versions =
        Some(Versions { wsl: Version([0, 50, 2, 0]), kernel: Some(Version([5, 4, 72, 0])), windows: None });
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
fn the_distribution_is_the_default_one_that_a_person_works_in() {
    let chosen_of = |list: Vec<Distribution>, wish: Option<&str>| {
        let mut facts = healthy();
        facts.wsl.distributions = list;
        let wishes = Wishes { distribution: wish.map(str::to_owned), ..Wishes::default() };
        let plan = plan(&facts, &wishes);
        let names: Vec<String> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::InstallDistribution(name) => Some(format!("install {name}")),
                Step::ConvertDistribution(name) => Some(format!("convert {name}")),
                Step::SetUpInside(name) => Some(name.clone()),
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
fn what_cannot_be_mended_is_told_with_its_remedy() {
    let blocked = |facts: PcFacts| {
        let plan = plan(&facts, &Wishes::default());
        assert_eq!(plan.steps, []);
        plan.blocked.unwrap().0
    };
    let mut old = healthy();
    old.pc.as_mut().unwrap().windows_build = Some(18363);
    assert!(blocked(old).contains("build 18363, and WSL 2 needs 19041"));
    assert!(blocked(PcFacts { virtualization: Some(false), ..healthy() }).contains("virtualization is off"));
    let mut told = healthy();
    told.wsl.trouble = Some(Trouble::VirtualizationOff);
    assert!(blocked(told).contains("virtualization is off"));
    assert!(blocked(PcFacts { architecture: "aarch64".to_owned(), ..healthy() }).contains("aarch64"));
    let mut ancient = healthy();
    ancient.wsl.too_old = true;
    assert!(blocked(ancient).contains("older than"));
}

#[test]
fn values_that_do_not_serve_are_written_and_wsl_starts_anew_if_it_runs() {
    let mut facts = healthy();
    facts.config.bytes = Some(b"[wsl2]\r\nmemory=8\r\nswap=2GB\r\nprocessors=8\r\n".to_vec());
    assert_eq!(steps(&facts), ["write-config", "setup-inside"]);
    let plan_now = plan(&facts, &Wishes::default());
    assert!(plan_now.notes.iter().any(|note| note.contains("means 8 bytes")), "{:?}", plan_now.notes);
    facts.vm = Some(Vm { memory: 250 << 20, swap: 2 * GIB, processors: 8 });
    assert_eq!(steps(&facts), ["write-config", "shutdown-wsl", "setup-inside"]);
}

#[test]
fn a_machine_from_before_the_file_starts_anew() {
    let mut facts = healthy();
    facts.vm = Some(Vm { memory: 7 * GIB + (800 << 20), swap: 2 * GIB, processors: 8 });
    assert_eq!(steps(&facts), ["setup-inside"]);
    facts.vm = Some(Vm { memory: 4 * GIB, swap: 2 * GIB, processors: 8 });
    assert_eq!(steps(&facts), ["shutdown-wsl", "setup-inside"]);
}

#[test]
fn a_pc_whose_size_is_unknown_keeps_its_file() {
    let facts = PcFacts { pc: None, ..healthy() };
    assert_eq!(steps(&facts), ["setup-inside"]);
}

#[test]
fn rights_restarts_and_ends_are_asked_for() {
    let step = Step::InstallWsl;
    assert_eq!(
        (step.asks(), step.command().as_deref()),
        (Asks::Rights, Some("wsl.exe --install --no-distribution"))
    );
    assert_eq!(Step::Shutdown(String::new()).asks(), Asks::EndOfLinux);
    assert_eq!(Step::RestartWindows.asks(), Asks::Restart);
    assert!(!UNPACK.contains(['"', '\\']), "Windows' command lines would change it");
}
