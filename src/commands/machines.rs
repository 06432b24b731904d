//! A run on several machines: this machine prepares as for a run of its own, meets the others, and then
//! starts and watches all ranks as the master, or does what the master wants.

use std::net::IpAddr;

use yolo_base::address::is_public;
use yolo_base::{Hint as _, exit};
use yolo_checks::Host;
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::device;
use yolo_plan::options::TrainOptions;
use yolo_plan::run::{Part, PlanContext, Planned, plan_train};

use super::loader_threads;
use super::run::{Run, decided, fit_to_machine, plan_context, planned_in};
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::launch::machines::{
    Door, Facts, Joined, MachinesError, MemberEnd, Place, Team, interface_note, interface_variable, join,
    serve,
};
use crate::launch::{Programs, run_folder};
use crate::machine;
use crate::printer::Printer;

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
    if let (Some(events), Err(error)) = (&run.events, &result) {
        events.failed(error);
    }
    result
}

fn meet_and_run(
    run: &mut Run<'_>,
    options: &TrainOptions,
    place: &Place,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    if options.resume.is_some() {
        return Err(CommandError::Usage {
            what: "--resume on several machines is not supported yet".to_owned(),
            hint: "resume the run on the machine that was machine 0, without --nnodes and the options about machines".to_owned(),
        });
    }
    if run.measure_workers {
        return Err(loader_threads::only_on_one_machine("with --nnodes").into());
    }
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
    let here = prepare(options, place, offline, printer)?;
    match door {
        Some(door) => lead(run, door, place, here, offline, printer),
        None => follow(run, place, here, offline, printer),
    }
}

/// Gets what the run needs on this machine. Nobody knows yet how many ranks the others have, so the batch is
/// divided later.
fn prepare(
    options: &TrainOptions,
    place: &Place,
    offline: bool,
    printer: &Printer,
) -> Result<Prepared, CommandError> {
    let dirs = YoloDirs::from_env()?;
    let host = machine::this_host(&dirs);
    let mut context = plan_context(&host, &dirs)?;
    let TrainOptions { device, nproc_per_node, .. } = options;
    let ranks = device::choose(device.as_deref(), *nproc_per_node, &context.inventory)?.devices.len();
    let world_size = ranks * place.machines;
    context.part = Some(Part { first: ranks * place.number, first_here: 0, here: ranks, world_size });
    let batch_size = i64::try_from(world_size).ok();
    let provisional = TrainOptions { batch_size, batch_split: None, ..options.clone() };
    let plan = |context: &PlanContext| plan_train(&provisional, context).map(decided);
    let Planned { plan, .. } = *planned_in(&mut context, plan, &dirs, offline, printer)?;
    let programs = machine::programs(&dirs, plan.ranks.backend, offline, &[], printer)?;
    let facts = Facts::of(options, &plan, &programs.variant)?;
    Ok(Prepared { dirs, host, context, programs, facts })
}

/// Plans the ranks of this machine, now that all are known. The second value is whether the run folder may exist.
fn plan_part(
    run: &Run<'_>,
    here: &mut Prepared,
    (part, address): (Part, Option<IpAddr>),
    offline: bool,
    printer: &Printer,
) -> Result<(RunPlan, bool), CommandError> {
    here.context.part = Some(part);
    let plan = |context: &PlanContext| (run.plan)(context).map(decided);
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
    door: Door,
    place: &Place,
    mut here: Prepared,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let address = door.address().ip();
    let mut team = door.gather(place, &here.facts, &mut |line| printer.say(line))?;
    let part = team.own_part();
    let planned = plan_part(run, &mut here, (part, Some(address)), offline, printer);
    let (mut plan, exist_ok) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            team.refuse(&as_refusal(&error));
            team.finish();
            return Err(error);
        }
    };
    let wanted = plan.ranks.backend;
    plan.ranks.backend = match team.prepare(wanted) {
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
    place: &Place,
    mut here: Prepared,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let mut say = |line: String| printer.say(line);
    let joined: Joined = join(place, &here.facts, &mut say)?;
    let part = (joined.part(), joined.address());
    let (plan, exist_ok) = match plan_part(run, &mut here, part, offline, printer) {
        Ok(planned) => planned,
        Err(error) => {
            joined.fail(error.to_string(), error.hint().map(|hint| hint.into_owned()));
            return Err(error);
        }
    };
    joined.ready(plan.ranks.backend);
    let MemberEnd { status, how } = serve(joined, plan, exist_ok, &here.programs, &mut say)?;
    match status {
        exit::SUCCESS | exit::INTERRUPTED => {
            printer.say(how);
            Ok(status)
        }
        _ => Err(MachinesError::Refused { message: how, hint: None }.into()),
    }
}

fn as_refusal(error: &CommandError) -> MachinesError {
    let hint = error.hint().map(|hint| hint.into_owned());
    MachinesError::Refused { message: error.to_string(), hint }
}

fn first_line(error: &CommandError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
