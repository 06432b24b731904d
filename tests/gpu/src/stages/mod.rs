//! What each stage does, one file per stage.

mod bench;
mod comparison;
mod doctor;
mod interrupted;
mod largest_batch;
mod limits;
mod memory;
mod mps;
mod original;
mod ranks;
mod resume;
mod speed;
mod tests;
mod train;

use std::time::Instant;

pub use self::doctor::RECORDING;
use crate::interrupt::do_not_go_on_while_stopping;
use crate::report::{Outcome, StageReport};
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
        Stage::Ranks => ranks::run(&mut run),
    };
    do_not_go_on_while_stopping();
    run.check_nothing_left("the stage");
    let StageRun { checks, figures, lines, .. } = run;
    let (outcome, why) = match done {
        Ok(()) => (StageReport::outcome_of(&checks), None),
        Err(stop @ Stop::TimedOut(_)) => (Outcome::TimedOut, Some(stop.to_string())),
        Err(stop @ Stop::NotBuilt(_)) if StageReport::outcome_of(&checks) != Outcome::Failed => {
            (Outcome::NotBuilt, Some(stop.to_string()))
        }
        Err(stop) => (Outcome::Failed, Some(stop.to_string())),
    };
    StageReport { stage, outcome, why, seconds: began.elapsed().as_secs_f64(), checks, figures, lines }
}
