//! The options of `yolo bench`: defaults, one message for each invalid value, and the report of what
//! was measured.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::json;
use yolo_base::Hint as _;
use yolo_plan::bench_report::{
    Limit, LoaderStages, Measurement, Rate, Report, Source, StepPhases, ValPhases,
};
use yolo_plan::bench_workers::Why;
use yolo_plan::device::{Device, Gpu};
use yolo_plan::options::{
    BackendOption, BenchOptions, LoaderThreads, Parallel, TrainOptions, ValOptions, Workers,
};
use yolo_plan::run::{
    BenchPart, Need, Planned, Planning, RunPlan, Task, plan_batch_memory, plan_loader_threads,
};

use support::{Fixture, bench_task, scratch, task};

/// Valid options, of which a test changes one.
fn random_weights() -> BenchOptions {
    BenchOptions { weights: Some(String::new()), cfg: Some("yolov5n".into()), ..BenchOptions::default() }
}

#[test]
fn a_benchmark_measures_the_run_that_train_would_plan() {
    let fixture = Fixture::new();
    let planned = fixture.bench(random_weights()).unwrap();
    let measured = bench_task(&planned);
    assert_eq!(&measured.training, task(&fixture.train(scratch()).unwrap()));
    assert_eq!(measured.seconds, 8);
    let all = [BenchPart::Training, BenchPart::Synthetic, BenchPart::Loader, BenchPart::Validation];
    assert_eq!(measured.parts, all);
    assert_eq!(planned.plan.run_dir, fixture.context.places.working_dir.join("runs/bench/exp"));
    assert_eq!(planned.plan.ranks.devices, [Device::Cpu]);

    // Every option of the measured run reaches it.
    let options = BenchOptions {
        hyp: Some("high".into()),
        imgsz: Some(320),
        batch_size: Some(4),
        workers: Some(Workers::Count(2)),
        cache: Some(yolo_plan::options::Cache::Ram),
        ..random_weights()
    };
    let train = TrainOptions {
        hyp: options.hyp.clone(),
        imgsz: options.imgsz,
        batch_size: options.batch_size,
        workers: Some(Workers::Count(2)),
        cache: options.cache,
        ..scratch()
    };
    let planned = fixture.bench(options).unwrap();
    assert_eq!(&bench_task(&planned).training, task(&fixture.train(train).unwrap()));
}

#[test]
fn named_measurements_replace_the_default_of_all() {
    let fixture = Fixture::new();
    let parts = |options| bench_task(&fixture.bench(options).unwrap()).parts.clone();
    let loader = |threads| BenchOptions { loader: Some(threads), ..random_weights() };
    assert_eq!(parts(loader(LoaderThreads::All)), [BenchPart::Loader]);
    assert_eq!(parts(loader(LoaderThreads::Most)), [BenchPart::Loader]);
    let is_most = |threads| bench_task(&fixture.bench(loader(threads)).unwrap()).most_workers;
    assert_eq!([LoaderThreads::All, LoaderThreads::Most].map(is_most), [false, true]);
    let two = BenchOptions { validation: true, training: true, ..random_weights() };
    assert_eq!(parts(two), [BenchPart::Training, BenchPart::Validation]);
}

#[test]
fn the_plan_reads_back_and_is_not_a_run_to_resume() {
    let fixture = Fixture::new();
    let mut plan = fixture.bench(random_weights()).unwrap().plan;
    plan.run_dir = fixture.context.places.working_dir.clone();
    assert_eq!(RunPlan::read(&plan.write().unwrap()).unwrap(), plan);
    assert!(plan.task.train().is_none() && plan.task.training().is_some() && !plan.resumes());
}

