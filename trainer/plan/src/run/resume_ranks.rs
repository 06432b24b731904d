//! The ranks of a resumed run: those of its first start, unless the options name others, or another way in which
//! devices train together. The batch over all ranks stays, so that every step sees the same images. Unequal
//! shares belong to their devices: on other devices the batch is divided equally.

use std::path::PathBuf;

use yolo_base::format::count;

use super::ranks::page_locked;
use super::{PlanContext, Ranks, one_process, planning};
use crate::backend::{Backend, Connection, Reach};
use crate::device::{self, Choice, Device, Inventory};
use crate::error::PlanError;
use crate::options::{BackendOption, Parallel, TrainOptions, Workers};

/// The parts of the plan of an interrupted run on which its ranks depend.
pub(super) struct Before<'a> {
    /// Its ranks, to be replaced.
    pub(super) ranks: &'a mut Ranks,
    /// Its loader threads per rank, to be replaced.
    pub(super) workers: &'a mut usize,
    /// Its batch over all ranks.
    pub(super) batch: usize,
    /// How its devices train together, to be replaced.
    pub(super) parallel: &'a mut Parallel,
    /// The shares of its ranks, if they are unequal; other devices get equal ones.
    pub(super) split: &'a mut Vec<usize>,
    /// Whether its ranks normalize together.
    pub(super) sync_bn: bool,
    /// How many images of a rank become one.
    pub(super) images_as_one: usize,
}

