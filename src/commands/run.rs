//! The shared path of every command that starts ranks: plan, get what is missing, check the
//! machine, launch, show the run, and turn its end into an exit status. A command supplies only
//! what differs, see [`Run`].

use std::collections::BTreeMap;

use yolo_base::exit;
use yolo_checks::Host;
use yolo_plan::bench_report::Measurement;
use yolo_plan::run::{PlanContext, Planned, Planning, Task};
use yolo_plan::{PlanError, RunPlan};

use super::missing;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::launch::{self, RunEnd, run_folder};
use crate::machine;
use crate::printer::{Printer, RunResults, RunView};

/// What one command decides by itself.
pub(super) struct Run<'a> {
    /// Whether the run may write into an existing folder.
    pub(super) exist_ok: bool,
    /// Plans the run.
    pub(super) plan: &'a dyn Fn(&PlanContext) -> Result<Planning, PlanError>,
    /// Checks before anything is started; an error stops the run.
    pub(super) preflight: &'a dyn Fn(&Host, &RunPlan) -> Result<(), CommandError>,
    /// Prints what a finished benchmark measured.
    pub(super) measured: &'a dyn Fn(&RunPlan, Vec<Measurement>),
}

impl Run<'_> {
    /// Does all of it and returns the exit status.
    pub(super) fn execute(&self, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
        let dirs = YoloDirs::from_env()?;
        let host = machine::this_host(&dirs);
        let mut context = PlanContext {
            inventory: machine::inventory(&host, &dirs),
            places: machine::plan_places(&dirs)?,
            fetched: BTreeMap::new(),
            generated: false,
        };
        let planned = match (self.plan)(&context)? {
            Planning::Ready(planned) => planned,
            Planning::Missing(needs) => {
                missing::get(&needs, &mut context, &dirs, offline, printer)?;
                match (self.plan)(&context)? {
                    Planning::Ready(planned) => planned,
                    Planning::Missing(needs) => return Err(CommandError::StillMissing { needs }),
                }
            }
        };
        let Planned { mut plan, warnings, notes } = *planned;
        warnings.iter().for_each(|warning| printer.warning(warning));
        notes.iter().for_each(|note| printer.say(note));
        plan.ranks.threads = machine::threads_of_user().unwrap_or(plan.ranks.threads);
        (self.preflight)(&host, &plan)?;
        // Invariant: the run folder is created last, so that a failed download leaves no empty run.
        let programs = machine::programs(&dirs, plan.ranks.backend, offline, &notes, printer)?;
        let plan_file =
            if plan.resumes() { plan.write()? } else { run_folder::create(&mut plan, self.exist_ok)? };
        printer.say(format_args!("run folder {}", plan.run_dir.display()));
        self.launch_and_show(&plan, &plan_file, &programs, printer)
    }

    /// Starts the ranks, shows what they report, and says how the run ended.
    fn launch_and_show(
        &self,
        plan: &RunPlan,
        plan_file: &std::path::Path,
        programs: &launch::Programs,
        printer: &Printer,
    ) -> Result<u8, CommandError> {
        let mut view = RunView::new(printer, &plan.task);
        let end = launch::run(plan, plan_file, programs, &mut |rank, event| view.show(rank, event));
        let RunResults { files, measurements } = view.finish();
        match end? {
            RunEnd::Finished => {
                for file in files {
                    printer.result(format_args!("{}: {}", file.what, file.path.display()));
                }
                (self.measured)(plan, measurements);
                Ok(exit::SUCCESS)
            }
            RunEnd::Interrupted { resume_from, killed } => {
                let how = match (&resume_from, killed, &plan.task) {
                    (Some(_), false, _) => "interrupted; the run's state is saved",
                    (Some(_), true, _) => "interrupted; the ranks were killed before they could save",
                    (None, _, Task::Train(_)) => "interrupted before the first checkpoint",
                    (None, ..) => "interrupted",
                };
                printer.say(how);
                if let Some(path) = resume_from {
                    printer.say(format_args!(
                        "to resume from the last checkpoint, run\n  yolo train --resume {}",
                        path.display()
                    ));
                }
                Ok(exit::INTERRUPTED)
            }
        }
    }
}
