//! `yolo rank`: one rank of a training run that another launcher starts. What the launcher knows, it says in
//! environment variables ([`Layout`]); everything else is as in `yolo train`.

use yolo_plan::PlanError;
use yolo_plan::launcher::{Launcher, Layout};
use yolo_plan::options::{TrainOptions, Workers};
use yolo_plan::run::{PlanContext, Planning, Task, plan_join_rank_0, plan_train, resumes_here};
use yolo_plan::{batch, device};

use super::run::{Run, checked_here, not_started};
use super::{auto_batch, loader_threads};
use crate::cli::TrainArgs;
use crate::doctor;
use crate::error::CommandError;
use crate::printer::{Printer, RunEvents};
use crate::setup;

/// Runs the rank that the environment names and returns the exit status.
pub(super) fn rank(args: &TrainArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let layout = Layout::read(&|name| std::env::var(name).ok()).map_err(|error| {
        // No rank knows whether it is rank 0, so each says it.
        not_started(args.json.then(|| RunEvents::new(printer)).as_ref(), error.into())
    })?;
    let numbers = (layout.rank, layout.world_size);
    let of_rank = |error| CommandError::OfRank { rank: numbers.0, world: numbers.1, error: Box::new(error) };
    // All ranks would print the same.
    let printer = if layout.rank == 0 { printer.clone() } else { printer.of_rank(layout.rank) };
    let events = (args.json && layout.rank == 0).then(|| RunEvents::new(&printer));
    if let Err(error) = refuse(args, layout.launcher) {
        return Err(of_rank(not_started(events.as_ref(), error.into())));
    }
    if let Some(warning) = args.yolov5_only.warning(true).filter(|_| layout.rank == 0) {
        printer.warning(warning);
    }
    let options = match setup::with_named_nccl(&args.options) {
        Ok(options) => options,
        Err(error) => return Err(of_rank(not_started(events.as_ref(), error.into()))),
    };
    Run {
        exist_ok: options.exist_ok,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan(&options, &layout, context),
        preflight: &|host, plan| match args.no_preflight || layout.local_rank > 0 {
            true => Ok(()),
            false => {
                let joins = matches!(plan.task, Task::Join(_));
                doctor::preflight(host, &checked_here(&options, joins), plan, &printer)
            }
        },
        measured: &|_, _| (),
        events: events.map(|events| if layout.world_size > 1 { events.of_one_of_several() } else { events }),
        layout: Some(&layout),
        graphics: None,
    }
    .execute(offline, &printer)
    .map_err(of_rank)
}

/// The plan of this rank, on its device.
fn plan(options: &TrainOptions, layout: &Layout, context: &PlanContext) -> Result<Planning, PlanError> {
    let choice = layout.device(options.device.as_deref(), &context.inventory)?;
    let context = PlanContext { part: Some(layout.part()), ..context.clone() };
    let options = TrainOptions { device: Some(device::argument(&choice.devices)), ..options.clone() };
    // Only rank 0 needs the run folder, which may be on its machine alone.
    let is_elsewhere = |run: &String| layout.rank > 0 && !resumes_here(run, &context);
    let mut planning = match options.resume.as_ref().is_some_and(is_elsewhere) {
        true => plan_join_rank_0(&options, &context)?,
        false => plan_train(&options, &context)?,
    };
    if let Planning::Ready(planned) = &mut planning {
        planned.notes.splice(0..0, choice.note);
    }
    Ok(planning)
}

/// Refuses what the launcher decides, and what a rank cannot decide alone.
fn refuse(args: &TrainArgs, launcher: Launcher) -> Result<(), PlanError> {
    args.yolov5_only.refuse()?;
    if args.evolution.evolve.is_some() {
        return Err(PlanError::usage(format!(
            "--evolve has no meaning in `yolo rank`, because {launcher} starts the ranks of one training"
        ))
        .with_hint("run `yolo train --evolve` on one machine, which trains each generation on all devices of --device"));
    }
    if auto_batch::wanted(&args.options) {
        return Err(batch::auto_only_on_one_machine("in `yolo rank`"));
    }
    if args.options.workers == Some(Workers::Auto) {
        return Err(loader_threads::only_on_one_machine("in `yolo rank`"));
    }
    let given = args.what_launchers_decide();
    let (have, them) = match given.len() {
        0 => return Ok(()),
        1 => ("has", "this"),
        _ => ("have", "these"),
    };
    Err(PlanError::usage(format!(
        "{} {have} no effect in `yolo rank`, because {launcher} decides {them}",
        yolo_base::format::list(&given)
    ))
    .with_hint(format!(
        "configure {launcher} instead; if it restarts ranks, let it start `yolo rank --resume` with the run folder"
    )))
}
