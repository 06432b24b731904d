//! The run that is meant: the options of `yolo train` as far as checks judge a host against them.

use clap::Parser as _;
use yolo_checks::Intent;
use yolo_plan::RunPlan;
use yolo_plan::device::{Backend, Device};
use yolo_plan::options::{Cache, TrainOptions};
use yolo_plan::run::{Counting, Task};

use crate::cli::MeantRun;

/// The run that words after `--` mean. Words that `yolo train` would refuse end the program with
/// clap's message, as they would there.
pub(crate) fn of_words(words: &[String]) -> Intent {
    let MeantRun { train, machines } = run_of_words(words);
    let options = train.options();
    let meant = if train.resume.is_some() { of_options(&options) } else { with_defaults(&options) };
    Intent {
        resume: train.resume.clone(),
        nnodes: machines.nnodes,
        node_rank: machines.node_rank,
        master_addr: machines.master_addr,
        master_port: machines.master_port,
        backend: machines.backend.map(|word| word.to_ascii_lowercase()),
        amp: machines.amp,
        ..meant
    }
}

/// The options that words after `--` are.
pub(super) fn options_of_words(words: &[String]) -> TrainOptions {
    run_of_words(words).train.options()
}

fn run_of_words(words: &[String]) -> MeantRun {
    let words = words.iter().enumerate().filter(|(place, word)| *place > 0 || *word != "train");
    MeantRun::parse_from(words.map(|(_, word)| word))
}

/// The run that is planned: what the options leave open, the plan has decided.
pub(super) fn of_plan(options: &TrainOptions, resume: Option<&str>, plan: &RunPlan) -> Intent {
    let cuda = |device: &Device| match device {
        Device::Cuda(index) => Some(*index),
        Device::Cpu => None,
    };
    let devices: Vec<usize> = plan.ranks.devices.iter().filter_map(cuda).collect();
    let task = match &plan.task {
        Task::Train(task) => Some(task),
        Task::Val(_) | Task::Probe(_) => None,
    };
    Intent {
        device_words: None,
        cpu: devices.is_empty(),
        devices,
        ranks: Some(plan.ranks.devices.len()),
        batch: task.and_then(|task| i64::try_from(task.batch).ok()),
        image_size: task.map(|task| task.image_size),
        workers: task.map(|task| task.workers),
        project: plan.run_dir.parent().map(|folder| folder.to_string_lossy().into_owned()),
        resume: resume.map(ToOwned::to_owned),
        backend: plan.ranks.backend.map(|backend| match backend {
            Backend::Gloo => "gloo".to_owned(),
            Backend::Nccl => "nccl".to_owned(),
        }),
        ..if resume.is_some() { of_options(options) } else { with_defaults(options) }
    }
}

/// The run that options mean, with what the plan takes where they leave it open. A run that goes on
/// has its model and size from its checkpoint instead.
fn with_defaults(options: &TrainOptions) -> Intent {
    let counting = Counting::of(options);
    let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
    let said = of_options(options);
    Intent {
        batch: Some(counting.batch),
        image_size: Some(counting.image_size),
        // Weights that nobody named beside a model are no wish of the user's.
        weights: said.weights.clone().or_else(|| word(counting.weights).filter(|_| counting.cfg.is_empty())),
        model: said.model.clone().or_else(|| word(counting.cfg)),
        ..said
    }
}

/// The run that options mean.
fn of_options(options: &TrainOptions) -> Intent {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let device = options.device.as_deref().map(str::trim).filter(|words| !words.is_empty());
    let number = |word: &str| word.trim().trim_start_matches("cuda:").parse().ok();
    let numbers: Option<Vec<usize>> = device.and_then(|words| words.split(',').map(number).collect());
    let cpu = device.is_some_and(|words| words.eq_ignore_ascii_case("cpu"));
    Intent {
        run: true,
        device_words: device.filter(|_| !cpu && numbers.is_none()).map(ToOwned::to_owned),
        devices: numbers.unwrap_or_default(),
        cpu,
        ranks: options.nproc_per_node,
        batch: options.batch_size,
        image_size: options.imgsz,
        model: options.cfg.clone(),
        weights: options.weights.clone(),
        data: options.data.clone(),
        workers: options.workers,
        cache: options.cache.map(|cache| match cache {
            Cache::Ram => "ram".to_owned(),
            Cache::Disk => "disk".to_owned(),
        }),
        project: options.project.as_deref().map(text),
        sync_bn: options.sync_bn,
        ..Intent::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(words: &str) -> Intent {
        of_words(&words.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_become_an_intent() {
        let meant = intent("--device 0,1 --batch 64 --data birds.yaml --cache");
        assert_eq!(meant.devices, [0, 1]);
        assert_eq!(
            (meant.batch, meant.data.as_deref(), meant.cache.as_deref()),
            (Some(64), Some("birds.yaml"), Some("ram"))
        );
        assert_eq!(meant.ranks_here(), 2);
    }

    #[test]
    fn what_is_not_said_is_what_the_plan_takes() {
        let size = |words: &str| {
            let meant = intent(words);
            (meant.model, meant.weights, meant.image_size, meant.batch)
        };
        let word = |word: &str| Some(word.to_owned());
        assert_eq!(size("--data shapes"), (word("yolov5n"), None, Some(160), Some(16)));
        assert_eq!(
            size("--data shapes --cfg yolov5s --imgsz 320"),
            (word("yolov5s"), None, Some(320), Some(16))
        );
        assert_eq!(size("--data shapes --weights m.pt"), (None, word("m.pt"), Some(160), Some(16)));
        assert_eq!(size("--batch 4"), (None, word("yolov5s.pt"), Some(640), Some(4)));
        assert_eq!(size("--resume"), (None, None, None, None));
    }

    #[test]
    fn the_processor_is_no_device_number() {
        assert!(intent("train --device cpu --nproc-per-node 2").cpu);
        assert_eq!(intent("--device cuda:0").devices, [0]);
        assert_eq!(intent("--device gpu").device_words.as_deref(), Some("gpu"));
    }

    #[test]
    fn remedies_know_which_options_train_refuses() {
        let command = |words: &[&str]| crate::cli::Cli::try_parse_from([&["yolo", "train"], words].concat());
        for option in yolo_checks::NOT_YET_OF_TRAIN {
            assert!(command(&[option, "1"]).is_err(), "`yolo train` has {option}");
            assert!(
                MeantRun::try_parse_from([option, "true"]).is_ok()
                    || MeantRun::try_parse_from([option, "1"]).is_ok()
            );
        }
    }

    #[test]
    fn options_of_several_machines_are_understood_before_train_has_them() {
        let meant =
            intent("--nnodes 2 --node-rank 1 --master-addr 10.0.0.7 --master-port 29400 --backend NCCL");
        assert_eq!((meant.nnodes, meant.node_rank, meant.master_port), (Some(2), Some(1), Some(29400)));
        assert_eq!(
            (meant.master_addr.as_deref(), meant.backend.as_deref()),
            (Some("10.0.0.7"), Some("nccl"))
        );
    }
}
