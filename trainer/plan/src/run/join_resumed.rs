//! The plan of ranks that join a resumed run without its folder, which is on another machine only. They get the task
//! of the run from there, and replace what they have of their own, which are devices, the files of the data set, the
//! loader threads and the folder of their logs. On several machines, the master sends the task before the ranks are
//! started. Under another launcher, each rank is started by itself, and rank 0 sends it when they meet. Either way,
//! rank 0 sends the checkpoint.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::planning::{self, Need, need_data_set};
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
    Ok((Ranks::new(choice.devices, connection, *part, inventory), notes))
}

/// What ranks have of their own with warnings about it, or what is missing.
type Own = Result<(JoinTask, Vec<String>), Vec<Need>>;

/// What ranks have of their own in a resumed run whose task they get from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinTask {
    /// The data set, if `--data` names one. Otherwise its files have the same paths as there.
    pub data: Option<DataSet>,
    /// Loader threads, if `--workers` names a number.
    pub workers: Option<usize>,
    /// CPU cores of this machine.
    pub cores: usize,
}

impl JoinTask {
    /// What the options name, or what is missing, and warnings about it.
    fn of(options: &TrainOptions, context: &PlanContext) -> Result<Own, PlanError> {
        let (mut missing, mut warnings, mut data) = (Vec::new(), Vec::new(), None);
        if let Some(named) = &options.data {
            need_data_set(named, context, &mut missing)?;
            if !missing.is_empty() {
                return Ok(Err(missing));
            }
            let (found, about) = DataSet::load_with_warnings(named, &context.places)?;
            (data, warnings) = (Some(found), about);
        }
        let workers = options.workers.map(Workers::most);
        Ok(Ok((Self { data, workers, cores: context.inventory.cores }, warnings)))
    }

    /// The task of the run for these ranks.
    ///
    /// # Errors
    /// When the data set is not on this machine.
    pub fn complete(&self, task: &TrainTask, ranks: &Ranks) -> Result<TrainTask, PlanError> {
        let mut data = match &self.data {
            Some(data) => data.clone(),
            None => as_on_machine_0(&task.data)?,
        };
        if task.single_cls {
            data.merge_classes();
        }
        let largest = task.batch_split.iter().copied().max().unwrap_or_else(|| ranks.share(task.batch));
        let workers = ranks.workers(Some(self.workers.unwrap_or(task.workers)), largest, self.cores);
        // The checkpoint has the weights.
        Ok(TrainTask { data, weights: None, workers, ..task.clone() })
    }
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
    let (own, warnings) = match JoinTask::of(options, context)? {
        Ok(own) => own,
        Err(missing) => return Ok(Planning::Missing(missing)),
    };
    let task = own.complete(task, &ranks)?;
    let run_dir = folder::of_run(
        options.project.as_deref().unwrap_or(Path::new("runs/train")),
        options.name.as_deref(),
        options.exist_ok,
        &context.places,
    )?;
    Ok(Planning::ready(ranks, run_dir, Task::Train(Box::new(task)), warnings, notes))
}

/// Plans ranks of a resumed run whose task rank 0 sends when they meet. The folder of their logs is still to be
/// chosen.
///
/// # Errors
/// As [`ranks_joining`], and when the data set that `--data` names cannot be used.
pub fn plan_join_rank_0(options: &TrainOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    let (ranks, notes) = ranks_joining(options, context)?;
    Ok(match JoinTask::of(options, context)? {
        Ok((own, warnings)) => Planning::ready(ranks, PathBuf::new(), Task::Join(own), warnings, notes),
        Err(missing) => Planning::Missing(missing),
    })
}

/// The data set, if its files have the same paths here.
fn as_on_machine_0(data: &DataSet) -> Result<DataSet, PlanError> {
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
