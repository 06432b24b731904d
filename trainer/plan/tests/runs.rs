//! Plans of runs: what is missing is reported before anything starts, plans are written and read
//! back, and runs are numbered and resumed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use yolo_base::Hint as _;
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::device::{Device, Gpu};
use yolo_plan::options::{BackendOption, TrainOptions, ValOptions, Workers};
use yolo_plan::run::{Need, Planning, plan_train};

use support::{Fixture, ready, scratch, task};

#[test]
fn everything_that_can_be_fetched_is_reported_at_once() {
    let mut fixture = Fixture::new();
    let data = Need::Data("data/coco128.yaml".into());
    let weights = Need::Weights("yolov5s.pt".into());
    let all_missing = plan_train(&TrainOptions::default(), &fixture.context).unwrap();
    assert_eq!(all_missing, Planning::Missing(vec![data, weights.clone()]));
    assert_eq!(fixture.plan_train(TrainOptions::default()).unwrap(), Planning::Missing(vec![weights]));

    let published = fixture.context.places.working_dir.join("elsewhere.pt");
    fixture.context.fetched.insert("yolov5s.pt".into(), published.clone());
    let planned = fixture.train(TrainOptions::default()).unwrap();
    assert_eq!(task(&planned).weights, Some(published));

    let yaml = fixture.context.places.working_dir.join("far.yaml");
    fs::write(&yaml, "path: far\ntrain: t\nval: v\nnames: [a]\ndownload: https://h/far.zip\n").unwrap();
    let far = || TrainOptions { data: Some("far.yaml".into()), ..scratch() };
    assert_eq!(fixture.plan_train(far()).unwrap(), Planning::Missing(vec![Need::Data("far.yaml".into())]));
    // A download that is a program is never run, so it cannot be fetched.
    fs::write(&yaml, "path: far\ntrain: t\nval: v\nnames: [a]\ndownload: bash get.sh\n").unwrap();
    assert!(fixture.train_error(far()).contains("far.yaml"));
}

#[test]
fn the_built_in_data_set_is_generated_before_it_is_loaded() {
    let mut fixture = Fixture::new();
    fixture.context.generated = false;
    let shapes = || TrainOptions { data: Some("shapes".into()), ..TrainOptions::default() };
    let builtin = vec![Need::Builtin("shapes".into())];
    assert_eq!(fixture.plan_train(shapes()).unwrap(), Planning::Missing(builtin));
    let error = fixture.plan_train(TrainOptions { batch_size: Some(0), ..shapes() }).unwrap_err();
    assert!(error.to_string().starts_with("--batch 0"), "{error}");
}

#[test]
fn a_mistake_is_reported_before_anything_is_fetched() {
    let error =
        |options: TrainOptions| plan_train(&options, &Fixture::new().context).unwrap_err().to_string();
    let batch = TrainOptions { batch_size: Some(0), ..TrainOptions::default() };
    assert!(error(batch).starts_with("--batch 0"));
    let cfg = Some("yolov5n".to_owned());
    let freeze = TrainOptions { cfg, freeze: vec![25], ..TrainOptions::default() };
    assert!(error(freeze).starts_with("--freeze freezes all 25 layers"));
}

#[test]
fn a_plan_is_written_and_read_back() {
    let fixture = Fixture::new();
    let plan = fixture.train(scratch()).unwrap().plan;
    let missing = plan.write().unwrap_err().to_string();
    assert!(missing.starts_with("cannot write the plan "), "{missing}");
    fs::create_dir_all(&plan.run_dir).unwrap();
    let path = plan.write().unwrap();
    assert_eq!(RunPlan::read(&path).unwrap(), plan);
    assert_eq!(fs::read_dir(&plan.run_dir).unwrap().count(), 1, "nothing else is left in the folder");

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"version\": 2", "\"version\": 9")).unwrap();
    assert!(RunPlan::read(&path).unwrap_err().to_string().contains("has version 9"));
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(RunPlan::read(&path).unwrap_err().to_string().contains("is damaged or no plan of a run"));
    assert!(
        RunPlan::read(&path.with_extension("gone")).unwrap_err().to_string().contains("cannot read the plan")
    );
}

/// The options of `yolo train --resume` with this path.
fn resume(path: &Path) -> TrainOptions {
    TrainOptions { resume: Some(path.to_string_lossy().into_owned()), ..TrainOptions::default() }
}

/// A run of 16 images per step with a checkpoint, and its run folder.
fn interrupted_run(fixture: &Fixture) -> PathBuf {
    let plan = fixture.train(TrainOptions { epochs: Some(7), ..scratch() }).unwrap().plan;
    fs::create_dir_all(plan.run_dir.join("weights")).unwrap();
    fs::write(plan.run_dir.join("weights/last.pt"), "tensors").unwrap();
    plan.write().unwrap();
    plan.run_dir
}

