//! The checks: each is one file that asks one question of the facts and answers with findings. A
//! check is a pure function: the same facts give the same findings anywhere. They run side by side,
//! since some wait for a command; one that panics answers with its panic, and each is timed.

mod container;
mod disk;
mod gpu;
mod libraries;
mod memory;
mod nccl;
mod network;
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

use crate::facts::{Host, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::wsl::sizing::gigabytes;

/// Checks that wait for different commands wait together.
const THREADS: usize = 8;

/// What a check answers: findings, or the first fact that was missing, which makes it "skipped".
pub type Answer = Result<Vec<Finding>, Unknown>;

/// One check.
#[derive(Debug)]
pub struct Check {
    /// What it asks of the host, as a question to the user's mind.
    pub question: &'static str,
    /// The ids that it can report; the first stands for the check when it is skipped.
    pub reports: &'static [&'static str],
    /// Whether it can stop a run, so that `yolo train` asks it before each.
    pub preflight: bool,
    /// Judges.
    pub run: fn(&Host, &Intent) -> Answer,
}

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

/// What one check found, and how long it took.
#[derive(Debug)]
pub struct Verdict {
    /// The check.
    pub check: &'static Check,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// With the facts that it was the first to ask for.
    pub took: Duration,
}

/// Judges a host by all checks: findings in the order of their areas.
pub fn judge(host: &Host, intent: &Intent) -> Vec<Finding> {
    findings(judge_by(host, intent, |_| true))
}

/// The findings of verdicts in the order of their areas.
pub fn findings(verdicts: Vec<Verdict>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = verdicts.into_iter().flat_map(|verdict| verdict.findings).collect();
    findings.sort_by_key(|finding| finding.area);
    findings
}

/// Judges a host by the checks that are wanted.
pub fn judge_by(host: &Host, intent: &Intent, wanted: impl Fn(&Check) -> bool) -> Vec<Verdict> {
    let checks: Vec<&'static Check> = all().filter(|check| wanted(check)).collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::with_capacity(checks.len()));
    let work = || {
        while let Some((place, check)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            checks.get(place).map(|check| (place, *check))
        } {
            let began = Instant::now();
            let findings = ask(check, host, intent);
            let verdict = Verdict { check, findings, took: began.elapsed() };
            verdicts.lock().unwrap_or_else(PoisonError::into_inner).push((place, verdict));
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS.min(checks.len()) {
            // Without a thread the others, and last this one, do its work.
            let _ = thread::Builder::new().name("check".to_owned()).spawn_scoped(scope, work);
        }
    });
    work();
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|(place, _)| *place);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

fn ask(check: &'static Check, host: &Host, intent: &Intent) -> Vec<Finding> {
    match panic::catch_unwind(AssertUnwindSafe(|| (check.run)(host, intent))) {
        Ok(Ok(findings)) => findings,
        Ok(Err(why)) => check.reports.first().map(|id| Finding::skipped(id, &why)).into_iter().collect(),
        Err(panic) => {
            let why = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no reason given");
            let id = check.reports.first().copied().unwrap_or("a check");
            vec![Finding::new("system.check-failed", format!("the check of {id} failed: {why}"))]
        }
    }
}

/// Bytes of a disk in units of 1000, as disks are sold; memory is said by [`gigabytes`].
fn of_disk(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// Cores that this process may use: those that the system counts, or fewer where a control group
/// allows a share of them only.
fn cores(host: &Host) -> Option<usize> {
    let counted = host.system().ok()?.cores.and_then(|cores| usize::try_from(cores).ok())?;
    let share = host.cgroup_cpu_limit().ok().flatten().map_or(counted, |limit| limit.ceil() as usize);
    Some(counted.min(share).max(1))
}

/// `1 GPU`, `2 GPUs`.
fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
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
    fn nothing_known_is_nothing_found() {
        for finding in judge(&nowhere(), &Intent::default()) {
            assert_eq!(finding.status, Status::Skipped, "{finding:#?}");
        }
    }
}
