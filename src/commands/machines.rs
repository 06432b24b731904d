//! A run on several machines: this machine prepares as for a run of its own, meets the others, and then
//! starts and watches all ranks as the master, or does what the master wants.

use std::net::IpAddr;
use std::path::Path;

use yolo_base::address::is_public;
use yolo_base::{Hint as _, exit, seconds};
use yolo_checks::Host;
use yolo_plan::PlanError;
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::options::TrainOptions;
use yolo_plan::run::{
    Part, PlanContext, Planned, Planning, Ranks, plan_join_resumed, plan_train, ranks_joining,
    ranks_to_resume,
};
use yolo_plan::{batch, device};
use yolo_protocol::meeting::{Fact, MeetingError};

use super::interrupt::Interrupt;
use super::loader_threads;
use super::resumed_checkpoint;
use super::run::{Run, decided, fit_to_machine, not_started, plan_context, planned_in};
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::launch::machines::{
    Door, Facts, Joined, Libraries, MachinesError, MemberEnd, Place, Team, data_facts, interface_note,
    interface_variable, join, serve,
};
use crate::launch::{Programs, run_folder};
use crate::machine;
use crate::printer::Printer;
use crate::setup;

/// This machine, before it has met the others.
struct Prepared {
    dirs: YoloDirs,
    host: Host,
    context: PlanContext,
    programs: Programs,
    facts: Facts,
}

/// Does all of it and returns the exit status.
pub(super) fn execute(
    mut run: Run<'_>,
    options: &TrainOptions,
    place: &Place,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let result = meet_and_run(&mut run, options, place, offline, printer);
    result.map_err(|error| not_started(run.events.as_ref(), error))
}

fn meet_and_run(
    run: &mut Run<'_>,
    options: &TrainOptions,
    place: &Place,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    if run.measure_batch {
        return Err(batch::auto_only_on_one_machine("with --nnodes").into());
    }
    if run.measure_workers {
        return Err(loader_threads::only_on_one_machine("with --nnodes").into());
    }
    seconds::check()?;
    let waiting = interruptible(run, printer);
    // Invariant: the port is open before anything else is done, so that a taken one is known at once.
    let door = place.is_master().then(|| Door::open(place)).transpose()?;
    if let Some(door) = &door
        && is_public(door.address().ip())
    {
        printer.warning(format_args!(
            "listening on the public address {}: whoever reaches it can take part in the run; use a private \
             network or a firewall",
            door.address().ip()
        ));
    }
    if let Some(door) = &door
        && door.address().ip().is_loopback()
    {
        printer.say(format_args!(
            "listening on {}, which only processes of this machine can reach",
            door.address().ip()
        ));
    }
    let here = prepare(options, place, offline, printer)?;
    match door {
        Some(door) => lead(run, options, (door, place), here, waiting, offline, printer),
        None => follow(run, options, place, here, waiting, offline, printer),
    }
}

/// Whether this machine joins a run that is resumed, of which it knows nothing before the master says it.
fn joins_resumed(options: &TrainOptions, place: &Place) -> bool {
    options.resume.is_some() && !place.is_master()
}

/// A part for this machine and options that go with it, before anybody knows how many ranks the others have. The
/// batch is divided later.
fn provisional(
    options: &TrainOptions,
    place: &Place,
    context: &PlanContext,
) -> Result<(Part, TrainOptions), PlanError> {
    let mut options = options.clone();
    let (here, world_size) = match &options.resume {
        Some(run) if place.is_master() => {
            let (here, batch) = ranks_to_resume(run, &options, context)?;
            // Among so many ranks, the batch can be divided.
            (here, batch.max(here + 1))
        }
        _ => {
            let TrainOptions { device, nproc_per_node, batch_size, batch_split, .. } = &options;
            batch::check_before_ranks_are_known(*batch_size, batch_split.as_deref())?;
            let here = device::choose(device.as_deref(), *nproc_per_node, &context.inventory)?.devices.len();
            let world_size = here * place.machines;
            options.batch_size = i64::try_from(world_size).ok();
            options.batch_split = None;
            (here, world_size)
        }
    };
    Ok((Part { first: here * place.number, first_here: 0, here, world_size }, options))
}