#[test]
fn a_run_is_resumed_in_its_folder() {
    let fixture = Fixture::new();
    let planned = |path: &Path| plan_train(&resume(path), &fixture.context);
    let error = |path: &Path| planned(path).unwrap_err().to_string();
    let newest = Path::new("");
    assert!(error(newest).starts_with("there is no run to resume"), "{}", error(newest));

    let run_dir = interrupted_run(&fixture);
    let last = run_dir.join("weights/last.pt");
    for named in [newest, &last, &run_dir] {
        let resumed = ready(planned(named).unwrap());
        assert!(resumed.in_its_folder);
        assert_eq!(task(&resumed).resume, Some(last.canonicalize().unwrap()));
        assert_eq!(task(&resumed).epochs, 7);
        assert_eq!(resumed.plan.run_dir, run_dir.canonicalize().unwrap());
        assert_eq!(resumed.notes.len(), usize::from(named == newest), "{:?}", resumed.notes);
        let options = TrainOptions { max_restarts: Some(3), ..resume(named) };
        assert_eq!(task(&ready(plan_train(&options, &fixture.context).unwrap())).max_restarts, 3);
    }
    let gone = error(&last.with_file_name("gone.pt"));
    assert!(gone.contains("there is no such run or checkpoint"), "{gone}");
    fs::remove_file(run_dir.join("plan.json")).unwrap();
    assert!(
        error(&last).contains("there is neither plan.json nor the opt.yaml of YOLOv5"),
        "{}",
        error(&last)
    );

    let val = fixture.val(ValOptions::default()).unwrap().plan;
    fs::create_dir_all(val.run_dir.join("weights")).unwrap();
    fs::write(val.run_dir.join("weights/last.pt"), "tensors").unwrap();
    val.write().unwrap();
    assert!(error(&val.run_dir).contains("was not a training run"), "{}", error(&val.run_dir));
}

#[test]
fn a_run_without_a_checkpoint_starts_again_in_its_folder() {
    let fixture = Fixture::new();
    let run_dir = interrupted_run(&fixture);
    fs::remove_file(run_dir.join("weights/last.pt")).unwrap();
    let again = ready(plan_train(&resume(&run_dir), &fixture.context).unwrap());
    assert!(again.in_its_folder);
    assert_eq!((&task(&again).resume, task(&again).epochs), (&None, 7));
    assert_eq!(again.plan.run_dir, run_dir.canonicalize().unwrap());
    assert!(again.notes[0].contains("starts again from the beginning"), "{:?}", again.notes);
    fs::remove_file(run_dir.join("plan.json")).unwrap();
    let error = plan_train(&resume(&run_dir), &fixture.context).unwrap_err().to_string();
    assert!(error.contains("there is no weights/last.pt in this folder"), "{error}");
}

#[test]
fn a_resumed_run_keeps_its_batch_on_other_ranks() {
    let fixture = Fixture::new();
    let run_dir = interrupted_run(&fixture);
    let with = |options: TrainOptions| {
        plan_train(&TrainOptions { resume: resume(&run_dir).resume, ..options }, &fixture.context)
    };
    let ranks = |ranks| TrainOptions { nproc_per_node: Some(ranks), ..TrainOptions::default() };
    let before = ready(with(TrainOptions::default()).unwrap());
    assert_eq!(before.plan.ranks.world_size, 1);

    let resumed = ready(with(ranks(4)).unwrap());
    assert_eq!((resumed.plan.ranks.world_size, task(&resumed).batch), (4, 16));
    assert_eq!(resumed.plan.ranks.threads, 2);
    assert_eq!(task(&resumed).workers, 2, "the cores are shared");
    assert!(resumed.plan.ranks.backend.is_some());
    let said = "resuming on 4 ranks (cpu,cpu,cpu,cpu) instead of 1 rank (cpu): the batch over all ranks \
                stays 16, 4 images on each";
    assert!(resumed.notes.iter().any(|note| note == said), "{:?}", resumed.notes);

    let same = ready(with(ranks(1)).unwrap());
    assert_eq!(same.plan.ranks, before.plan.ranks);
    let refused = with(ranks(6)).unwrap_err();
    assert!(refused.to_string().contains("its batch of 16, which stays the same, cannot be divided"));
    assert_eq!(refused.hint().as_deref(), Some("resume it on 4 ranks"));

    let threads =
        ready(with(TrainOptions { workers: Some(Workers::Count(3)), ..TrainOptions::default() }).unwrap());
    assert_eq!(task(&threads).workers, 3);
    assert_eq!(threads.plan.ranks, before.plan.ranks);
}

