//! The planned run, as far as checks depend on it.

use yolo_checks::Intent;
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::device::{Device, Entry, entries};
use yolo_plan::options::{BackendOption, Cache, Parallel, PrecisionOption, TrainOptions, Workers};
use yolo_plan::run::EffectiveOptions;

use crate::cli::{self, PlannedTrain};

/// The run that the arguments after `--` describe. Invalid arguments end the program with clap's
/// message, as in `yolo train`.
pub(crate) fn of_arguments(arguments: &[String]) -> Intent {
    let PlannedTrain { train } = parse(arguments);
    let machines = &train.machines;
    let options = &train.options;
    let intent = if options.resume.is_some() { of_options(options) } else { with_defaults(options) };
    Intent {
        nnodes: machines.nnodes,
        node_rank: machines.node_rank,
        master_addr: machines.master_addr.clone(),
        master_port: machines.master_port,
        ..intent
    }
}

/// The options among the arguments after `--`.
pub(super) fn options_of(arguments: &[String]) -> TrainOptions {
    parse(arguments).train.options
}

/// Parses arguments with or without `train` before them.
fn parse(arguments: &[String]) -> PlannedTrain {
    let skipped = usize::from(arguments.first().is_some_and(|first| first == "train"));
    cli::planned(&arguments[skipped..])
}