/// Replaces the ranks and their loader threads if the options name others, and says in `notes` what
/// changes. Returns warnings.
pub(super) fn choose(
    options: &TrainOptions,
    context: &PlanContext,
    before: Before<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, PlanError> {
    let Before { ranks, workers: loader_threads, batch, parallel: mode, split, sync_bn, images_as_one } =
        before;
    let cores = context.inventory.cores;
    let TrainOptions { device, nproc_per_node, backend, nccl, workers, .. } = options;
    let mut warnings = Vec::new();
    let mut parallel = options.parallel.unwrap_or(*mode);
    if parallel.is_one_process() {
        one_process::check_options(parallel, options, context.part)?;
    }
    let choice = devices(options, ranks, &context.inventory)?;
    if parallel.is_one_process() && options.parallel.is_none() && choice.devices.len() == 1 {
        notes.push(format!("on one device, the run continues without --parallel {parallel}"));
        parallel = Parallel::Ddp;
    }
    let elsewhere = context.part.is_some() || !ranks.are_all();
    let other_mode = parallel != *mode;
    if parallel.is_one_process() {
        if sync_bn {
            return Err(PlanError::usage(format!(
                "the run cannot be resumed with --parallel {parallel}: it was started with --sync-bn, which joins \
                 the BatchNorm of several ranks"
            ))
            .with_hint("resume it with --parallel ddp, or without --parallel"));
        }
        let new = one_process::ranks(parallel, &choice.devices, &context.inventory)?;
        notes.extend(choice.note);
        if !other_mode && new.all_devices() == ranks.all_devices() {
            *ranks = Ranks { threads: ranks.threads, ..new };
        } else {
            let devices = one_process::parts(parallel, &new).unwrap_or(1);
            check_batch((batch, images_as_one), split, ranks, (devices, "device"))?;
            notes.push(change((ranks, *mode), (&new, parallel), batch, split));
            split.clear();
            *loader_threads = new.workers(Some(*loader_threads), batch, cores);
            *ranks = new;
        }
    } else if elsewhere
        || other_mode
        || device.is_some()
        || nproc_per_node.is_some()
        || backend.is_some()
        || nccl.is_some()
    {
        let connection = connection(options, ranks, &choice.devices, context)?;
        notes.extend(choice.note.into_iter().chain(connection.notes.clone()));
        let new = Ranks::new(choice.devices, connection, context.part, &context.inventory);
        let as_many = new.world_size == ranks.world_size && !other_mode;
        if as_many && elsewhere {
            *loader_threads = new.workers(Some(*loader_threads), new.share(batch), cores);
            *ranks = new;
        } else if as_many && new.devices == ranks.devices {
            // The same devices keep their threads, on which the last bits of the results depend.
            *ranks = Ranks { threads: ranks.threads, ..new };
        } else {
            check_batch((batch, images_as_one), split, ranks, (new.world_size, "rank"))?;
            notes.push(change((ranks, *mode), (&new, parallel), batch, split));
            split.clear();
            *loader_threads = new.workers(Some(*loader_threads), new.share(batch), cores);
            if sync_bn && new.world_size == 1 {
                warnings.push("--sync-bn has no effect on a single rank".to_owned());
            }
            *ranks = new;
        }
    }
    *mode = parallel;
    // Which machine continues the run decides this, not which one began it.
    ranks.page_locked = page_locked(&context.inventory, ranks.on_this_machine());
    if workers.is_some() {
        let largest = split.iter().copied().max().unwrap_or_else(|| ranks.share(batch));
        *loader_threads = ranks.workers(workers.map(Workers::most), largest, cores);
    }
    Ok(warnings)
}

/// The devices that the options name, or those of the run, which must still exist and be visible.
pub(super) fn devices(
    options: &TrainOptions,
    ranks: &Ranks,
    inventory: &Inventory,
) -> Result<Choice, PlanError> {
    if options.device.is_some() {
        return device::choose(options.device.as_deref(), options.nproc_per_node, inventory);
    }
    if options.nproc_per_node.is_some() && ranks.all_devices().iter().all(|device| *device == Device::Cpu) {
        return device::choose(Some("cpu"), options.nproc_per_node, inventory);
    }
    let own = device::argument(&ranks.all_devices());
    let choice = device::choose(Some(&own), None, inventory).map_err(|error| {
        PlanError::new(format!("the run cannot be resumed on its devices: {error}"))
            .with_hint("name other devices with --device; the batch over all ranks stays the same")
    })?;
    match options.nproc_per_node {
        Some(number) if number != choice.devices.len() => Err(PlanError::usage(format!(
            "--nproc-per-node {number} is for ranks on the CPU, but the run to be resumed is on GPUs (--device {own})"
        ))
        .with_hint(format!(
            "name GPUs with --device, or move the run to the CPU with --device cpu --nproc-per-node {number}"
        ))),
        _ => Ok(choice),
    }
}

/// How the ranks exchange tensors: as the options say, else as before if that is possible on these devices.
fn connection(
    options: &TrainOptions,
    before: &Ranks,
    devices: &[Device],
    context: &PlanContext,
) -> Result<Connection, PlanError> {
    let inventory = &context.inventory;
    let reach = context.part.map_or(Reach::Plan, |part| part.reach(devices.len()));
    let wanted = options.backend.unwrap_or_else(|| backend(options, before, devices, inventory));
    let library = |file: &PathBuf| planning::nccl_library(file, &context.places);
    if let Some(nccl) = &options.nccl {
        return Connection::choose_for(reach, wanted, Some(library(nccl)?), devices, inventory);
    }
    if let Some(nccl) = &before.nccl {
        let kept = Connection::choose_for(reach, wanted, Some(nccl.clone()), devices, inventory);
        if let Ok(kept) = kept {
            library(nccl)?;
            return Ok(kept);
        }
    }
    Connection::choose_for(reach, wanted, None, devices, inventory)
}

/// The backend of a run whose options name none.
fn backend(
    options: &TrainOptions,
    before: &Ranks,
    devices: &[Device],
    inventory: &Inventory,
) -> BackendOption {
    let stays = before.are_all() && before.devices == devices && options.nccl.is_none();
    let reach = if before.are_all() { Reach::Plan } else { Reach::Machine };
    let automatic = Connection::choose_for(reach, BackendOption::Auto, None, &before.devices, inventory)
        .map(|connection| connection.backend);
    match before.backend {
        // Gloo where the automatic choice is another was the user's.
        Some(Backend::Gloo) if automatic.ok().flatten() != Some(Backend::Gloo) => BackendOption::Gloo,
        Some(Backend::Gloo) if stays => BackendOption::Gloo,
        Some(Backend::Nccl) if stays => BackendOption::Nccl,
        // On other devices, the automatic choice is NCCL wherever it works.
        _ => BackendOption::Auto,
    }
}

/// Refuses a number of other ranks, or of devices of a single one, among which the batch cannot be divided
/// equally.
fn check_batch(
    (batch, unit): (usize, usize),
    split: &[usize],
    before: &Ranks,
    (parts, what): (usize, &str),
) -> Result<(), PlanError> {
    if batch.is_multiple_of(parts * unit) {
        return Ok(());
    }
    let fewer = (1..parts).rev().find(|fewer| batch.is_multiple_of(*fewer * unit)).unwrap_or(1);
    let fewer = count(fewer, what);
    let (kept, hint) = if split.is_empty() {
        (String::new(), format!("resume it on {fewer}"))
    } else {
        let own = device::argument(&before.devices);
        (
            format!(", and its shares ({}) are for --device {own}", list(split)),
            format!("resume it with --device {own}, or on {fewer}"),
        )
    };
    let groups = if unit > 1 { format!(" in groups of {unit} (--quad)") } else { String::new() };
    Err(PlanError::usage(format!(
        "the run cannot be resumed on {}: its batch of {batch}, which stays the same, cannot be divided \
         equally among them{groups}{kept}",
        count(parts, what)
    ))
    .with_hint(hint))
}

/// What other ranks change.
fn change(before: (&Ranks, Parallel), new: (&Ranks, Parallel), batch: usize, split: &[usize]) -> String {
    let (ranks, parallel) = new;
    let share = count(ranks.share(batch) / one_process::parts(parallel, ranks).unwrap_or(1), "image");
    let each = match parallel {
        Parallel::Ddp => format!("the batch over all ranks stays {batch}, {share} on each"),
        Parallel::Dp => format!("the batch stays {batch}, {share} on each device"),
        Parallel::Model => format!("the batch stays {batch}"),
    };
    let mut text = format!("resuming on {} instead of {}: {each}", named(new), named(before));
    if !split.is_empty() {
        text += &format!(" instead of {}", list(split));
    }
    text
}

/// `16,8`.
fn list(shares: &[usize]) -> String {
    shares.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// `2 ranks (cpu,cpu)`, or only their number if the plan does not know all devices.
fn named((ranks, parallel): (&Ranks, Parallel)) -> String {
    if parallel.is_one_process() {
        return format!("one process ({}, --parallel {parallel})", device::argument(&ranks.all_devices()));
    }
    if !ranks.are_all() {
        return count(ranks.world_size, "rank");
    }
    format!("{} ({})", count(ranks.world_size, "rank"), device::argument(&ranks.devices))
}
