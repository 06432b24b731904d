//! The checks. Each is one file that asks one question and answers it with findings. A check is a
//! pure function: the same facts give the same findings anywhere. Checks run in parallel, because
//! some wait for a command. A check that panics is reported as `system.check-failed`.

mod check;
mod container;
mod cores;
mod disk;
mod gpu;
mod libraries;
mod memory;
mod network;
mod one_drive;
mod run;
mod shell;
mod system;
mod windows;
mod wsl;

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::fit;
use crate::remedies::user_shell::translate;
use crate::remedies::variables_file::only_if_sourced;
use crate::status::Status;

pub use check::{Answer, Check};
pub(crate) use cores::cores;
use cores::cores_of_machine;
pub(crate) use network::{contains, leads_out, master, reaches_others};

/// Enough threads for checks that wait for different commands to wait at the same time.
const THREADS: usize = 8;

/// All checks, in the order of their areas.
const AREAS: [&[&Check]; 11] = [
    system::CHECKS,
    gpu::CHECKS,
    libraries::CHECKS,
    memory::CHECKS,
    disk::CHECKS,
    network::CHECKS,
    wsl::CHECKS,
    windows::CHECKS,
    container::CHECKS,
    shell::CHECKS,
    run::CHECKS,
];

/// All checks, in the order of their areas.
pub fn all() -> impl Iterator<Item = &'static Check> {
    AREAS.into_iter().flatten().copied()
}

/// The findings of one check, and how long it took.
#[derive(Debug)]
pub struct Verdict {
    /// The check.
    pub check: &'static Check,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// Including the time to read the facts that it was the first to ask for.
    pub took: Duration,
}

/// Runs all checks on a host: findings in the order of their areas.
pub fn run_all_checks(host: &Host, intent: &Intent) -> Vec<Finding> {
    findings(run_checks(host, intent, |_| true))
}

/// All findings, in the order of their areas.
pub fn findings(verdicts: Vec<Verdict>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = verdicts.into_iter().flat_map(|verdict| verdict.findings).collect();
    findings.sort_by_key(|finding| finding.area);
    findings
}

/// Runs the selected checks on a host.
pub fn run_checks(host: &Host, intent: &Intent, wanted: impl Fn(&Check) -> bool) -> Vec<Verdict> {
    // Where libtorch cannot run, nothing is said that rests on it or on a driver, but why it cannot is.
    let is_in = |areas: &[&[&Check]], check: &Check| {
        areas.iter().any(|area| area.iter().any(|one| one.question == check.question))
    };
    let says_why = |check: &Check| {
        check.reports.contains(&"system.unsupported") || check.reports.contains(&"libraries.musl")
    };
    let is_moot = |check: &Check| {
        is_in(&[gpu::CHECKS, libraries::CHECKS, container::CHECKS], check) && !says_why(check)
    };
    // WSL 1 can be converted; what is wrong with it is worth a word then.
    let is_wsl = host.wsl().is_ok_and(|wsl| wsl.is_some());
    let may_warn = |check: &Check| says_why(check) || is_wsl && is_in(&[wsl::CHECKS], check);
    let can_train = host.can_train();
    let checks: Vec<&'static Check> =
        all().filter(|check| wanted(check) && (can_train || !is_moot(check))).collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::with_capacity(checks.len()));
    let work = || {
        while let Some((place, check)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            checks.get(place).map(|check| (place, *check))
        } {
            let began = Instant::now();
            let mut findings = ask(check, host, intent);
            // Memory, disks and variables are fine or not for a run, which cannot be.
            if !can_train && !may_warn(check) {
                findings.retain(|finding| {
                    matches!(finding.status, Status::Ok | Status::Skipped)
                        || finding.id == "system.check-failed"
                });
            }
            let verdict = Verdict { check, findings, took: began.elapsed() };
            verdicts.lock().unwrap_or_else(PoisonError::into_inner).push((place, verdict));
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS.min(checks.len()) {
            // If a thread cannot be started, the others and this one do its work.
            let _ = thread::Builder::new().name("check".to_owned()).spawn_scoped(scope, work);
        }
    });
    work();
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|(place, _)| *place);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

/// Why WSL does not start, from what its program has just printed on this PC. Checks start no distribution, and
/// `--status` and `-l -v` look healthy on a PC on which none starts.
pub fn wsl_failure(host: &Host, command: &str, text: &str) -> Option<Finding> {
    wsl::failure(host, command, text).map(|finding| fitted(host, finding))
}

/// The finding as the user of this host can follow it.
fn fitted(host: &Host, finding: Finding) -> Finding {
    translate(host, only_if_sourced(host, fit(host, finding)))
}

fn ask(check: &'static Check, host: &Host, intent: &Intent) -> Vec<Finding> {
    match panic::catch_unwind(AssertUnwindSafe(|| (check.run)(host, intent))) {
        Ok(Ok(findings)) => findings.into_iter().map(|finding| fitted(host, finding)).collect(),
        Ok(Err(why)) => check.reports.first().map(|id| Finding::skipped(id, &why)).into_iter().collect(),
        Err(panic) => {
            let why = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown reason");
            let id = check.reports.first().copied().unwrap_or("a check");
            vec![Finding::new("system.check-failed", format!("the check of {id} failed: {why}"))]
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status::Status;

    fn nowhere() -> Host {
        Host::from_value(json!({ "version": 1 })).unwrap().0
    }

    #[test]
    fn a_check_that_panics_answers_with_its_panic() {
        static BROKEN: Check =
            Check { question: "?", reports: &["memory.low"], preflight: false, run: |_, _| panic!("a bug") };
        let findings = ask(&BROKEN, &nowhere(), &Intent::default());
        assert_eq!(findings[0].id, "system.check-failed");
        assert_eq!(findings[0].title, "the check of memory.low failed: a bug");
    }

    #[test]
    fn what_wsl_just_said_is_judged_as_in_a_recording() {
        let command = "wsl.exe -d Ubuntu --exec /opt/yolo/yolo";
        for code in
            ["CreateVm/HCS/0x80070569", "CreateVm/HCS/HCS_E_SERVICE_NOT_AVAILABLE", "WSL_E_DISK_CORRUPTED"]
        {
            let text = format!("…\nError code: Wsl/Service/CreateInstance/{code}\n");
            let mut pc = json!({ "version": 1, "os": "windows", "commands": {
                "wsl.exe --status": "Default Distribution: Ubuntu\nDefault Version: 2\n",
                "wsl.exe -l -v": "  NAME      STATE           VERSION\n* Ubuntu    Stopped         2\n",
            } });
            let here = Host::from_value(pc.clone()).unwrap().0;
            let live = wsl_failure(&here, command, &text).unwrap();
            pc["commands"][command] = json!({ "exit": -1, "stdout": text });
            let recorded = run_all_checks(&Host::from_value(pc).unwrap().0, &Intent::default());
            let same = recorded.iter().find(|finding| finding.id == live.id).unwrap();
            assert_eq!(
                (&same.title, &same.remedy, &same.evidence),
                (&live.title, &live.remedy, &live.evidence)
            );
        }
        assert_eq!(wsl_failure(&nowhere(), command, "Epoch 5, failure rate 0").map(|found| found.id), None);
    }

    #[test]
    fn nothing_known_is_nothing_found() {
        for finding in run_all_checks(&nowhere(), &Intent::default()) {
            assert_eq!(finding.status, Status::Skipped, "{finding:#?}");
        }
    }
}
