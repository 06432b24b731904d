//! `yolo train`.

use yolo_plan::options::Workers;
use yolo_plan::run::plan_train;

use super::machines;
use super::run::Run;
use crate::cli::{MachineArgs, TrainArgs};
use crate::doctor;
use crate::error::CommandError;
use crate::launch::machines::Place;
use crate::printer::{Printer, RunEvents};

/// Trains a detector and returns the exit status.
pub(super) fn train(args: &TrainArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let options = &args.options;
    let run = Run {
        exist_ok: options.exist_ok,
        measure_workers: options.workers == Some(Workers::Auto),
        plan: &|context| plan_train(options, context),
        preflight: &|host, plan| match args.no_preflight {
            true => Ok(()),
            false => doctor::preflight(host, options, plan, printer),
        },
        measured: &|_, _| (),
        events: args.json.then(|| RunEvents::new(printer)),
        layout: None,
    };
    let MachineArgs { nnodes, node_rank, master_addr, master_port } = &args.machines;
    match Place::of_options(*nnodes, *node_rank, master_addr.as_deref(), *master_port)? {
        Some(place) => machines::execute(run, options, &place, offline, printer),
        None => run.execute(offline, printer),
    }
}
