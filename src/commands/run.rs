//! The shared path of every command that starts ranks: plan, get what is missing, check the
//! machine, launch, show the run, and turn its end into an exit status. A command supplies only
//! what differs, see [`Run`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use yolo_base::env::{MASTER_ADDR, MASTER_PORT, YOLO_STORE_PREFIX};
use yolo_base::{exit, seconds};
use yolo_checks::{GpuMonitor, Host};
use yolo_plan::bench_report::Measurement;
use yolo_plan::device::Device;
use yolo_plan::event::{Event, OutputFile};
use yolo_plan::launcher::{Launcher, Layout};
use yolo_plan::options::TrainOptions;
use yolo_plan::report::End;
use yolo_plan::run::{Need, PlanContext, Planned, Planning, Ranks, Task};
use yolo_plan::{PlanError, RunPlan};

use super::before_training::Measured;
use super::loader_threads;
use super::missing;
use super::resumed_checkpoint;
use super::{auto_batch, log_folder};
use crate::cpu_affinity::cpus_of_ranks;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::launch::machines::Team;
use crate::launch::{self, LaunchError, RunEnd, run_folder};
use crate::machine;
use crate::printer::{Graphics, Printer, RunEvents, RunResults, RunView};
use crate::run_report::ReportOfRun;

/// What one command decides by itself.
pub(super) struct Run<'a> {
    /// Whether the run may write into an existing folder.
    pub(super) exist_ok: bool,
    /// Whether the batch is measured before the run.
    pub(super) measure_batch: bool,
    /// Whether the number of loader threads is measured before the run.
    pub(super) measure_workers: bool,
    /// Plans the run.
    pub(super) plan: &'a dyn Fn(&PlanContext) -> Result<Planning, PlanError>,
    /// Checks before anything is started; an error stops the run.
    pub(super) preflight: &'a dyn Fn(&Host, &RunPlan) -> Result<(), CommandError>,
    /// Prints what a finished benchmark measured.
    pub(super) measured: &'a dyn Fn(&RunPlan, Vec<Measurement>),
    /// Prints the run for programs, if that is wanted. The results for people are not printed then.
    pub(super) events: Option<RunEvents<'a>>,
    /// What another launcher says about this rank, if one has started it.
    pub(super) layout: Option<&'a Layout>,
    /// The terminal on which pictures are shown.
    pub(super) graphics: Option<Graphics>,
}

/// Returns the error after printing it for programs, if that is wanted: the run was not started.
pub(super) fn not_started(events: Option<&RunEvents<'_>>, error: CommandError) -> CommandError {
    if let Some(events) = events {
        events.failed(&error);
    }
    error
}

/// What planning looks at on this machine, which includes the variables with numbers for the run.
pub(super) fn plan_context(host: &Host, dirs: &YoloDirs) -> Result<PlanContext, CommandError> {
    seconds::check()?;
    Ok(PlanContext {
        inventory: machine::inventory(host, dirs),
        places: machine::plan_places(dirs)?,
        fetched: BTreeMap::new(),
        generated: false,
        part: None,
        measured_batch: None,
        unavailable: Default::default(),
    })
}

/// The plan, or what is missing.
pub(super) fn decided(planning: Planning) -> Result<Box<Planned>, Vec<Need>> {
    match planning {
        Planning::Ready(planned) => Ok(planned),
        Planning::Missing(needs) => Err(needs),
    }
}

/// Plans, gets what is missing, and plans again. `plan` returns what it decided, or what is missing.
pub(super) fn planned<T>(
    plan: impl Fn(&PlanContext) -> Result<Result<T, Vec<Need>>, PlanError>,
    host: &Host,
    dirs: &YoloDirs,
    offline: bool,
    printer: &Printer,
) -> Result<T, CommandError> {
    planned_in(&mut plan_context(host, dirs)?, plan, dirs, offline, printer)
}

/// Like [`planned`], in this context, into which it enters what it gets.
pub(super) fn planned_in<T>(
    context: &mut PlanContext,
    plan: impl Fn(&PlanContext) -> Result<Result<T, Vec<Need>>, PlanError>,
    dirs: &YoloDirs,
    offline: bool,
    printer: &Printer,
) -> Result<T, CommandError> {
    let mut missing = usize::MAX;
    loop {
        match plan(context)? {
            Ok(planned) => return Ok(planned),
            // Weights of one name from two addresses are fetched one after the other.
            Err(needs) if needs.len() < missing => {
                missing = needs.len();
                missing::get(&needs, context, dirs, offline, printer)?;
            }
            Err(needs) => return Err(CommandError::StillMissing { needs }),
        }
    }
}