/// The planned run. Where options are absent, it has what the plan decided.
pub(super) fn of_plan(options: &TrainOptions, plan: &RunPlan) -> Intent {
    let cuda = |device: &Device| match device {
        Device::Cuda(index) | Device::Mig { gpu: index, .. } => Some(*index),
        Device::Cpu => None,
    };
    let all = plan.ranks.all_devices();
    let mut devices: Vec<usize> = all.iter().filter_map(cuda).collect();
    let mig = all.iter().any(|device| matches!(device, Device::Mig { .. }));
    if mig {
        // Several instances of a GPU are one card.
        devices.sort_unstable();
        devices.dedup();
    }
    let task = plan.task.training();
    let parallel = task.map_or(Parallel::Ddp, |task| task.parallel);
    Intent {
        device_words: None,
        cpu: devices.is_empty(),
        devices,
        mig,
        ranks: Some(if parallel.is_one_process() { all.len() } else { plan.ranks.on_this_machine() }),
        parallel: mode_name(parallel),
        batch: task.and_then(|task| i64::try_from(task.batch).ok()),
        batch_split: task
            .map(|task| &task.batch_split)
            .filter(|split| !split.is_empty())
            .map(|split| split.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        image_size: task.map(|task| task.image_size),
        multi_scale: task.is_some_and(|task| task.multi_scale),
        amp: task.map(|task| task.precision.is_mixed()),
        workers: task.map(|task| task.workers),
        project: plan.run_dir.parent().map(|folder| folder.to_string_lossy().into_owned()),
        backend: plan.ranks.backend.map(|backend| backend.to_string()),
        ..if options.resume.is_some() { of_options(options) } else { with_defaults(options) }
    }
}

/// The run that options describe, with defaults. A resumed run has its model and size from its
/// checkpoint instead.
fn with_defaults(options: &TrainOptions) -> Intent {
    let effective = EffectiveOptions::of(options);
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let explicit = of_options(options);
    Intent {
        batch: Some(effective.batch),
        image_size: Some(effective.image_size),
        // Default weights do not count if the user names a model.
        weights: explicit
            .weights
            .clone()
            .or_else(|| named(effective.weights).filter(|_| effective.cfg.is_empty())),
        model: explicit.model.clone().or_else(|| named(effective.cfg)),
        ..explicit
    }
}

/// The mode, if it is not one process per device.
fn mode_name(parallel: Parallel) -> Option<String> {
    parallel.is_one_process().then(|| parallel.to_string())
}

/// The run that options describe.
fn of_options(options: &TrainOptions) -> Intent {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let device = options.device.as_deref().map(str::trim).filter(|device| !device.is_empty());
    let named = device.map(entries).transpose();
    let device_words = named.is_err().then(|| device.map(ToOwned::to_owned)).flatten();
    let named = named.ok().flatten().unwrap_or_default();
    let number = |entry: &Entry| match entry {
        Entry::Number(index) => Some(*index),
        _ => None,
    };
    let cpus = named.iter().filter(|entry| **entry == Entry::Cpu).count();
    Intent {
        run: true,
        device_words,
        // Which GPUs a UUID or `all` means is for the plan to say; until then all are looked at.
        devices: named.iter().map(number).collect::<Option<_>>().unwrap_or_default(),
        cpu: cpus > 0,
        mig: named.iter().any(|entry| matches!(entry, Entry::Mig(_))),
        ranks: options.nproc_per_node.or_else(|| (cpus > 1).then_some(cpus)),
        parallel: mode_name(options.parallel.unwrap_or_default()),
        batch: options.batch_size,
        batch_split: options.batch_split.clone(),
        image_size: options.imgsz,
        multi_scale: options.multi_scale,
        amp: match options.precision.unwrap_or_default() {
            PrecisionOption::Auto => None,
            PrecisionOption::Fp32 => Some(false),
            PrecisionOption::Fp16 | PrecisionOption::Bf16 => Some(true),
        },
        model: options.cfg.clone(),
        weights: options.weights.clone(),
        data: options.data.clone(),
        workers: match options.workers {
            Some(Workers::Count(count)) => Some(count),
            Some(Workers::Auto) | None => None,
        },
        cache: options.cache.map(|cache| match cache {
            Cache::Ram => "ram".to_owned(),
            Cache::Disk => "disk".to_owned(),
            Cache::None => "none".to_owned(),
        }),
        project: options.project.as_deref().map(text),
        sync_bn: options.sync_bn,
        backend: options.backend.and_then(|backend| match backend {
            BackendOption::Auto => None,
            BackendOption::Nccl => Some(Backend::Nccl.to_string()),
            BackendOption::Gloo => Some(Backend::Gloo.to_string()),
        }),
        resume: options.resume.clone(),
        ..Intent::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn intent(arguments: &str) -> Intent {
        of_arguments(&arguments.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_become_an_intent() {
        let planned = intent("--device 0,1 --batch 64 --data birds.yaml --cache");
        assert_eq!(planned.devices, [0, 1]);
        assert_eq!(
            (planned.batch, planned.data.as_deref(), planned.cache.as_deref()),
            (Some(64), Some("birds.yaml"), Some("ram"))
        );
        assert_eq!(planned.ranks_here(), 2);
        let mixed = |arguments: &str| intent(arguments).amp;
        assert_eq!((mixed("--precision fp32"), mixed("--precision BF16")), (Some(false), Some(true)));
        assert_eq!(mixed("--precision auto"), None);
    }

    #[test]
    fn absent_options_have_their_defaults() {
        let size = |arguments: &str| {
            let planned = intent(arguments);
            (planned.model, planned.weights, planned.image_size, planned.batch)
        };
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(size("--data shapes"), (value("yolov5n"), None, Some(160), Some(16)));
        assert_eq!(
            size("--data shapes --cfg yolov5s --imgsz 320"),
            (value("yolov5s"), None, Some(320), Some(16))
        );
        assert_eq!(size("--data shapes --weights m.pt"), (None, value("m.pt"), Some(160), Some(16)));
        assert_eq!(size("--batch 4"), (None, value("yolov5s.pt"), Some(640), Some(4)));
        assert_eq!(size("--resume"), (None, None, None, None));
    }

    #[test]
    fn cpu_is_not_a_device_number() {
        assert!(intent("train --device cpu --nproc-per-node 2").cpu);
        assert_eq!(intent("--device cuda:0").devices, [0]);
        assert_eq!(intent("--device gpu").device_words.as_deref(), Some("gpu"));
        assert_eq!(intent("--device cpu,cpu").ranks_here(), 2);
        let replicas = intent("--device cpu,cpu --parallel dp");
        assert_eq!((replicas.ranks_here(), replicas.shares_of_batch()), (1, 2));
    }

    #[test]
    fn uuids_and_all_are_devices() {
        for device in ["all", "GPU-4f00", "MIG-4f00,MIG-5a"] {
            let planned = intent(&format!("--device {device}"));
            assert_eq!(
                (planned.device_words, planned.devices.len(), planned.cpu),
                (None, 0, false),
                "{device}"
            );
            assert_eq!(planned.mig, device.starts_with("MIG"));
        }
    }

    #[test]
    fn options_that_train_lacks_are_listed() {
        let command =
            |arguments: &[&str]| crate::cli::Cli::try_parse_from([&["yolo", "train"], arguments].concat());
        for option in yolo_checks::NOT_YET_OF_TRAIN {
            assert!(command(&[option, "1"]).is_err(), "`yolo train` has {option}");
            assert!(
                PlannedTrain::try_parse_from([option, "true"]).is_ok()
                    || PlannedTrain::try_parse_from([option, "1"]).is_ok()
            );
        }
    }

    #[test]
    fn options_of_several_machines_become_an_intent() {
        let planned =
            intent("--nnodes 2 --node-rank 1 --master-addr 10.0.0.7 --master-port 29400 --backend NCCL");
        assert_eq!((planned.nnodes, planned.node_rank, planned.master_port), (Some(2), Some(1), Some(29400)));
        assert_eq!(
            (planned.master_addr.as_deref(), planned.backend.as_deref()),
            (Some("10.0.0.7"), Some("nccl"))
        );
    }
}
