//! The findings of one examination: the verdicts of the selected checks, in the order of the report.
//! Text and JSON are two renderings of it.

use std::time::{Duration, Instant};

use yolo_checks::{Finding, Host, Intent, Status, Verdict, run_checks};

use super::select::Selection;

/// One examination of one host.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) host: &'a Host,
    pub(super) intent: &'a Intent,
    pub(super) verdicts: Vec<Verdict>,
    /// The time of all checks, including the facts that they read.
    pub(super) took: Duration,
}

impl<'a> Report<'a> {
    /// Runs the selected checks.
    pub(super) fn of(host: &'a Host, intent: &'a Intent, selection: &Selection) -> Self {
        let began = Instant::now();
        let mut verdicts = run_checks(host, intent, |check| selection.wants_check(check));
        for verdict in &mut verdicts {
            verdict.findings.retain(|finding| selection.wants(finding.id));
        }
        Self { host, intent, verdicts, took: began.elapsed() }
    }

    /// Leaves these findings out.
    pub(super) fn leave_out(&mut self, ids: &[&str]) {
        for verdict in &mut self.verdicts {
            verdict.findings.retain(|finding| !ids.contains(&finding.id));
        }
    }

    /// Puts an error in the place of what its check has found: the check did not know of it.
    pub(super) fn put(&mut self, finding: Finding) {
        let is_its = |verdict: &&mut Verdict| verdict.check.reports.contains(&finding.id);
        if let Some(verdict) = self.verdicts.iter_mut().find(is_its) {
            verdict.findings.retain(|old| matches!(old.status, Status::Info | Status::Warning));
            verdict.findings.insert(0, finding);
        }
    }

    /// The findings, grouped by area.
    pub(super) fn findings(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> =
            self.verdicts.iter().flat_map(|verdict| &verdict.findings).collect();
        findings.sort_by_key(|finding| finding.area);
        findings
    }

    /// How many findings have this status.
    pub(super) fn count(&self, status: Status) -> usize {
        self.findings().iter().filter(|finding| finding.status == status).count()
    }

    /// How many findings `--fix` can fix.
    pub(super) fn fixable(&self) -> usize {
        self.findings().iter().filter(|finding| is_fixable(finding)).count()
    }
}

/// Whether `--fix` can fix a finding.
pub(super) fn is_fixable(finding: &Finding) -> bool {
    finding.remedy.as_ref().is_some_and(|remedy| remedy.fixable)
}
