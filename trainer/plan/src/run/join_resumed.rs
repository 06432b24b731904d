//! The plan of a machine that joins a resumed run on several machines. The run folder is on the master's machine
//! only: the master sends its task, in which this machine replaces what it has of its own, which are devices, the
//! files of the data set and the folder of its logs. Rank 0 sends the checkpoint to the other ranks.

use std::path::{Path, PathBuf};

use super::planning::{self, need_data_set};
use super::resume::{MAY_CHANGE, refuse_other_options};
use super::{PlanContext, Planning, Ranks, Task, TrainTask, folder, one_process};
use crate::backend::{Connection, Reach};
use crate::dataset::DataSet;
use crate::device;
use crate::error::PlanError;
use crate::options::{TrainOptions, Workers};

/// The options besides [`MAY_CHANGE`] that are about files of this machine.
const FILES: [&str; 4] = ["data", "project", "name", "exist_ok"];

/// The ranks of this machine, before it knows the run, and notes about the choice.
///
/// # Errors
/// When the options cannot be used here, or with a resumed run.
pub fn ranks_joining(
    options: &TrainOptions,
    context: &PlanContext,
) -> Result<(Ranks, Vec<String>), PlanError> {
    refuse_other_options(options, &[&MAY_CHANGE[..], &FILES].concat())?;
    let PlanContext { inventory, places, part, .. } = context;
    if let Some(parallel) = options.parallel.filter(|parallel| parallel.is_one_process()) {
        one_process::check_options(parallel, options, *part)?;
    }
    let choice = device::choose(options.device.as_deref(), options.nproc_per_node, inventory)?;
    let nccl = options.nccl.as_deref().map(|file| planning::nccl_library(file, places)).transpose()?;
    let reach = part.map_or(Reach::Plan, |part| part.reach(choice.devices.len()));
    let wanted = options.backend.unwrap_or_default();
    let connection = Connection::choose_for(reach, wanted, nccl, &choice.devices, inventory)?;
    let notes = choice.note.into_iter().chain(connection.notes.clone()).collect();
    Ok((Ranks::new(choice.devices, connection, *part, inventory.cores), notes))
}

/// Plans the part of this machine in the resumed run whose task the master has sent.
///
/// # Errors
/// As [`ranks_joining`], and when the data set is not on this machine.
pub fn plan_join_resumed(
    task: &TrainTask,
    options: &TrainOptions,
    context: &PlanContext,
) -> Result<Planning, PlanError> {
    let (ranks, notes) = ranks_joining(options, context)?;
    let PlanContext { inventory, places, .. } = context;
    let (data, warnings) = match &options.data {
        Some(data) => {
            let mut missing = Vec::new();
            need_data_set(data, context, &mut missing)?;
            if !missing.is_empty() {
                return Ok(Planning::Missing(missing));
            }
            DataSet::load_for_run(data, task.single_cls, places)?
        }
        None => (as_on_the_master(&task.data)?, Vec::new()),
    };
    let run_dir = folder::of_run(
        options.project.as_deref().unwrap_or(Path::new("runs/train")),
        options.name.as_deref(),
        options.exist_ok,
        places,
    )?;
    let largest = task.batch_split.iter().copied().max().unwrap_or_else(|| ranks.share(task.batch));
    let workers = options.workers.map_or(task.workers, Workers::most);
    let task = TrainTask {
        data,
        // The checkpoint has them.
        weights: None,
        workers: ranks.workers(Some(workers), largest, inventory.cores),
        ..task.clone()
    };
    Ok(Planning::ready(ranks, run_dir, Task::Train(Box::new(task)), warnings, notes))
}

/// The data set, if its files have the same paths here.
fn as_on_the_master(data: &DataSet) -> Result<DataSet, PlanError> {
    let is_glob = |path: &Path| path.to_string_lossy().contains(['*', '?', '[']);
    let missing: Option<&PathBuf> =
        data.train.iter().chain(&data.val).find(|path| !path.exists() && !is_glob(path));
    match missing {
        None => Ok(data.clone()),
        Some(path) => Err(PlanError::new(format!(
            "the data set of the resumed run is not where machine 0 has it: {} does not exist on this machine",
            path.display()
        ))
        .with_hint("name it on this machine with --data")),
    }
}