impl Run<'_> {
    /// Does all of it and returns the exit status.
    pub(super) fn execute(mut self, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
        let result = self.plan_and_launch(offline, printer);
        result.map_err(|error| not_started(self.events.as_ref(), error))
    }

    fn plan_and_launch(&mut self, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
        let dirs = YoloDirs::from_env()?;
        let host = machine::this_host(&dirs);
        let plan_of_options = |context: &PlanContext| (self.plan)(context).map(decided);
        let mut context = plan_context(&host, &dirs)?;
        let planned = planned_in(&mut context, plan_of_options, &dirs, offline, printer)?;
        let Planned { mut plan, warnings, notes, in_its_folder } = *planned;
        warnings.iter().for_each(|warning| printer.warning(warning));
        notes.iter().for_each(|note| printer.say(note));
        if self.layout.is_none_or(|layout| layout.rank == 0) {
            resumed_checkpoint::check(&plan)?;
        }
        fit_to_machine(&host, &mut plan.ranks).iter().for_each(|note| printer.say(note));
        (self.preflight)(&host, &plan)?;
        // Invariant: the run folder is created last, so that a failed download leaves no empty run.
        let mut programs = machine::programs(&dirs, plan.ranks.backend, offline, &notes, printer)?;
        if self.measure_batch {
            match auto_batch::choose(&plan, &context.inventory, &programs, printer)? {
                Measured::Interrupted { killed } => {
                    return Ok(self.interrupted_before_the_run(killed, printer));
                }
                Measured::Result(None) => {}
                Measured::Result(total) => {
                    context.measured_batch = total;
                    let again = planned_in(&mut context, plan_of_options, &dirs, offline, printer)?;
                    let said = |text: &String| !warnings.contains(text) && !notes.contains(text);
                    again.warnings.iter().filter(|text| said(text)).for_each(|text| printer.warning(text));
                    again.notes.iter().filter(|text| said(text)).for_each(|text| printer.say(text));
                    plan = again.plan;
                    // What the user should know about the machine was said above.
                    fit_to_machine(&host, &mut plan.ranks);
                }
            }
        }
        if self.measure_workers
            && let Measured::Interrupted { killed } = loader_threads::choose(&mut plan, &programs, printer)?
        {
            return Ok(self.interrupted_before_the_run(killed, printer));
        }
        let Some(layout) = self.layout else {
            if !plan.task.has_folder() {
                return self.launch_without_results(plan, &programs, printer);
            }
            let plan_file = run_folder::create(&mut plan, self.exist_ok || in_its_folder)?;
            printer.say(format_args!("run folder {}", plan.run_dir.display()));
            let result = self.launch_and_show(None, &plan, &plan_file, &programs, printer);
            let came_to_nothing = match &result {
                Ok(status) => *status != exit::SUCCESS,
                Err(error) => !log_explains(error),
            };
            // Of other tasks, the report says what was tried.
            let is_prediction = matches!(plan.task, Task::Predict(_));
            if is_prediction && came_to_nothing && plan_file.remove_unused_folder() {
                printer.say("removed the run folder, because it has no results");
            }
            return result;
        };
        programs.environment.extend(meeting_point(layout));
        if layout.rank > 0 {
            return self.launch_without_results(plan, &programs, printer);
        }
        let plan_file = run_folder::create(&mut plan, self.exist_ok || in_its_folder)?;
        printer.say(format_args!("run folder {}", plan.run_dir.display()));
        printer.say(started_by(layout));
        let result = self.launch_and_show(None, &plan, &plan_file, &programs, printer);
        // The launcher may try many times to start its ranks.
        if result.as_ref().is_err_and(|error| !log_explains(error)) && plan_file.remove_unused_folder() {
            printer.say(format_args!("removed the run folder, because the run had not begun"));
        }
        result
    }

    /// Says that the user interrupted a measurement, and returns the exit status.
    fn interrupted_before_the_run(&self, killed: bool, printer: &Printer) -> u8 {
        if let Some(events) = &self.events {
            events.interrupted(None, killed);
        }
        printer.say("interrupted before the run began");
        exit::INTERRUPTED
    }

    /// Starts a rank that has no run folder. Its plan and its log are in a temporary folder, which stays if
    /// the rank fails and the log may say why.
    fn launch_without_results(
        &mut self,
        mut plan: RunPlan,
        programs: &launch::Programs,
        printer: &Printer,
    ) -> Result<u8, CommandError> {
        let folder = log_folder::create(&format!("yolo-rank{}-", plan.ranks.first))?;
        plan.run_dir = folder.path().to_owned();
        let plan_file = plan.write()?;
        let status = self.launch_and_show(None, &plan, &plan_file, programs, printer);
        let keep =
            |error: &CommandError| log_explains(error) || launch::have_output(&folder.path().join("logs"));
        if status.as_ref().is_err_and(keep) {
            let kept: PathBuf = folder.keep();
            printer.warning(format_args!("its log is in {}", kept.join("logs").display()));
        }
        status
    }

    /// Starts the ranks, shows what they report, and says how the run ended. `team` is the machines of a run on
    /// several.
    pub(super) fn launch_and_show(
        &mut self,
        team: Option<&mut Team>,
        plan: &RunPlan,
        plan_file: &std::path::Path,
        programs: &launch::Programs,
        printer: &Printer,
    ) -> Result<u8, CommandError> {
        let gpus = GpuMonitor::start(gpus_of(&plan.ranks));
        let mut view = RunView::new(printer, &plan.task, self.events.is_none())
            .with_gpus(&gpus)
            .with_graphics(self.graphics);
        if let Some(events) = &self.events {
            events.planned(plan);
        }
        let mut report = ReportOfRun::new(plan, programs);
        let mut listen = |rank: Option<usize>, event: &Event| {
            report.hear(rank, event);
            // The report is one of the files of a finished run.
            let event = &match event {
                Event::Finished { files, stopped_early, .. } if rank == Some(0) => {
                    let end = if *stopped_early { End::StoppedEarly } else { End::Finished };
                    let page = warned(report.write(end, None), printer);
                    with_files(event, files.iter().cloned().chain(page).collect())
                }
                _ => event.clone(),
            };
            view.show(rank, event);
            if let Some(events) = &mut self.events {
                if matches!(event, Event::Step(_)) {
                    events.gpus(gpus.latest());
                }
                events.show(rank, event);
            }
        };
        let several = team.is_some();
        let end = match team {
            Some(team) => launch::run_with(team, plan, plan_file, programs, &mut listen),
            None => launch::run(plan, plan_file, programs, &mut listen),
        };
        let RunResults { files, measurements, predictions } = view.finish();
        let unfinished = match &end {
            Ok(RunEnd::Finished) => None,
            Ok(RunEnd::Interrupted { .. }) => warned(report.write(End::Interrupted, None), printer),
            Err(error) => warned(report.write(End::Failed, Some(error.to_string())), printer),
        };
        if let Some(page) = unfinished {
            printer.say(format_args!("report of what was done: {}", page.path.display()));
        }
        match end? {
            RunEnd::Finished => {
                for file in files.iter().filter(|_| self.events.is_none()) {
                    printer.result(format_args!("{}: {}", file.what, file.path.display()));
                }
                (self.measured)(plan, measurements);
                // The user asked for all pictures.
                Ok(if predictions.skipped > 0 { exit::FAILURE } else { exit::SUCCESS })
            }
            RunEnd::Interrupted { resume_from, killed } => {
                if let Some(events) = &self.events {
                    events.interrupted(resume_from.as_deref(), killed);
                }
                let how = match (&resume_from, killed, &plan.task) {
                    (Some(_), false, _) => "interrupted; the run's state is saved",
                    (Some(_), true, _) => "interrupted; the ranks were killed before they could save",
                    (None, _, Task::Train(_)) => "interrupted before the first checkpoint",
                    (None, false, _) => "interrupted",
                    (None, true, _) => "interrupted; the ranks were killed, so files may be missing",
                };
                printer.say(how);
                for file in files.iter().filter(|_| self.events.is_none()) {
                    printer.result(format_args!("{}: {}", file.what, file.path.display()));
                }
                if resume_from.is_none() && plan.ranks.are_all() && matches!(plan.task, Task::Train(_)) {
                    let command = programs.resume_command();
                    printer
                        .say(format_args!("to start it again, run\n  {command} {}", plan.run_dir.display()));
                }
                if let Some(path) = resume_from {
                    let command = programs.resume_command();
                    printer.say(format_args!(
                        "to resume from the last checkpoint, run\n  {command} {}",
                        path.display()
                    ));
                    if several {
                        printer.say(launch::ON_SEVERAL);
                    }
                }
                Ok(exit::INTERRUPTED)
            }
        }
    }
}

