//! The distributions as Windows' registry lists them, where WSL keeps them: a command then costs a single call of
//! `wsl.exe`. Wine has a registry, and no WSL that would write there. A program of its own, because the other tests expect
//! an empty list.

#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "from_windows/pc.rs"]
mod pc;
#[path = "support/user.rs"]
mod user;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pc::Pc;
use serde_json::json;
use windows_registry::CURRENT_USER;

const KEY: &str = r"Software\Microsoft\Windows\CurrentVersion\Lxss";

/// The key, which is removed at the end.
struct Lxss {
    _alone: MutexGuard<'static, ()>,
}

impl Lxss {
    /// These distributions: name, version, and state, of which 1 is an installed one. The first is the default.
    fn with(distributions: &[(&str, u32, u32)]) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let key = CURRENT_USER.create(KEY).unwrap();
        for (number, (name, version, state)) in distributions.iter().enumerate() {
            let id = format!("{{00000000-0000-0000-0000-00000000000{number}}}");
            let entry = key.create(&id).unwrap();
            entry.set_string("DistributionName", name).unwrap();
            entry.set_u32("Version", *version).unwrap();
            entry.set_u32("State", *state).unwrap();
            entry.set_string("BasePath", r"C:\Users\ada\AppData\Local\wsl").unwrap();
            if number == 0 {
                key.set_string("DefaultDistribution", &id).unwrap();
            }
        }
        Self { _alone: alone }
    }
}

impl Drop for Lxss {
    fn drop(&mut self) {
        CURRENT_USER.remove_tree(KEY).unwrap();
    }
}

/// A PC on which every distribution has yolo.
fn pc() -> Pc {
    Pc::answering(&[json!({ "words": "-d", "code": 80 })])
}

#[test]
fn the_default_distribution_costs_one_call() {
    let _lxss = Lxss::with(&[("Debian", 2, 1), ("Ubuntu", 2, 1)]);
    let pc = pc();
    pc.run(&["train"]).succeeded();
    assert_eq!(pc.calls(), ["-d Debian --exec /opt/yolo/yolo train"]);
    let pc = self::pc();
    pc.run(&["train", "--distribution", "ubuntu"]).succeeded();
    assert_eq!(pc.calls(), ["-d Ubuntu --exec /opt/yolo/yolo train --distribution ubuntu"]);
}

#[test]
fn helpers_and_unfinished_distributions_are_passed_over() {
    // Being installed, and a helper of Docker as the default.
    let _lxss = Lxss::with(&[("docker-desktop", 2, 1), ("Alpine", 2, 3), ("Ubuntu-24.04", 2, 1)]);
    let pc = pc();
    pc.run(&["train"]).succeeded();
    assert_eq!(pc.calls(), ["-d Ubuntu-24.04 --exec /opt/yolo/yolo train"]);
}

#[test]
fn wsl_1_and_unknown_names_are_refused_without_a_call() {
    let _lxss = Lxss::with(&[("Old", 1, 1)]);
    let pc = pc();
    pc.run(&["train"]).failed_with(1, &["the distribution Old runs under WSL 1", "--distribution Old`"]);
    pc.run(&["train", "--distribution", "Ubuntu"])
        .failed_with(1, &["WSL has no distribution Ubuntu; it has Old", "--distribution Ubuntu`"]);
    assert_eq!(pc.calls(), Vec::<String>::new());
}

#[test]
fn the_prepared_distribution_precedes_the_default() {
    let _lxss = Lxss::with(&[("Debian", 2, 1), ("Ubuntu", 2, 1)]);
    let pc = pc();
    let settings = pc.user.path().join("roaming").join("yolo");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("wsl.json"), r#"{"distribution":"Ubuntu"}"#).unwrap();
    pc.run(&["train"]).succeeded();
    assert_eq!(pc.calls(), ["-d Ubuntu --exec /opt/yolo/yolo train"]);
}