/// Gets what the run needs on this machine.
fn prepare(
    options: &TrainOptions,
    place: &Place,
    offline: bool,
    printer: &Printer,
) -> Result<Prepared, CommandError> {
    let dirs = YoloDirs::from_env()?;
    let host = machine::this_host(&dirs);
    let mut context = plan_context(&host, &dirs)?;
    let (part, provisional) = provisional(options, place, &context)?;
    context.part = Some(part);
    if joins_resumed(options, place) {
        let (ranks, _) = ranks_joining(options, &context)?;
        let programs = machine::programs(&dirs, ranks.backend, offline, &[], printer)?;
        let facts = Facts::of_joining(options, ranks.devices.len(), libraries(&programs, &ranks));
        return Ok(Prepared { dirs, host, context, programs, facts });
    }
    let plan = |context: &PlanContext| plan_train(&provisional, context).map(decided);
    let Planned { plan, .. } = *planned_in(&mut context, plan, &dirs, offline, printer)?;
    let programs = machine::programs(&dirs, plan.ranks.backend, offline, &[], printer)?;
    let facts = Facts::of(options, &plan, libraries(&programs, &plan.ranks))?;
    Ok(Prepared { dirs, host, context, programs, facts })
}

fn libraries<'a>(programs: &'a Programs, ranks: &Ranks) -> Libraries<'a> {
    let uses_nccl = ranks.backend == Some(Backend::Nccl);
    let nccl = if uses_nccl { setup::nccl_version(ranks.nccl.as_deref()) } else { None };
    Libraries { libtorch: &programs.variant, nccl }
}

/// Plans the ranks of this machine, now that all are known. The second value is whether the run folder may exist.
fn plan_part(
    run: &Run<'_>,
    plan: &dyn Fn(&PlanContext) -> Result<Planning, PlanError>,
    here: &mut Prepared,
    (part, address): (Part, Option<IpAddr>),
    offline: bool,
    printer: &Printer,
) -> Result<(RunPlan, bool), CommandError> {
    here.context.part = Some(part);
    let plan = |context: &PlanContext| plan(context).map(decided);
    let planned = planned_in(&mut here.context, plan, &here.dirs, offline, printer)?;
    let Planned { mut plan, warnings, notes, in_its_folder } = *planned;
    warnings.iter().for_each(|warning| printer.warning(warning));
    notes.iter().for_each(|note| printer.say(note));
    fit_to_machine(&here.host, &mut plan.ranks).iter().for_each(|note| printer.say(note));
    if let Some(address) = address {
        printer.say(interface_note(address));
        let nccl = plan.ranks.backend == Some(Backend::Nccl);
        plan.ranks.variables.extend(interface_variable(address).filter(|_| nccl));
    }
    (run.preflight)(&here.host, &plan)?;
    Ok((plan, run.exist_ok || in_its_folder))
}

/// The master: waits for the others, and runs.
fn lead(
    run: &mut Run<'_>,
    options: &TrainOptions,
    (door, place): (Door, &Place),
    mut here: Prepared,
    waiting: Interrupt,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let address = door.address().ip();
    let mut team = door.gather(place, &here.facts, &mut |line| printer.say(line))?;
    drop(waiting);
    let part = team.own_part();
    let planned = plan_part(run, run.plan, &mut here, (part, Some(address)), offline, printer);
    let planned = planned.and_then(|planned| match options.resume.is_some() && !planned.0.resumes() {
        true => Err(no_checkpoint(&planned.0)),
        false => resumed_checkpoint::check(&planned.0).map(|()| planned).map_err(Into::into),
    });
    let (mut plan, exist_ok) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            team.refuse(&as_refusal(&error));
            team.finish();
            return Err(error);
        }
    };
    let wanted = plan.ranks.backend;
    let resumed = plan.task.train().filter(|_| plan.resumes());
    if let Some(last) = resumed.and_then(|task| task.resume.as_deref()) {
        printer.say(resuming(last));
    }
    plan.ranks.backend = match team.prepare(wanted, &here.facts, resumed) {
        Ok(backend) => backend,
        Err(error) => {
            team.finish();
            return Err(error.into());
        }
    };
    if plan.ranks.backend != wanted {
        printer.say("communicating over gloo: not all machines can use NCCL");
    }
    let result = start(run, &mut team, plan, exist_ok, &here.programs, printer);
    let (status, how) = match &result {
        Ok(exit::SUCCESS) => (exit::SUCCESS, "the run is complete".to_owned()),
        Ok(status) => (*status, "the run was interrupted".to_owned()),
        Err(error) => (error.exit_status(), first_line(error)),
    };
    team.dismiss(status, &how);
    result
}

