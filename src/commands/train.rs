//! `yolo train`.

use yolo_plan::options::Workers;
use yolo_plan::run::plan_train;

use super::run::{Run, checked_here, not_started};
use super::{auto_batch, machines};
use crate::cli::{MachineArgs, TrainArgs};
use crate::doctor;
use crate::error::CommandError;
use crate::launch::machines::Place;
use crate::printer::{Printer, RunEvents};
use crate::setup;

/// Trains a detector and returns the exit status.
pub(super) fn train(args: &TrainArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let events = args.json.then(|| RunEvents::new(printer));
    let refused = |error| not_started(events.as_ref(), error);
    args.yolov5_only.refuse().map_err(|error| refused(error.into()))?;
    let options = &setup::with_named_nccl(&args.options).map_err(|error| refused(error.into()))?;
    if let Some(warning) = args.yolov5_only.warning(false) {
        printer.warning(warning);
    }
    let MachineArgs { nnodes, node_rank, master_addr, master_port } = &args.machines;
    let place = Place::of_options(*nnodes, *node_rank, master_addr.as_deref(), *master_port)
        .map_err(|error| refused(error.into()))?;
    let joins = options.resume.is_some() && place.as_ref().is_some_and(|place| !place.is_master());
    let checked = checked_here(options, joins);
    let run = Run {
        exist_ok: options.exist_ok,
        measure_batch: auto_batch::wanted(options),
        measure_workers: options.workers == Some(Workers::Auto),
        plan: &|context| plan_train(options, context),
        preflight: &|host, plan| match args.no_preflight {
            true => Ok(()),
            false => doctor::preflight(host, &checked, plan, printer),
        },
        measured: &|_, _| (),
        events,
        layout: None,
        graphics: None,
    };
    match place {
        Some(place) => machines::execute(run, options, &place, offline, printer),
        None => run.execute(offline, printer),
    }
}