#[test]
fn options_that_a_resumed_run_would_ignore_are_refused() {
    let fixture = Fixture::new();
    let path = resume(&interrupted_run(&fixture)).resume;
    let options = TrainOptions { resume: path, epochs: Some(20), noval: true, freeze: vec![3], ..scratch() };
    let refused = plan_train(&options, &fixture.context).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("cannot be changed with --resume"), "{text}");
    for option in ["--epochs", "--noval", "--freeze", "--weights", "--cfg"] {
        assert!(text.contains(option), "{text}");
    }
    let hint = refused.hint().unwrap_or_default().into_owned();
    assert!(
        hint.starts_with(
            "give only --device, --nproc-per-node, --parallel, --backend, --nccl, --workers, --max-restarts with --resume"
        ),
        "{hint}"
    );
}

#[test]
fn a_run_whose_gpu_is_gone_is_refused_with_the_remedy() {
    let mut fixture = Fixture::new();
    fixture.context.inventory.gpus =
        vec![Gpu { index: 0, name: "NVIDIA H200".to_owned(), memory: 1 << 37, ..Gpu::default() }];
    let on_gpu = fixture.train(TrainOptions { device: Some("0".to_owned()), ..scratch() }).unwrap().plan;
    fs::create_dir_all(&on_gpu.run_dir).unwrap();
    on_gpu.write().unwrap();
    assert!(plan_train(&resume(&on_gpu.run_dir), &fixture.context).is_ok());
    fixture.context.inventory.gpus.clear();
    let gone = plan_train(&resume(&on_gpu.run_dir), &fixture.context).unwrap_err();
    assert!(gone.to_string().contains("cannot be resumed on its devices: --device 0 needs a GPU"), "{gone}");
    let on_cpu = TrainOptions { device: Some("cpu".to_owned()), ..resume(&on_gpu.run_dir) };
    let resumed = ready(plan_train(&on_cpu, &fixture.context).unwrap());
    let said = "resuming on 1 rank (cpu) instead of 1 rank (0): the batch over all ranks stays 16, 16 images \
                on each";
    assert!(resumed.notes.iter().any(|note| note == said), "{:?}", resumed.notes);
}

#[test]
fn the_next_run_gets_the_next_number() {
    let fixture = Fixture::new();
    let mut names = Vec::new();
    for _ in 0..3 {
        let plan = fixture.train(scratch()).unwrap().plan;
        fs::create_dir_all(&plan.run_dir).unwrap();
        names.push(plan.run_dir.file_name().unwrap().to_owned());
    }
    assert_eq!(names, ["exp", "exp2", "exp3"]);
    let same = fixture.train(TrainOptions { exist_ok: true, ..scratch() }).unwrap().plan;
    assert_eq!(same.run_dir.file_name().unwrap(), "exp");
}

/// Adds `number` GPUs to the machine of the fixture.
fn add_gpus(fixture: &mut Fixture, number: usize) {
    let gpu = |index| Gpu { index, name: "NVIDIA H200".to_owned(), memory: 1 << 37, ..Gpu::default() };
    fixture.context.inventory.gpus = (0..number).map(gpu).collect();
}

/// The folder of a run with these options and no checkpoint.
fn started(fixture: &Fixture, options: TrainOptions) -> PathBuf {
    let plan = fixture.train(options).unwrap().plan;
    fs::create_dir_all(&plan.run_dir).unwrap();
    plan.write().unwrap();
    plan.run_dir
}

fn device(device: &str) -> TrainOptions {
    TrainOptions { device: Some(device.to_owned()), ..TrainOptions::default() }
}

#[test]
fn unequal_shares_belong_to_their_devices() {
    let mut fixture = Fixture::new();
    add_gpus(&mut fixture, 4);
    let split = |on: &str, shares: &str| {
        let split = Some(shares.to_owned());
        started(
            &fixture,
            TrainOptions { batch_split: split, workers: Some(Workers::Count(4)), ..device_and_scratch(on) },
        )
    };
    let run_dir = split("0,1", "10,2");
    let resumed = |options: TrainOptions| {
        let options = TrainOptions { resume: resume(&run_dir).resume, ..options };
        ready(plan_train(&options, &fixture.context).unwrap())
    };
    let same = resumed(device("0,1"));
    assert_eq!((task(&same).shares(2), task(&same).batch), (vec![10, 2], 12));
    let workers = resumed(TrainOptions { workers: Some(Workers::Count(8)), ..TrainOptions::default() });
    assert_eq!(task(&workers).workers, 4, "half of the cores, which is less than the largest share");
    for other in ["1,0", "2,3", "0,1,2"] {
        let planned = resumed(device(other));
        let ranks = planned.plan.ranks.world_size;
        assert_eq!((task(&planned).batch, task(&planned).batch_split.len()), (12, 0), "{other}");
        let said = format!(
            "resuming on {ranks} ranks ({other}) instead of 2 ranks (0,1): the batch over all ranks stays 12, \
             {} images on each instead of 10,2",
            12 / ranks
        );
        assert!(planned.notes.contains(&said), "{:?}", planned.notes);
    }

    let odd = split("0,1", "9,8");
    let refused =
        plan_train(&TrainOptions { resume: resume(&odd).resume, ..device("1,0") }, &fixture.context)
            .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the run cannot be resumed on 2 ranks: its batch of 17, which stays the same, cannot be divided equally among \
         them, and its shares (9,8) are for --device 0,1"
    );
    assert_eq!(refused.hint().as_deref(), Some("resume it with --device 0,1, or on 1 rank"));
    let same = TrainOptions { resume: resume(&odd).resume, ..device("0,1") };
    assert_eq!(task(&ready(plan_train(&same, &fixture.context).unwrap())).shares(2), [9, 8]);
}

