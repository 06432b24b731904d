//! `--parallel dp` and `--parallel model`: one rank with several devices, the options that it cannot have, and how
//! a run changes between one process and several when it is resumed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use yolo_base::Hint as _;
use yolo_plan::PlanError;
use yolo_plan::backend::Backend;
use yolo_plan::device::{Device, Gpu, MigInstance};
use yolo_plan::options::{BackendOption, Balance, Parallel, TrainOptions};
use yolo_plan::run::{Part, Planned, opt_yaml, plan_train};

use support::{Fixture, ready, scratch, task};

const MODES: [Parallel; 2] = [Parallel::Dp, Parallel::Model];

/// A run in this mode on the CPU twice.
fn on_two(parallel: Parallel) -> TrainOptions {
    TrainOptions { parallel: Some(parallel), device: Some("cpu,cpu".into()), ..scratch() }
}

fn both(error: &PlanError) -> (String, String) {
    (error.to_string(), error.hint().unwrap_or_default().into_owned())
}

#[test]
fn one_rank_has_all_devices_cores_and_images() {
    let fixture = Fixture::new();
    for parallel in MODES {
        let planned = fixture.train(on_two(parallel)).unwrap();
        let ranks = &planned.plan.ranks;
        assert_eq!((ranks.world_size, ranks.devices.len(), ranks.are_all()), (1, 1, true));
        assert_eq!(ranks.all_devices(), [Device::Cpu; 2]);
        assert_eq!((ranks.backend, ranks.threads, ranks.device_memory.len()), (None, 8, 0));
        let task = task(&planned);
        assert_eq!((task.parallel, task.batch, task.workers, task.shares(1)), (parallel, 16, 8, vec![16]));
        assert_eq!((planned.notes.len(), planned.warnings.len()), (0, 0), "{planned:?}");
        let settings = opt_yaml(&planned.plan, task).unwrap();
        assert_eq!(
            (&settings["parallel"], &settings["device"]),
            (&parallel.to_string().into(), &"cpu,cpu".into())
        );
    }
    let ddp = fixture.train(on_two(Parallel::Ddp)).unwrap();
    assert_eq!((ddp.plan.ranks.world_size, ddp.plan.ranks.backend), (2, Some(Backend::Gloo)));
    assert_eq!(
        ddp.plan,
        fixture.train(TrainOptions { parallel: None, ..on_two(Parallel::Ddp) }).unwrap().plan
    );
}

#[test]
fn the_plan_says_how_much_memory_each_gpu_has() {
    let mut fixture = Fixture::new();
    let gpu = |index, free| Gpu { index, memory: 24 << 30, free, ..Gpu::default() };
    fixture.context.inventory.gpus = vec![gpu(0, 23 << 30), gpu(1, 11 << 30), gpu(2, 0)];
    let memory = |device: &str| {
        let options = TrainOptions { device: Some(device.into()), ..on_two(Parallel::Model) };
        fixture.train(options).unwrap().plan.ranks.device_memory
    };
    assert_eq!(memory("0,1"), [23 << 30, 11 << 30]);
    assert_eq!(memory("1,2"), [11 << 30, 24 << 30], "without a number for what is free");
    assert_eq!(memory("1,1"), [11 << 29, 11 << 29]);
    let all = TrainOptions { device: Some("all".into()), batch_size: Some(18), ..on_two(Parallel::Dp) };
    assert_eq!(fixture.train(all).unwrap().plan.ranks.all_devices(), [0, 1, 2].map(Device::Cuda));
}

#[test]
fn options_for_several_ranks_are_refused() {
    let fixture = Fixture::new();
    let nccl = fixture.context.places.working_dir.join("libnccl.so.2");
    fs::write(&nccl, "library").unwrap();
    for parallel in MODES {
        let base = || on_two(parallel);
        for (options, option, advice) in [
            (TrainOptions { nproc_per_node: Some(2), ..base() }, "--nproc-per-node", "--device cpu,cpu"),
            (TrainOptions { batch_split: Some("8,8".into()), ..base() }, "--batch-split", "--parallel ddp"),
            (TrainOptions { sync_bn: true, ..base() }, "--sync-bn", "omit"),
            (TrainOptions { balance: Some(Balance::Boxes), ..base() }, "--balance", "--parallel ddp"),
            (
                TrainOptions { backend: Some(BackendOption::Nccl), ..base() },
                "--backend nccl",
                "--parallel ddp",
            ),
            (
                TrainOptions { backend: Some(BackendOption::Gloo), ..base() },
                "--backend gloo",
                "--parallel ddp",
            ),
            (TrainOptions { nccl: Some(nccl.clone()), ..base() }, "--nccl", "--parallel ddp"),
        ] {
            let (message, hint) = both(&fixture.train(options).unwrap_err());
            let begins = format!("{option} cannot be used with --parallel {parallel}: it ");
            assert!(message.starts_with(&begins), "{message}");
            assert!(hint.contains(advice), "{option}: {hint}");
        }
        let automatic = TrainOptions { backend: Some(BackendOption::Auto), ..base() };
        assert!(fixture.train(automatic).is_ok());
    }
    let (message, hint) =
        both(&fixture.train(TrainOptions { sync_bn: true, ..on_two(Parallel::Dp) }).unwrap_err());
    assert_eq!(
        message,
        "--sync-bn cannot be used with --parallel dp: it joins the BatchNorm of several ranks, and this is a single one"
    );
    assert_eq!(hint, "omit it, or use --parallel ddp, which starts one process per device");
}

