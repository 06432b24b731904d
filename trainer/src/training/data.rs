//! The images of a training run: reads the labels of its splits and opens their loaders.

use std::path::PathBuf;
use std::sync::Arc;

use yolo_base::format::count;
use yolo_data::loader::{self, LoaderSettings, TrainLoader, ValLoader};
use yolo_data::scan::{Sample, Scan, ScanOptions, scan};
use yolo_plan::RunPlan;
use yolo_plan::run::TrainTask;

use crate::error::TrainError;
use crate::rank::context::Context;
use crate::tasks::val::Split;

/// Padding of rectangular validation batches, in strides (spec §7).
const VAL_PAD: f64 = 0.5;

/// Reads and verifies the labels of a split. For the training split, rank 0 goes first and leaves
/// a cache for the others.
pub(crate) fn read_split(
    context: &Context,
    task: &TrainTask,
    split: &str,
    roots: &[PathBuf],
) -> Result<Scan, TrainError> {
    let options =
        ScanOptions { single_cls: task.single_cls, ..ScanOptions::new(split, task.data.names.len()) };
    let barrier =
        || context.group.as_ref().map_or(Ok(()), |group| group.barrier(None).map_err(TrainError::from));
    if !context.is_main() {
        barrier()?;
        return Ok(scan(roots, &options)?);
    }
    // If this fails, the supervisor stops the ranks that wait.
    let found = scan(roots, &options)?;
    if split == "train" {
        barrier()?;
    }
    found.messages.iter().for_each(|message| context.reporter.warning(message));
    context.reporter.note(format!(
        "{split}: {}, {} without labels, {} corrupt",
        count(found.samples.len(), "image"),
        found.missing + found.empty,
        found.corrupt
    ));
    Ok(found)
}

/// The loader of this rank's share of the training split.
pub(crate) fn train_loader(
    context: &Context,
    plan: &RunPlan,
    task: &TrainTask,
    samples: Arc<[Sample]>,
    stride: usize,
) -> Result<TrainLoader, TrainError> {
    let settings = LoaderSettings {
        image_size: task.image_size,
        stride,
        batch_per_rank: plan.ranks.share(task.batch),
        rank: context.rank,
        world: context.world,
        seed: task.seed,
        workers: task.workers,
        rect: task.rect,
        cache: task.cache,
        augment: (&task.hyp).into(),
    };
    Ok(TrainLoader::new(samples, settings)?)
}

/// The validation split with its loader, which makes batches twice as large as those of training.
pub(crate) fn open_val(
    context: &Context,
    plan: &RunPlan,
    task: &TrainTask,
    stride: usize,
) -> Result<Split, TrainError> {
    let samples: Arc<[Sample]> = read_split(context, task, "val", &task.data.val)?.samples.into();
    let settings = loader::ValSettings {
        image_size: task.image_size,
        stride,
        batch: plan.ranks.share(task.batch) * 2,
        workers: task.workers,
        rect: true,
        pad: VAL_PAD,
        cache: task.cache,
    };
    let loader = ValLoader::new(Arc::clone(&samples), settings)?;
    Ok(Split { samples, loader })
}
