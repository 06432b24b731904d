//! What each stage does, one file per stage.

mod bench;
mod cells;
mod comparison;
mod doctor;
mod interrupted;
mod largest_batch;
mod limits;
mod measured;
mod memory;
mod mps;
mod original;
mod ranks;
mod resume;
mod speed;
mod tests;
mod train;

use std::time::Instant;

use yolo_base::format::count;

pub use self::doctor::RECORDING;
use crate::interrupt::do_not_go_on_while_stopping;
use crate::report::{Check, Outcome, StageReport};
use crate::session::Session;
use crate::stage::Stage;
use crate::stage_run::{StageRun, Stop};

/// Does a stage before its deadline. Whatever happens, its processes have ended afterwards.
pub fn perform(stage: Stage, session: &Session, deadline: Instant) -> StageReport {
    let began = Instant::now();
    let mut run = StageRun::new(session, stage.name(), deadline);
    let done = match stage {
        Stage::Doctor => doctor::run(&mut run),
        Stage::Train => train::run(&mut run),
        Stage::Tests => tests::run(&mut run),
        Stage::Resume => resume::run(&mut run),
        Stage::Memory => memory::run(&mut run),
        Stage::Speed => speed::run(&mut run),
        Stage::Original => original::run(&mut run),
        Stage::Ranks => ranks::run(&mut run),
    };
    do_not_go_on_while_stopping();
    // What follows is true of a stage that has proven nothing, too.
    let proven = StageReport::outcome_of(&run.checks);
    run.check_nothing_left("the stage");
    let StageRun { checks, figures, lines, .. } = run;
    let with_the_end = StageReport::outcome_of(&checks);
    let found = if with_the_end.is_failure() { with_the_end } else { proven };
    let (outcome, why) = match done {
        Ok(()) => (found, why_unfinished(stage, found, &checks)),
        Err(stop @ Stop::TimedOut(_)) => (Outcome::TimedOut, Some(stop.to_string())),
        Err(stop @ Stop::NotBuilt(_)) if !found.is_failure() => (Outcome::NotBuilt, Some(stop.to_string())),
        Err(stop @ Stop::CannotRun(_)) if !found.is_failure() => (Outcome::Skipped, Some(stop.to_string())),
        Err(stop) => (Outcome::Failed, Some(stop.to_string())),
    };
    StageReport { stage, outcome, why, seconds: began.elapsed().as_secs_f64(), checks, figures, lines }
}

/// What a stage has not come to, if it is not finished.
fn why_unfinished(stage: Stage, outcome: Outcome, checks: &[Check]) -> Option<String> {
    let open = checks.iter().filter(|check| check.outcome == Outcome::Unfinished).count();
    let of = count(checks.len(), "check");
    let name = stage.name();
    (outcome == Outcome::Unfinished).then(|| {
        format!("{open} of {of} for lack of time; repeat it with `--only {name}` and a higher --limit")
    })
}