#[test]
fn a_part_of_a_run_is_no_single_process() {
    let mut fixture = Fixture::new();
    fixture.context.part = Some(Part { first: 0, first_here: 0, here: 1, world_size: 1 });
    for parallel in MODES {
        let (message, hint) = both(&fixture.train(on_two(parallel)).unwrap_err());
        assert!(message.contains("it cannot be used with --nnodes or in `yolo rank`"), "{message}");
        assert!(hint.starts_with("use --parallel ddp"), "{hint}");
    }
}

#[test]
fn several_devices_are_needed() {
    let mut fixture = Fixture::new();
    for parallel in MODES {
        for device in [Some("cpu".to_owned()), None] {
            let (message, hint) =
                both(&fixture.train(TrainOptions { device, ..on_two(parallel) }).unwrap_err());
            assert_eq!(
                message,
                format!("--parallel {parallel} needs several devices, but this run has one (CPU)")
            );
            assert!(hint.contains("--device 0,1") && hint.contains("omit --parallel"), "{hint}");
        }
    }
    let many = vec!["cpu"; 26].join(",");
    let spread = TrainOptions { device: Some(many), ..on_two(Parallel::Model) };
    let message = fixture.train_error(spread);
    assert!(
        message.starts_with("--parallel model cannot spread the 25 layers of yolov5n over 26"),
        "{message}"
    );

    let mig = |number: usize| format!("MIG-{number}aaaaaaa-0000-0000-0000-000000000000");
    let instances =
        [1, 2].map(|number| MigInstance { uuid: mig(number).parse().unwrap(), memory: 1 << 34 }).to_vec();
    fixture.context.inventory.gpus = vec![Gpu { instances, ..Gpu::default() }];
    let (message, hint) = both(
        &fixture.train(TrainOptions { device: Some("all".into()), ..on_two(Parallel::Dp) }).unwrap_err(),
    );
    assert!(message.ends_with("CUDA gives a process only one MIG instance"), "{message}");
    assert!(hint.contains("--parallel ddp"), "{hint}");
}

#[test]
fn replicas_divide_the_batch_and_spread_layers_do_not() {
    let fixture = Fixture::new();
    let of = |parallel, batch| fixture.train(TrainOptions { batch_size: Some(batch), ..on_two(parallel) });
    let (message, hint) = both(&of(Parallel::Dp, 15).unwrap_err());
    assert_eq!(
        message,
        "--batch 15 cannot be divided among 2 devices: it is the total over all devices and must be a multiple of 2"
    );
    assert_eq!(hint, "use --batch 14 or 16");
    assert_eq!(both(&of(Parallel::Dp, 1).unwrap_err()).1, "use --batch 2");
    assert_eq!(task(&of(Parallel::Model, 1).unwrap()).batch, 1);
    assert!(of(Parallel::Model, 0).unwrap_err().to_string().starts_with("--batch 0"));
}

/// The folder of a run with these options and no checkpoint.
fn started(fixture: &Fixture, options: TrainOptions) -> PathBuf {
    let plan = fixture.train(options).unwrap().plan;
    fs::create_dir_all(&plan.run_dir).unwrap();
    plan.write().unwrap();
    plan.run_dir
}

fn resumed(fixture: &Fixture, run: &Path, options: TrainOptions) -> Result<Planned, PlanError> {
    let resume = Some(run.to_string_lossy().into_owned());
    plan_train(&TrainOptions { resume, ..options }, &fixture.context).map(ready)
}

/// The mode and the devices of a plan.
fn mode(planned: &Planned) -> (Parallel, usize, usize) {
    (task(planned).parallel, planned.plan.ranks.world_size, planned.plan.ranks.all_devices().len())
}

