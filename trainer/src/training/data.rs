//! The images of a training run: reads the labels of its splits and opens their loaders.

use std::path::PathBuf;
use std::sync::Arc;

use yolo_base::format::count;
use yolo_data::loader::{self, LoaderSettings, TrainLoader, ValLoader};
use yolo_data::scan::{Sample, Scan, ScanOptions, scan};
use yolo_plan::options::Parallel;
use yolo_plan::run::TrainTask;

use super::same_data::agree;
use crate::error::TrainError;
use crate::rank::context::Context;
use crate::tasks::val::Split;

/// Padding of rectangular validation batches, in strides (spec §7).
const VAL_PAD: f64 = 0.5;

/// Reads and verifies the labels of a split. Rank 0 goes first and leaves a cache for the others.
pub(crate) fn read_split(
    context: &Context,
    task: &TrainTask,
    split: &str,
    roots: &[PathBuf],
) -> Result<Scan, TrainError> {
    let options =
        ScanOptions { single_cls: task.single_cls, ..ScanOptions::new(split, task.data.names.len()) };
    if !context.is_main() {
        context.barrier()?;
        let found = scan(roots, &options)?;
        agree(context, split, &found)?;
        return Ok(found);
    }
    // If this fails, the supervisor stops the ranks that wait.
    let found = scan(roots, &options)?;
    context.barrier()?;
    agree(context, split, &found)?;
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
    task: &TrainTask,
    samples: Arc<[Sample]>,
    stride: usize,
) -> Result<TrainLoader, TrainError> {
    let settings = LoaderSettings {
        image_size: task.image_size,
        stride,
        shares: task.shares(context.world),
        rank: context.rank,
        balance: task.balance,
        seed: task.seed,
        workers: task.workers,
        rect: task.rect,
        image_weights: task.image_weights.then_some(task.data.names.len()),
        quad: task.quad,
        cache: task.cache,
        memory: context.images.clone(),
        augment: (&task.hyp).into(),
    };
    Ok(TrainLoader::new(samples, settings)?)
}

/// The validation split with the loader of this rank's batches. They have twice the images of a
/// rank's share of a training batch, of the smallest one if they differ. With replicas, only the first
/// device validates, so they have twice the images of its share.
/// `promised` is the memory in bytes that the training loader will take. `see` gets what the scan found.
pub(crate) fn open_val(
    context: &Context,
    task: &TrainTask,
    stride: usize,
    promised: u64,
    see: &mut dyn FnMut(&Scan),
) -> Result<Split, TrainError> {
    let scan = read_split(context, task, "val", &task.data.val)?;
    see(&scan);
    let samples: Arc<[Sample]> = scan.samples.into();
    let share = match task.parallel {
        Parallel::Dp => (task.batch / context.devices.all.len()).max(1),
        Parallel::Ddp | Parallel::Model => task.shares(context.world).into_iter().min().unwrap_or(task.batch),
    };
    let settings = loader::ValSettings {
        image_size: task.image_size,
        stride,
        batch: share * 2,
        workers: task.workers,
        rect: true,
        pad: VAL_PAD,
        cache: task.cache,
        memory: context.images.clone(),
        promised,
        rank: context.rank,
        world: context.world,
    };
    let loader = ValLoader::new(Arc::clone(&samples), settings)?;
    Ok(Split { samples, loader, group: context.group.clone() })
}
