//! The values of a report.

use serde::{Deserialize, Serialize};

use crate::kit::Manifest;
use crate::machine::Machine;
use crate::stage::Stage;

/// Version of the report, raised when a field is removed or changes its meaning.
pub const VERSION: u32 = 1;

/// The end of the name of a check whose detail says what limits training.
pub const LIMIT: &str = ": what limits training is known";

/// How a check or a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As it should be.
    Passed,
    /// Not as it should be.
    Failed,
    /// Stopped because its time was over.
    TimedOut,
    /// Stopped, not begun or not measured because time was over, which says nothing about what was to be proven.
    /// This does not count as passed.
    Unfinished,
    /// The feature does not exist yet. This does not count as passed.
    NotBuilt,
    /// Not run.
    Skipped,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What should be so.
    pub what: String,
    /// Whether it is.
    pub outcome: Outcome,
    /// What was found.
    pub detail: String,
}

/// One thing that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured in several ways: `yolov5n, 640 px, batch 16, fp32: training from files`. Figures
    /// of the same subject are a row of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What, under which conditions. With a subject, the name of a column: `GPU busy`.
    pub what: String,
    /// The value.
    pub value: f64,
    /// Its unit: `images/s`, `GB`, `%`.
    pub unit: String,
}

/// What one stage found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// The stage.
    pub stage: Stage,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was skipped or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What was measured.
    pub figures: Vec<Figure>,
    /// The last lines of programs that failed.
    pub lines: Vec<String>,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The kit.
    pub kit: Manifest,
    /// When the run began: `2026-11-22T16:05:00Z`.
    pub date: String,
    /// Whether this was a rehearsal on the CPU, which proves nothing about a GPU.
    pub rehearsal: bool,
    /// The machine.
    pub machine: Machine,
    /// The stages, in their order.
    pub stages: Vec<StageReport>,
}

impl From<bool> for Outcome {
    fn from(is_so: bool) -> Self {
        if is_so { Self::Passed } else { Self::Failed }
    }
}

impl Outcome {
    /// As the report's page writes it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::TimedOut => "FAILED (out of time)",
            Self::Unfinished => "not finished",
            Self::NotBuilt => "not built yet",
            Self::Skipped => "not run",
        }
    }

    /// Whether this counts as a failure.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

impl StageReport {
    /// A stage that did not run.
    pub fn skipped(stage: Stage, why: impl Into<String>) -> Self {
        let (checks, figures, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { stage, outcome: Outcome::Skipped, why: Some(why.into()), seconds: 0.0, checks, figures, lines }
    }

    /// A stage for which too little time was left.
    pub fn not_begun(stage: Stage, why: impl Into<String>) -> Self {
        Self { outcome: Outcome::Unfinished, ..Self::skipped(stage, why) }
    }

    /// The same of a stage whose time was cut by `--limit`: if it ran out of time, that says nothing about
    /// the stage. A check that had failed before does.
    #[must_use]
    pub fn cut_short(self, limit: u32) -> Self {
        if self.outcome != Outcome::TimedOut {
            return self;
        }
        if Self::outcome_of(&self.checks) == Outcome::Failed {
            return Self { outcome: Outcome::Failed, ..self };
        }
        let why = format!(
            "the {limit} s of --limit were over; repeat it with `--only {}`, and join the reports with `merge`",
            self.stage.name()
        );
        Self { outcome: Outcome::Unfinished, why: Some(why), ..self }
    }

    /// The outcome of a stage with these checks: the worst of them. What was left out on purpose does not count.
    pub fn outcome_of(checks: &[Check]) -> Outcome {
        let any = |outcome: Outcome| checks.iter().any(|check| check.outcome == outcome);
        [Outcome::TimedOut, Outcome::Failed, Outcome::Unfinished, Outcome::NotBuilt, Outcome::Passed]
            .into_iter()
            .find(|&outcome| any(outcome))
            .unwrap_or(Outcome::Skipped)
    }
}

impl Report {
    /// Whether a stage failed.
    pub fn has_failed(&self) -> bool {
        self.stages.iter().any(|stage| stage.outcome.is_failure())
    }

    /// Whether a stage ran that proves something.
    pub fn has_run(&self) -> bool {
        let says_something = |check: &Check| check.outcome == Outcome::Passed || check.outcome.is_failure();
        let ran = self.stages.iter().filter(|stage| stage.outcome != Outcome::Skipped);
        ran.into_iter().any(|stage| stage.outcome.is_failure() || stage.checks.iter().any(says_something))
    }

    /// Whether something is open that was to be proven: for lack of time, or because it does not exist yet.
    pub fn is_incomplete(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage.outcome, Outcome::Unfinished | Outcome::NotBuilt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(outcomes: &[Outcome]) -> Vec<Check> {
        let check = |&outcome| Check { what: String::new(), outcome, detail: String::new() };
        outcomes.iter().map(check).collect()
    }

    #[test]
    fn a_stage_is_as_good_as_its_worst_check() {
        use Outcome::{Failed, NotBuilt, Passed, Skipped, Unfinished};
        assert_eq!(StageReport::outcome_of(&checks(&[Passed, Failed, NotBuilt])), Failed);
        assert_eq!(StageReport::outcome_of(&checks(&[Passed, Failed, Unfinished])), Failed);
        assert_eq!(StageReport::outcome_of(&checks(&[Passed, Unfinished, Skipped])), Unfinished);
        assert_eq!(StageReport::outcome_of(&checks(&[Passed, NotBuilt])), NotBuilt);
        assert_eq!(StageReport::outcome_of(&checks(&[Passed, Skipped])), Passed);
        assert_eq!(StageReport::outcome_of(&checks(&[NotBuilt, Skipped])), NotBuilt);
        assert_eq!(StageReport::outcome_of(&[]), Skipped);
    }
}