#[test]
fn each_mistake_has_one_message() {
    let fixture = Fixture::new();
    let value = |text: &str| Some(text.to_owned());
    let cases = [
        (BenchOptions { seconds: Some(0), ..random_weights() }, "--seconds 0 is not a number from 1 to 3600"),
        (BenchOptions { seconds: Some(4000), ..random_weights() }, "--seconds 4000 is not a number from 1"),
        (BenchOptions { batch_size: Some(0), ..random_weights() }, "--batch 0 is not a number of images"),
        (BenchOptions { imgsz: Some(0), ..random_weights() }, "--imgsz 0 is not a number of pixels"),
        (
            BenchOptions { device: value("0"), ..random_weights() },
            "--device 0 needs a GPU, but there is none",
        ),
        (
            BenchOptions {
                loader: Some(LoaderThreads::Most),
                workers: Some(Workers::Auto),
                ..random_weights()
            },
            "--loader most contradicts --workers auto",
        ),
        (BenchOptions { cfg: None, ..random_weights() }, "--weights and --cfg are both empty"),
        (BenchOptions { weights: value("gone.pt"), ..random_weights() }, "--weights gone.pt: "),
        (
            BenchOptions { data: value("gone.yaml"), ..random_weights() },
            "the data set gone.yaml was not found",
        ),
    ];
    for (options, expected) in cases {
        let message = fixture.bench(options).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}\ndoes not begin with\n{expected}");
    }
}

#[test]
fn several_devices_are_refused_and_one_is_proposed() {
    let mut fixture = Fixture::new();
    let gpu = |index| Gpu { index, name: "NVIDIA A10".into(), memory: 24 << 30, ..Gpu::default() };
    fixture.context.inventory.gpus = vec![gpu(0), gpu(1)];
    fixture.context.inventory.cuda_libtorch = true;
    let on = |device: &str| fixture.bench(BenchOptions { device: Some(device.into()), ..random_weights() });
    let error = on("1,0").unwrap_err();
    assert_eq!(error.to_string(), "--device 1,0 names 2 devices, but `yolo bench` runs on one");
    assert_eq!(
        error.hint().as_deref(),
        Some("use one of them (--device 1), or compare numbers of devices with --scaling")
    );
    assert_eq!(on("1").unwrap().plan.ranks.devices, [Device::Cuda(1)]);
}

#[test]
fn the_choice_of_workers_measures_network_and_loader() {
    let fixture = Fixture::new();
    let auto = || BenchOptions { workers: Some(Workers::Auto), ..random_weights() };
    let planned = fixture.bench(auto()).unwrap();
    let task = bench_task(&planned);
    assert_eq!(task.parts, [BenchPart::Synthetic, BenchPart::Loader]);
    assert!(task.choose_workers);
    // As many as there are cores, and no more than there are images in a batch.
    assert_eq!(task.training.workers, 8);
    let small = fixture.bench(BenchOptions { batch_size: Some(3), ..auto() }).unwrap();
    assert_eq!(bench_task(&small).training.workers, 3);
    let also = fixture.bench(BenchOptions { validation: true, ..auto() }).unwrap();
    let parts = [BenchPart::Synthetic, BenchPart::Loader, BenchPart::Validation];
    assert_eq!(bench_task(&also).parts, parts);

    let measurements = [training(Source::Synthetic, 100.0), loader(1, 80.0), loader(2, 150.0)];
    let advice = report(&planned, &measurements).workers.unwrap();
    assert_eq!((advice.count, advice.needed, advice.why), (2, Some(100.0), Why::FastEnough));
    let plain = fixture.bench(random_weights()).unwrap();
    assert_eq!(report(&plain, &measurements).workers, None);
}

