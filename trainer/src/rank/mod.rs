//! One process of a run, from its environment to its exit status: it reads the plan, starts, does
//! its task and reports how that ended. Rank and world size come from the variables that torchrun
//! sets too. A rank that another launcher starts through `yolo rank` has a plan of its own and meets the others
//! in `meeting.rs`, at the store of rank 0 or of torchrun's agent.

mod affinity;
pub mod context;
mod device;
mod environment;
pub(crate) mod introduction;
mod joining;
mod less_memory;
mod life;
mod meeting;
mod nccl_interface;
pub mod process_group;
mod rendezvous;
pub mod reporter;
mod start;
mod stop;

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
    let mut plan = RunPlan::read(path)?;
    let context = start::start(&mut plan, rank, Rc::clone(reporter))?;
    match tasks::perform(&context, &plan) {
        // The other rank was asked to stop too, and had nothing to save.
        Err(error) if error.peer_lost() && context.asked_to_stop() => Ok(Ending::Interrupted),
        Err(error) if error.is_out_of_memory() => Err(match less_memory::advice(&plan) {
            Some(advice) => error.with_hint(advice),
            None => error,
        }),
        Ok(ending) => {
            report_to_own_supervisor(&plan, &context, ending);
            Ok(ending)
        }
        error => error,
    }
}

/// Rank 0 reports the end of the run. The supervisor of a plan without rank 0 learns it from the plan's first
/// rank.
fn report_to_own_supervisor(plan: &RunPlan, context: &context::Context, ending: Ending) {
    if context.rank == 0 || context.rank != plan.ranks.first {
        return;
    }
    context.reporter.send(&match ending {
        Ending::Finished => {
            Event::Finished { files: Vec::new(), epochs: 0, seconds: 0.0, stopped_early: false }
        }
        Ending::Interrupted => Event::Interrupted { resume_from: None },
    });
}

fn fail(reporter: &Reporter, error: &TrainError) -> ExitCode {
    reporter.send(&Event::Failed {
        message: error.to_string(),
        hint: error.hint().map(std::borrow::Cow::into_owned),
        doing: reporter.doing(),
        peer_lost: error.peer_lost(),
        of_data: error.is_of_data(),
        progress: reporter.progress(),
    });
    ExitCode::FAILURE
}
