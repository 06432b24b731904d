//! One process of a run, from its environment to its exit status: it reads the plan, starts, does
//! its task and reports how that ended. Rank and world size come from the variables that torchrun
//! sets too, but running under torchrun is not supported yet: there, the agent already serves the
//! store on `MASTER_PORT`, and every rank sees all GPUs.

pub mod context;
mod device;
mod environment;
pub mod process_group;
mod rendezvous;
pub mod reporter;
mod start;

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use yolo_base::env::RANK;
use yolo_base::{Hint as _, exit};
use yolo_plan::RunPlan;
use yolo_plan::event::Event;

use self::context::Ending;
use self::reporter::Reporter;
use crate::error::TrainError;
use crate::tasks;

/// Runs the plan at `path` as the rank that the environment names.
pub fn run(path: &Path) -> ExitCode {
    let rank = environment::number(RANK).unwrap_or(0);
    let reporter = Rc::new(Reporter::from_environment(rank));
    match start_and_perform(path, rank, &reporter) {
        Ok(Ending::Finished) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(exit::INTERRUPTED),
        Err(error) => fail(&reporter, &error),
    }
}

fn start_and_perform(path: &Path, rank: usize, reporter: &Rc<Reporter>) -> Result<Ending, TrainError> {
    let plan = RunPlan::read(path)?;
    let context = start::start(&plan, rank, Rc::clone(reporter))?;
    tasks::perform(&context, &plan)
}

fn fail(reporter: &Reporter, error: &TrainError) -> ExitCode {
    reporter.send(&Event::Failed {
        message: error.to_string(),
        hint: error.hint().map(std::borrow::Cow::into_owned),
        doing: reporter.doing(),
        peer_lost: error.peer_lost(),
    });
    ExitCode::FAILURE
}
