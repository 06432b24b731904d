//! The rules of `--parallel dp` and `--parallel model`, in which a single process uses all devices: what such a
//! run cannot have, because it concerns several ranks, and which devices it takes.

use super::{Part, Ranks};
use crate::device::{self, Device, Inventory};
use crate::error::PlanError;
use crate::options::{BackendOption, Parallel, TrainOptions};

/// Refuses the options that concern several ranks, and a run of which this is only a part.
///
/// # Errors
/// With the first of them.
pub(super) fn check_options(
    parallel: Parallel,
    options: &TrainOptions,
    part: Option<Part>,
) -> Result<(), PlanError> {
    if part.is_some() {
        return Err(PlanError::usage(format!(
            "--parallel {parallel} is a single process on one machine, so it cannot be used with --nnodes or in \
             `yolo rank`"
        ))
        .with_hint("use --parallel ddp, in which each rank has a device of its own"));
    }
    let backend = |wanted| options.backend == Some(wanted);
    let refused = [
        (options.nproc_per_node.is_some(), "--nproc-per-node", "it starts several processes"),
        (options.batch_split.is_some(), "--batch-split", "it gives shares of the batch to several ranks"),
        (options.sync_bn, "--sync-bn", "it joins the BatchNorm of several ranks"),
        (options.balance.is_some(), "--balance", "it deals images to several ranks"),
        (backend(BackendOption::Nccl), "--backend nccl", "it connects several processes"),
        (backend(BackendOption::Gloo), "--backend gloo", "it connects several processes"),
        (options.nccl.is_some(), "--nccl", "it connects several processes"),
    ];
    match refused.into_iter().find(|(given, ..)| *given) {
        Some((_, option, why)) => Err(refusal(parallel, option, why)),
        None => Ok(()),
    }
}

/// The error for an option, or a setting of the run to be resumed, that concerns several ranks.
pub(super) fn refusal(parallel: Parallel, option: &str, why: &str) -> PlanError {
    let hint = match (option, parallel) {
        ("--nproc-per-node", _) => "name the devices with --device instead, for example --device cpu,cpu",
        ("--sync-bn", Parallel::Model) => {
            "omit --sync-bn: with --parallel model, BatchNorm sees the whole batch anyway"
        }
        _ => "omit it, or use --parallel ddp, which starts one process per device",
    };
    PlanError::usage(format!(
        "{option} cannot be used with --parallel {parallel}: {why}, and this is a single one"
    ))
    .with_hint(hint)
}

/// The single rank on these devices.
///
/// # Errors
/// When there is only one device, or CUDA cannot give them to one process.
pub(super) fn ranks(
    parallel: Parallel,
    devices: &[Device],
    inventory: &Inventory,
) -> Result<Ranks, PlanError> {
    if devices.len() < 2 {
        let one = devices.first().map_or("none".to_owned(), Device::to_string);
        return Err(PlanError::usage(format!(
            "--parallel {parallel} needs several devices, but this run has one ({one})"
        ))
        .with_hint(
            "name several with --device, for example --device 0,1 or --device all; on one device, omit --parallel",
        ));
    }
    if devices.iter().any(|device| matches!(device, Device::Mig { .. })) {
        return Err(PlanError::usage(format!(
            "--parallel {parallel} cannot use --device {}: CUDA gives a process only one MIG instance",
            device::argument(devices)
        ))
        .with_hint("use --parallel ddp, which starts one process per instance"));
    }
    Ok(Ranks::in_one_process(devices, inventory))
}

/// Among how many devices the single rank of such a run divides its batch; `None` if it is divided among ranks.
pub(super) fn parts(parallel: Parallel, ranks: &Ranks) -> Option<usize> {
    match parallel {
        Parallel::Ddp => None,
        Parallel::Dp => Some(ranks.all_devices().len()),
        Parallel::Model => Some(1),
    }
}