#[test]
fn a_training_run_measures_its_workers_on_the_rank_with_the_most_images() {
    let fixture = Fixture::new();
    let run = fixture
        .train(TrainOptions {
            workers: Some(Workers::Auto),
            device: Some("cpu,cpu,cpu".into()),
            batch_split: Some("2,5,5".into()),
            sync_bn: true,
            ..scratch()
        })
        .unwrap();
    assert_eq!(task(&run).workers, 2, "the most that a rank may have: its share of eight cores");
    let measured = plan_loader_threads(&run.plan, "here".into()).unwrap();
    assert_eq!((measured.ranks.devices.len(), measured.ranks.world_size), (1, 1));
    assert_eq!((measured.ranks.backend, measured.ranks.threads), (None, run.plan.ranks.threads));
    let Task::Bench(bench) = &measured.task else { panic!("{measured:?}") };
    assert_eq!(bench.parts, [BenchPart::Synthetic, BenchPart::Loader]);
    assert!(bench.choose_workers);
    let training = &bench.training;
    assert_eq!((training.batch, training.workers, training.sync_bn), (5, 2, false));
    // A resumed run starts from its checkpoint, whatever became of the weights of its first start.
    let resumed = run.plan.resumed_from(Some("last.pt".into()));
    let Task::Bench(bench) = plan_loader_threads(&resumed, "here".into()).unwrap().task else { panic!() };
    assert_eq!((bench.training.weights, bench.training.resume), (Some("last.pt".into()), None));
    let validation = fixture.val(ValOptions::default()).unwrap();
    assert_eq!(plan_loader_threads(&validation.plan, "here".into()), None);
}

#[test]
fn the_batch_is_measured_where_least_memory_is_free() {
    let mut fixture = Fixture::new();
    let gpu = |index, free: u64| Gpu { index, memory: 24 << 30, free: free << 30, ..Gpu::default() };
    fixture.context.inventory.gpus = vec![gpu(0, 20), gpu(1, 9), gpu(2, 16)];
    fixture.context.inventory.cuda_libtorch = true;
    let measurement = |options: TrainOptions| {
        let run = fixture.train(TrainOptions { batch_size: Some(-1), ..options }).unwrap();
        plan_batch_memory(&run.plan, &fixture.context.inventory, "here".into())
    };
    let on = |device: &str| TrainOptions {
        device: Some(device.into()),
        backend: Some(BackendOption::Gloo),
        ..scratch()
    };
    let three = measurement(TrainOptions { quad: true, sync_bn: true, ..on("0,1,2") }).unwrap();
    assert_eq!((three.device, three.sharing, three.parts, three.unit), (Device::Cuda(1), 1, 3, 4));
    assert_eq!(
        (three.plan.ranks.devices.as_slice(), three.plan.ranks.world_size),
        (&[Device::Cuda(1)][..], 1)
    );
    let Task::Bench(bench) = &three.plan.task else { panic!("{three:?}") };
    assert_eq!(bench.parts, [BenchPart::Memory]);
    assert_eq!((bench.training.quad, bench.training.sync_bn), (false, false));
    // Three ranks share 16 GiB, which leaves each less than 9.
    let shared = measurement(on("2,2,2,1")).unwrap();
    assert_eq!((shared.device, shared.sharing, shared.parts), (Device::Cuda(2), 3, 4));
    let options = TrainOptions { parallel: Some(Parallel::Dp), device: Some("0,2".into()), ..scratch() };
    let replicas = measurement(options).unwrap();
    assert_eq!((replicas.device, replicas.parts), (Device::Cuda(2), 2));
    assert!(replicas.plan.ranks.further_devices.is_empty());
    assert_eq!(measurement(on("cpu,cpu")), None, "nothing is measured on the CPU");
}

#[test]
fn a_measured_batch_is_planned_as_if_it_had_been_given() {
    let mut fixture = Fixture::new();
    fixture.context.measured_batch = Some(52);
    let automatic = fixture.train(TrainOptions { batch_size: Some(-1), ..scratch() }).unwrap();
    let given = fixture.train(TrainOptions { batch_size: Some(52), ..scratch() }).unwrap();
    assert_eq!(automatic, given);
}

#[test]
fn what_is_missing_is_fetched_as_for_train() {
    let fixture = Fixture::new();
    let options =
        BenchOptions { data: Some("coco8".into()), weights: Some("yolov5n.pt".into()), ..random_weights() };
    let planning = fixture.plan_bench(options).unwrap();
    let needs = vec![Need::Data("coco8".into()), Need::Weights("yolov5n.pt".into())];
    assert_eq!(planning, Planning::Missing(needs));
}