#[test]
fn a_resumed_run_keeps_its_mode_or_takes_another() {
    let fixture = Fixture::new();
    let run = started(&fixture, TrainOptions { batch_size: Some(12), ..on_two(Parallel::Dp) });
    let with = |options| resumed(&fixture, &run, options);
    let as_before = with(TrainOptions::default()).unwrap();
    assert_eq!(mode(&as_before), (Parallel::Dp, 1, 2));
    assert_eq!(as_before.notes.len(), 1, "{:?}", as_before.notes);

    let device = |device: &str| TrainOptions { device: Some(device.into()), ..TrainOptions::default() };
    let to = |parallel| TrainOptions { parallel: Some(parallel), ..TrainOptions::default() };
    for (options, want, note) in [
        (
            to(Parallel::Ddp),
            (Parallel::Ddp, 2, 2),
            "resuming on 2 ranks (cpu,cpu) instead of one process (cpu,cpu, --parallel dp): the batch over all \
             ranks stays 12, 6 images on each",
        ),
        (
            to(Parallel::Model),
            (Parallel::Model, 1, 2),
            "resuming on one process (cpu,cpu, --parallel model) instead of one process (cpu,cpu, --parallel dp): \
             the batch stays 12",
        ),
        (
            device("cpu,cpu,cpu"),
            (Parallel::Dp, 1, 3),
            "resuming on one process (cpu,cpu,cpu, --parallel dp) instead of one process (cpu,cpu, --parallel dp): \
             the batch stays 12, 4 images on each device",
        ),
        (device("cpu"), (Parallel::Ddp, 1, 1), "on one device, the run continues without --parallel dp"),
    ] {
        let planned = with(options).unwrap();
        assert_eq!(mode(&planned), want, "{note}");
        assert!(planned.notes.iter().any(|said| said == note), "{note}\nis not in {:?}", planned.notes);
    }
    let (message, hint) = both(&with(device("cpu,cpu,cpu,cpu,cpu")).unwrap_err());
    assert!(message.starts_with("the run cannot be resumed on 5 devices: its batch of 12"), "{message}");
    assert_eq!(hint, "resume it on 4 devices");
    let one = TrainOptions { device: Some("cpu".into()), ..to(Parallel::Dp) };
    assert!(with(one).unwrap_err().to_string().contains("needs several devices"));
    let ranks = TrainOptions { nproc_per_node: Some(2), ..TrainOptions::default() };
    assert!(
        with(ranks)
            .unwrap_err()
            .to_string()
            .starts_with("--nproc-per-node cannot be used with --parallel dp")
    );
    let ranks = TrainOptions { nproc_per_node: Some(2), ..to(Parallel::Ddp) };
    assert_eq!(mode(&with(ranks).unwrap()), (Parallel::Ddp, 2, 2));
}

#[test]
fn ranks_become_one_process_unless_they_normalize_together() {
    let fixture = Fixture::new();
    let to = |parallel| TrainOptions { parallel: Some(parallel), ..TrainOptions::default() };
    let split = TrainOptions { batch_split: Some("10,6".into()), ..on_two(Parallel::Ddp) };
    let run = started(&fixture, split);
    let planned = resumed(&fixture, &run, to(Parallel::Dp)).unwrap();
    assert_eq!((mode(&planned), task(&planned).batch_split.len()), ((Parallel::Dp, 1, 2), 0));
    assert_eq!(planned.plan.ranks.backend, None);
    assert!(planned.notes.iter().any(|note| note.ends_with("8 images on each device instead of 10,6")));

    let run = started(&fixture, TrainOptions { sync_bn: true, ..on_two(Parallel::Ddp) });
    for parallel in MODES {
        let (message, hint) = both(&resumed(&fixture, &run, to(parallel)).unwrap_err());
        assert!(message.contains("it was started with --sync-bn"), "{message}");
        assert!(hint.contains("--parallel ddp"), "{hint}");
    }
}

#[test]
fn the_plan_of_an_older_version_has_one_process_per_device() {
    let fixture = Fixture::new();
    let plan = fixture.train(scratch()).unwrap().plan;
    let mut text = serde_json::to_value(&plan).unwrap();
    assert!(text["task"].as_object_mut().unwrap().remove("parallel").is_some());
    for field in ["further_devices", "device_memory"] {
        assert!(text["ranks"].as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    assert_eq!(serde_json::from_value::<yolo_plan::RunPlan>(text).unwrap(), plan);
}