fn device_and_scratch(on: &str) -> TrainOptions {
    TrainOptions { device: Some(on.to_owned()), ..scratch() }
}

#[test]
fn a_run_on_gpus_stays_there_unless_device_says_otherwise() {
    let mut fixture = Fixture::new();
    add_gpus(&mut fixture, 2);
    fixture.context.inventory.cuda_libtorch = true;
    let run_dir = started(&fixture, device_and_scratch("1"));
    let of = |options| TrainOptions { resume: resume(&run_dir).resume, ..options };
    let ranks = |ranks| of(TrainOptions { nproc_per_node: Some(ranks), ..TrainOptions::default() });
    let refused = plan_train(&ranks(2), &fixture.context).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "--nproc-per-node 2 is for ranks on the CPU, but the run to be resumed is on GPUs (--device 1)"
    );
    assert!(refused.hint().unwrap().contains("--device cpu --nproc-per-node 2"));
    let same = ready(plan_train(&ranks(1), &fixture.context).unwrap());
    assert_eq!(same.plan.ranks.devices, [Device::Cuda(1)]);
    let moved = TrainOptions { nproc_per_node: Some(2), ..of(device("cpu")) };
    assert_eq!(ready(plan_train(&moved, &fixture.context).unwrap()).plan.ranks.devices, [Device::Cpu; 2]);

    // Its devices are checked whatever else is given.
    fixture.context.inventory.visible = Some("0".to_owned());
    let gloo = of(TrainOptions { backend: Some(BackendOption::Gloo), ..TrainOptions::default() });
    for options in [gloo, ranks(1)] {
        let hidden = plan_train(&options, &fixture.context).unwrap_err().to_string();
        assert!(
            hidden.starts_with("the run cannot be resumed on its devices: --device 1 names 1"),
            "{hidden}"
        );
    }
}

#[test]
fn the_backend_and_nccl_of_a_run_stay() {
    let mut fixture = Fixture::new();
    add_gpus(&mut fixture, 3);
    let nccl = fixture.context.places.working_dir.join("libnccl.so.2");
    fs::write(&nccl, "library").unwrap();
    let newer =
        started(&fixture, TrainOptions { nccl: Some("libnccl.so.2".into()), ..device_and_scratch("0,1") });
    let gloo =
        started(&fixture, TrainOptions { backend: Some(BackendOption::Gloo), ..device_and_scratch("0,1") });
    let automatic = started(&fixture, device_and_scratch("cpu,cpu"));
    let on = |run: &Path, options: TrainOptions| {
        let options = TrainOptions { resume: resume(run).resume, ..options };
        let ranks = ready(plan_train(&options, &fixture.context).unwrap()).plan.ranks;
        (ranks.backend, ranks.nccl)
    };
    let two = || device("1,2");
    assert_eq!(on(&newer, two()), (Some(Backend::Nccl), Some(nccl.clone())));
    assert_eq!(on(&newer, device("0,1")), (Some(Backend::Nccl), Some(nccl.clone())));
    assert_eq!(on(&newer, device("cpu,cpu")), (Some(Backend::Gloo), None), "NCCL needs GPUs");
    assert_eq!(on(&newer, device("0")), (None, None));
    let chosen = TrainOptions { backend: Some(BackendOption::Gloo), ..TrainOptions::default() };
    assert_eq!(on(&newer, chosen), (Some(Backend::Gloo), None));
    assert_eq!(on(&gloo, two()), (Some(Backend::Gloo), None));
    let named = TrainOptions { backend: Some(BackendOption::Nccl), ..two() };
    assert_eq!(on(&gloo, named), (Some(Backend::Nccl), None));
    assert_eq!(on(&automatic, two()), (Some(Backend::Nccl), None), "gloo was for the CPU");

    fs::remove_file(&nccl).unwrap();
    let gone = TrainOptions { resume: resume(&newer).resume, ..two() };
    let gone = plan_train(&gone, &fixture.context).unwrap_err().to_string();
    assert!(gone.contains("does not exist or is not a file"), "{gone}");
}