/// The page of a report, if there is one. That it cannot be written is a warning.
fn warned(page: Result<Option<OutputFile>, String>, printer: &Printer) -> Option<OutputFile> {
    page.unwrap_or_else(|message| {
        printer.warning(message);
        None
    })
}

/// The end of a run with these files.
fn with_files(event: &Event, files: Vec<OutputFile>) -> Event {
    match event.clone() {
        Event::Finished { epochs, seconds, stopped_early, .. } => {
            Event::Finished { files, epochs, seconds, stopped_early }
        }
        other => other,
    }
}

/// Whether the log of a failed rank may say more than the error, which is all if the rank itself reported it.
fn log_explains(error: &CommandError) -> bool {
    match error {
        CommandError::Launch(LaunchError::Rank(failure)) => !failure.reported,
        CommandError::Launch(LaunchError::Unfinished { .. } | LaunchError::Timeout { .. }) => true,
        _ => false,
    }
}

/// The variables by which the ranks of another launcher meet.
fn meeting_point(layout: &Layout) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mut variables = vec![
        (MASTER_ADDR.into(), layout.master_addr.clone().into()),
        (MASTER_PORT.into(), layout.master_port.to_string().into()),
    ];
    if let Some(prefix) = &layout.agent_store {
        variables.push((YOLO_STORE_PREFIX.into(), prefix.into()));
    }
    variables
}