/// Ctrl-C ends the program while it waits for other machines.
fn interruptible(run: &Run<'_>, printer: &Printer) -> Interrupt {
    let message = "the run had not begun, because not all machines were there";
    match &run.events {
        Some(events) => Interrupt::calling(events.interruption(), message, printer),
        None => Interrupt::with_message(message, printer),
    }
}

/// Such a run starts again on one machine. On several, the others would need its weights.
fn no_checkpoint(plan: &RunPlan) -> CommandError {
    CommandError::Failed {
        what: format!("the run in {} has no checkpoint yet that could be resumed", plan.run_dir.display()),
        hint: "start it again on all machines, with its options instead of --resume".to_owned(),
    }
}

fn resuming(last: &Path) -> String {
    format!("resuming the run of machine 0 from {}", last.display())
}

fn start(
    run: &mut Run<'_>,
    team: &mut Team,
    mut plan: RunPlan,
    exist_ok: bool,
    programs: &Programs,
    printer: &Printer,
) -> Result<u8, CommandError> {
    // Invariant: the run folder is created after all machines were compared and can start.
    let plan_file = run_folder::create(&mut plan, exist_ok)?;
    printer.say(format_args!("run folder {}", plan.run_dir.display()));
    run.launch_and_show(Some(team), &plan, &plan_file, programs, printer)
}

/// Another machine: joins the master, and does what it wants.
fn follow(
    run: &Run<'_>,
    options: &TrainOptions,
    place: &Place,
    mut here: Prepared,
    waiting: Interrupt,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let mut say = |line: String| printer.say(line);
    let joined: Joined = join(place, &here.facts, &mut say)?;
    drop(waiting);
    let (plan, exist_ok, data) = match plan_joined(run, options, &mut here, &joined, offline, printer) {
        Ok(planned) => planned,
        Err(error) => {
            joined.fail(error.to_string(), error.hint().map(|hint| hint.into_owned()));
            return Err(error);
        }
    };
    joined.ready(plan.ranks.backend, data);
    let MemberEnd { status, how } = serve(joined, plan, exist_ok, &here.programs, &mut say)?;
    match status {
        exit::SUCCESS | exit::INTERRUPTED => {
            printer.say(how);
            Ok(status)
        }
        _ => Err(MachinesError::from(MeetingError::Refused { message: how, hint: None }).into()),
    }
}

/// Plans the ranks of a machine that has joined. The last value is about its data set, if the master resumes a run:
/// then this machine knows it only now.
fn plan_joined(
    run: &Run<'_>,
    options: &TrainOptions,
    here: &mut Prepared,
    joined: &Joined,
    offline: bool,
    printer: &Printer,
) -> Result<(RunPlan, bool, Vec<Fact>), CommandError> {
    let part = (joined.part(), joined.address());
    let Some(task) = joined.resumed() else {
        let (plan, exist_ok) = plan_part(run, run.plan, here, part, offline, printer)?;
        return Ok((plan, exist_ok, Vec::new()));
    };
    if let Some(last) = &task.resume {
        printer.say(resuming(last));
    }
    let join = |context: &PlanContext| plan_join_resumed(task, options, context);
    let (plan, exist_ok) = plan_part(run, &join, here, part, offline, printer)?;
    let data = data_facts(&plan)?;
    Ok((plan, exist_ok, data))
}

fn as_refusal(error: &CommandError) -> MachinesError {
    let hint = error.hint().map(|hint| hint.into_owned());
    MeetingError::Refused { message: error.to_string(), hint }.into()
}

fn first_line(error: &CommandError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
