//! Runs that do not end by themselves: a rank is killed, or the user presses Ctrl-C, and the run is
//! continued.

use rustix::process::Signal;
use yolo_base::format::count;

use crate::invocation::{Ended, Invocation, signal};
use crate::processes;
use crate::results;
use crate::stage_run::{StageRun, Stop};

/// What ends a run before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// `kill -9` of the last rank.
    KilledRank,
    /// Ctrl-C.
    CtrlC,
}

impl Cause {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::KilledRank => "kill -9 of a rank",
            Self::CtrlC => "Ctrl-C",
        }
    }
}

/// Starts a training, ends it after `epochs` epochs, and checks what `yolo` says. `false`: it ended
/// too early to be interrupted, which a check reports.
pub(super) fn interrupt(
    stage: &mut StageRun<'_>,
    invocation: Invocation,
    name: &str,
    epochs: usize,
    cause: Cause,
) -> Result<bool, Stop> {
    let folder = stage.session.run_folder(name);
    let mark = stage.session.mark.clone();
    let mut running = stage.start(invocation)?;
    let is_in_the_middle = stage.wait_until(&mut running, "the first epochs", || {
        folder.join("weights/last.pt").is_file() && results::of_run(&folder).len() >= epochs
    })?;
    if is_in_the_middle {
        match cause {
            Cause::KilledRank => {
                // The rank with the highest number was started last.
                if let Some(&rank) = processes::ranks(&mark).iter().max() {
                    signal(rank, Signal::KILL);
                }
            }
            Cause::CtrlC => running.interrupt(),
        }
    }
    let ended = stage.wait(running)?;
    if !stage.check(
        format!("a run is in the middle when {} comes", cause.text()),
        is_in_the_middle,
        count(results::of_run(&folder).len(), "epoch"),
    ) {
        stage.lines.extend(ended.last_lines(12));
        return Ok(false);
    }
    says_what_happened(stage, &ended, cause);
    stage.check_nothing_left(cause.text());
    Ok(true)
}

fn says_what_happened(stage: &mut StageRun<'_>, ended: &Ended, cause: Cause) {
    let (status, words): (i32, &[&str]) = match cause {
        Cause::KilledRank => (1, &["rank ", "signal 9 (SIGKILL)", "--resume"]),
        Cause::CtrlC => (130, &["the run's state is saved", "--resume"]),
    };
    let missing: Vec<&&str> = words.iter().filter(|word| !ended.stderr.contains(**word)).collect();
    let detail = match missing.as_slice() {
        [] => ended.how(),
        missing => format!("{}; its messages do not contain {missing:?}", ended.how()),
    };
    let is_right = ended.code() == Some(status) && missing.is_empty();
    if !is_right {
        stage.lines.extend(ended.last_lines(12));
    }
    stage.check(
        format!("after {}, yolo says what happened and how to continue", cause.text()),
        is_right,
        detail,
    );
}

/// Continues a run of [`Session::run_folder`](crate::session::Session::run_folder) to its end.
pub(super) fn resume(stage: &mut StageRun<'_>, name: &str) -> Result<Ended, Stop> {
    resume_with(stage, name, |invocation| invocation)
}

/// As [`resume`], where the ranks need something else in their environment.
pub(super) fn resume_with(
    stage: &mut StageRun<'_>,
    name: &str,
    prepare: impl FnOnce(Invocation) -> Invocation,
) -> Result<Ended, Stop> {
    let last = stage.session.run_folder(name).join("weights/last.pt");
    stage.run(prepare(stage.session.yolo().args("train --resume").arg(last)))
}