fn training(source: Source, images_per_second: f64) -> Measurement {
    let workers = (source == Source::Files).then_some(2);
    let rate = Rate::new(2 * images_per_second as usize, 2.0);
    let phases = StepPhases::default();
    Measurement::Training { source, workers, rate, phases, host_waits: None, launch_share: None }
}

fn loader(workers: usize, images_per_second: f64) -> Measurement {
    let stages = Some(LoaderStages { decode: 0.5, augment: 0.25, queue: 0.25, copy: 0.125 });
    Measurement::Loader { workers, rate: Rate::new(2 * images_per_second as usize, 2.0), stages }
}

fn report(planned: &Planned, measurements: &[Measurement]) -> Report {
    Report::new(&planned.plan, measurements.to_vec()).unwrap()
}

#[test]
fn the_slower_of_network_and_loader_limits_training() {
    let planned = Fixture::new().bench(random_weights()).unwrap();
    let limit = |measurements: &[Measurement]| report(&planned, measurements).limit;
    let (files, network) = (training(Source::Files, 90.0), training(Source::Synthetic, 100.0));
    assert_eq!(
        limit(&[files.clone(), network.clone(), loader(1, 60.0), loader(2, 120.0)]),
        Some(Limit::Network)
    );
    assert_eq!(limit(&[network.clone(), loader(1, 60.0), loader(2, 95.0)]), Some(Limit::Loader));
    // The speed on files does not tell why it is so.
    assert_eq!(limit(&[files.clone(), loader(2, 120.0)]), None);
    assert_eq!(limit(&[files, network]), None);
}

/// Programs read this. A change that is not an addition needs a new version.
#[test]
fn the_report_has_the_documented_form() {
    let planned = Fixture::new().bench(BenchOptions { imgsz: Some(320), ..random_weights() }).unwrap();
    let phases = ValPhases { preprocess: 0.25, inference: 0.5, nms: 0.25 };
    let measurements = [
        training(Source::Files, 10.0),
        training(Source::Synthetic, 20.0),
        loader(2, 40.0),
        Measurement::Validation { rate: Rate::new(87, 2.0), phases },
    ];
    let printed: serde_json::Value =
        serde_json::from_str(&report(&planned, &measurements).to_json()).unwrap();
    let step = json!({
        "wait": 0.0, "copy": 0.0, "forward": 0.0, "loss": 0.0, "backward": 0.0, "optimizer": 0.0
    });
    let expected = json!({
        "version": 1,
        "program": env!("CARGO_PKG_VERSION"),
        "device": "cpu",
        "model": "yolov5n",
        "image_size": 320,
        "batch": 16,
        "precision": "fp32",
        "threads": 8,
        "measurements": [
            {
                "what": "training", "source": "files", "workers": 2, "images": 20, "seconds": 2.0,
                "images_per_second": 10.0, "began": 0.0, "phases": step
            },
            {
                "what": "training", "source": "synthetic", "images": 40, "seconds": 2.0,
                "images_per_second": 20.0, "began": 0.0, "phases": step
            },
            {
                "what": "loader", "workers": 2, "images": 80, "seconds": 2.0, "images_per_second": 40.0, "began": 0.0,
                "stages": { "decode": 0.5, "augment": 0.25, "queue": 0.25, "copy": 0.125 }
            },
            {
                "what": "validation", "images": 87, "seconds": 2.0, "images_per_second": 43.5, "began": 0.0,
                "phases": { "preprocess": 0.25, "inference": 0.5, "nms": 0.25 }
            }
        ],
        "limit": "network"
    });
    assert_eq!(printed, expected);

    let named = BenchOptions { weights: Some("best.pt".into()), ..BenchOptions::default() };
    let by_weights = Fixture::new().bench(named).unwrap();
    assert_eq!(report(&by_weights, &[]).model, "best");
    assert!(Report::new(&Fixture::new().train(scratch()).unwrap().plan, Vec::new()).is_none());
}