/// What rank 0 says about the launcher.
fn started_by(layout: &Layout) -> String {
    let Layout { launcher, rank, world_size, local_world_size, master_addr, master_port, .. } = layout;
    let store = if layout.agent_store.is_some() { "its store" } else { "the store of rank 0" };
    let ranks = yolo_base::format::count(*world_size, "rank");
    let meet = format!("they meet at {store}, {master_addr}:{master_port}");
    match launcher {
        Launcher::Unknown => {
            format!("the environment variables RANK and WORLD_SIZE name rank {rank} of {ranks}; {meet}")
        }
        _ => format!("{launcher} started {ranks}, {local_world_size} on this machine; {meet}"),
    }
}

/// The options for the checks of this machine. One that joins a resumed run has neither its folder nor its weights,
/// and needs none.
pub(super) fn checked_here(options: &TrainOptions, joins: bool) -> TrainOptions {
    match joins {
        true => TrainOptions { resume: None, weights: Some(String::new()), ..options.clone() },
        false => options.clone(),
    }
}

/// Adds what the ranks need on this machine: threads, settings of NCCL, and the cores near their GPUs. Returns
/// what the user should know about it.
pub(super) fn fit_to_machine(host: &Host, ranks: &mut Ranks) -> Vec<String> {
    ranks.threads = machine::threads_of_user().unwrap_or(ranks.threads);
    let here = ranks.on_this_machine();
    let mut notes =
        machine::avoid_nccl_traps(host, ranks.backend, &ranks.devices, here, &mut ranks.variables);
    // The other ranks of the machine, if it has some, choose their CPUs themselves.
    if here == ranks.devices.len() {
        ranks.cpus = cpus_of_ranks(host, &ranks.devices).iter().map(ToString::to_string).collect();
    }
    if !ranks.cpus.is_empty() {
        let name = |(index, cpus)| format!("rank {} to CPUs {cpus}", ranks.first + index);
        let each: Vec<String> = ranks.cpus.iter().enumerate().map(name).collect();
        notes.push(format!("each rank is bound to one NUMA node: {}", each.join(", ")));
    }
    notes
}

/// The GPUs that the ranks of this machine use. What runs on a MIG instance cannot be told from the rest of
/// its GPU.
pub(super) fn gpus_of(ranks: &Ranks) -> Vec<usize> {
    let index = |device: &Device| match device {
        Device::Cuda(index) => Some(*index),
        Device::Cpu | Device::Mig { .. } => None,
    };
    let mut gpus: Vec<usize> = ranks.all_devices().iter().filter_map(index).collect();
    gpus.sort_unstable();
    gpus.dedup();
    gpus
}
