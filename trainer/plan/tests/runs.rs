//! Plans of runs: defaults, those of the built-in data set, and one message for each mistake.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;
use yolo_base::Hint as _;
use yolo_plan::backend::Backend;
use yolo_plan::dataset::Places;
use yolo_plan::device::{Device, Inventory};
use yolo_plan::hyp::HyperParameters;
use yolo_plan::options::{TrainOptions, ValOptions};
use yolo_plan::run::{
    Need, PLAN_VERSION, PlanContext, Planned, Planning, Split, Task, TrainTask, ValMode, ValTask, opt_yaml,
    plan_resume, plan_train, plan_val,
};
use yolo_plan::{PlanError, RunPlan};

const YAML: &str = "train: images\nval: images\nnames: [cat, dog, owl]\n";

/// A working folder with the data set `data.yaml` and the weights `best.pt`; `shapes` is generated.
struct Fixture {
    _root: TempDir,
    context: PlanContext,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let places = Places { working_dir: root.path().join("work"), data_sets: root.path().join("sets") };
        for (folder, yaml) in
            [(&places.working_dir, "data.yaml"), (&places.data_sets.join("shapes"), "shapes.yaml")]
        {
            fs::create_dir_all(folder.join("images")).unwrap();
            fs::write(folder.join(yaml), YAML).unwrap();
        }
        fs::write(places.working_dir.join("best.pt"), "tensors").unwrap();
        let inventory = Inventory {
            cores: 8,
            gpus: Vec::new(),
            no_gpu_reason: Some("the NVIDIA driver is not installed".into()),
            cuda_libtorch: false,
        };
        Self {
            _root: root,
            context: PlanContext { inventory, places, fetched: BTreeMap::new(), generated: true },
        }
    }

    fn plan_train(&self, options: TrainOptions) -> Result<Planning, PlanError> {
        let data = Some("data.yaml".to_owned());
        plan_train(&TrainOptions { data: options.data.clone().or(data), ..options }, &self.context)
    }

    fn train(&self, options: TrainOptions) -> Result<Planned, PlanError> {
        self.plan_train(options).map(ready)
    }

    fn train_error(&self, options: TrainOptions) -> String {
        self.train(options).unwrap_err().to_string()
    }

    fn val(&self, options: ValOptions) -> Result<Planned, PlanError> {
        let data = Some("data.yaml".to_owned());
        let weights = vec!["best.pt".to_owned()];
        let options = ValOptions {
            data: options.data.clone().or(data),
            weights: if options.weights.is_empty() { weights } else { options.weights.clone() },
            ..options
        };
        plan_val(&options, &self.context).map(ready)
    }
}

fn ready(planning: Planning) -> Planned {
    match planning {
        Planning::Ready(planned) => *planned,
        Planning::Missing(needs) => panic!("{needs:?} are missing"),
    }
}

/// Valid options, of which a test changes one.
fn scratch() -> TrainOptions {
    TrainOptions { weights: Some(String::new()), cfg: Some("yolov5n".into()), ..TrainOptions::default() }
}

fn task(planned: &Planned) -> &TrainTask {
    planned.plan.task.train().expect("a training run")
}

fn val_task(planned: &Planned) -> &ValTask {
    match &planned.plan.task {
        Task::Val(task) => task,
        other => panic!("not a validation: {other:?}"),
    }
}

#[test]
fn yolov5s_defaults() {
    let fixture = Fixture::new();
    let planned =
        fixture.train(TrainOptions { weights: Some("best.pt".into()), ..TrainOptions::default() }).unwrap();
    let plan = &planned.plan;
    assert_eq!((plan.version, plan.ranks.world_size, plan.ranks.threads), (PLAN_VERSION, 1, 8));
    assert_eq!(plan.ranks.backend, None);
    assert_eq!(plan.run_dir, fixture.context.places.working_dir.join("runs/train/exp"));
    assert_eq!(planned.notes, ["using the CPU: the NVIDIA driver is not installed"]);
    assert_eq!(planned.warnings, [""; 0]);
    let task = task(&planned);
    assert_eq!((task.batch, task.image_size, task.workers), (16, 640, 8));
    assert_eq!(task.weights, Some(fixture.context.places.working_dir.join("best.pt")));
    assert_eq!(task.model, None);
    assert_eq!(task.hyp, HyperParameters::low());
    assert_eq!(
        (task.epochs, task.nominal_batch, task.patience, task.save_period, task.seed),
        (100, 64, Some(100), None, 0)
    );
    assert!(task.autoanchor && task.plots && task.freeze.is_empty());
}

#[test]
fn the_built_in_data_set_has_its_own_defaults() {
    let fixture = Fixture::new();
    let shapes = || TrainOptions { data: Some("shapes".into()), ..TrainOptions::default() };
    let planned = fixture.train(shapes()).unwrap();
    let defaults = task(&planned);
    assert_eq!(defaults.weights, None);
    assert_eq!(defaults.model.as_ref().unwrap().nc, 3);
    assert!(defaults.image_size < 640 && defaults.nominal_batch < 64);
    // Each explicit option wins.
    let explicit =
        TrainOptions { epochs: Some(2), imgsz: Some(96), cfg: Some("yolov5s.yaml".into()), ..shapes() };
    let planned = fixture.train(explicit).unwrap();
    assert_eq!((task(&planned).epochs, task(&planned).image_size), (2, 96));
    assert_eq!(task(&planned).model.as_ref().unwrap().name, "yolov5s");
    let fine_tuned = fixture.train(TrainOptions { weights: Some("best.pt".into()), ..shapes() }).unwrap();
    assert_eq!(task(&fine_tuned).model, None);
}

#[test]
fn two_ranks_share_cores_and_batch() {
    let fixture = Fixture::new();
    let options = || TrainOptions { device: Some("cpu".into()), nproc_per_node: Some(2), ..scratch() };
    let planned = fixture.train(options()).unwrap();
    let (ranks, task) = (&planned.plan.ranks, task(&planned));
    assert_eq!(ranks.devices, [Device::Cpu; 2]);
    assert_eq!(ranks.backend, Some(Backend::Gloo));
    assert_eq!((ranks.threads, task.workers, ranks.share(task.batch)), (4, 4, 8));
    let error = fixture.train(TrainOptions { batch_size: Some(15), ..options() }).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("use --batch 14 or 16"));
}

#[test]
fn image_sizes_become_multiples_of_the_stride() {
    let fixture = Fixture::new();
    let size = |imgsz: usize, cfg: &str| {
        let planned =
            fixture.train(TrainOptions { imgsz: Some(imgsz), cfg: Some(cfg.into()), ..scratch() }).unwrap();
        (task(&planned).image_size, planned.warnings.first().cloned().unwrap_or_default())
    };
    assert_eq!(size(320, "yolov5n"), (320, String::new()));
    let warning = "--imgsz 333 is not a multiple of the model's largest stride 32: using 352";
    assert_eq!(size(333, "yolov5n"), (352, warning.to_owned()));
    assert_eq!(size(333, "yolov5n6").0, 384);
    assert_eq!(size(1, "yolov5n"), (64, "--imgsz 1 is below the smallest size 64: using 64".to_owned()));
    for imgsz in [0, 1_000_000] {
        assert!(
            fixture
                .train_error(TrainOptions { imgsz: Some(imgsz), ..scratch() })
                .contains("not a number of pixels")
        );
    }
}

#[test]
fn frozen_layers() {
    let fixture = Fixture::new();
    let freeze = |layers: &[usize]| fixture.train(TrainOptions { freeze: layers.to_vec(), ..scratch() });
    assert_eq!(task(&freeze(&[3]).unwrap()).freeze, [0, 1, 2]);
    assert_eq!(task(&freeze(&[0]).unwrap()).freeze, [0; 0]);
    assert_eq!(task(&freeze(&[9, 0, 1, 9]).unwrap()).freeze, [0, 1, 9]);
    let beyond = freeze(&[3, 40]).unwrap();
    assert_eq!(task(&beyond).freeze, [3]);
    assert!(beyond.warnings[0].contains("(40): its last layer is 24"), "{:?}", beyond.warnings);
    assert!(freeze(&[25]).unwrap_err().to_string().contains("nothing would be trained"));
    assert!(freeze(&[usize::MAX]).is_err());
}

#[test]
fn a_merged_class_is_named_as_in_yolov5() {
    let planned = Fixture::new().train(TrainOptions { single_cls: true, ..scratch() }).unwrap();
    assert_eq!(task(&planned).data.names, ["item"]);
    assert_eq!(task(&planned).model.as_ref().unwrap().nc, 1);
}

#[test]
fn zero_patience_never_stops_and_periods_below_one_save_nothing() {
    let planned =
        Fixture::new().train(TrainOptions { patience: Some(0), save_period: Some(-1), ..scratch() }).unwrap();
    assert_eq!((task(&planned).patience, task(&planned).save_period), (None, None));
}

#[test]
fn each_mistake_has_one_message() {
    let fixture = Fixture::new();
    let value = |text: &str| Some(text.to_owned());
    let cases = [
        (
            TrainOptions { weights: value(""), ..TrainOptions::default() },
            "--weights and --cfg are both empty",
        ),
        (TrainOptions { weights: value("gone.pt"), ..scratch() }, "--weights gone.pt: "),
        (TrainOptions { cfg: value("gone.yaml"), ..scratch() }, "model gone.yaml not found"),
        (TrainOptions { hyp: value("gone.yaml"), ..scratch() }, "hyperparameters gone.yaml not found"),
        (TrainOptions { epochs: Some(0), ..scratch() }, "--epochs 0 is not a number from 1"),
        (TrainOptions { nbs: Some(0), ..scratch() }, "--nbs 0 is not a number from 1"),
        (TrainOptions { batch_size: Some(0), ..scratch() }, "--batch 0 is not a number of images"),
        (
            TrainOptions { label_smoothing: Some(1.0), ..scratch() },
            "--label-smoothing 1 is not a number from 0",
        ),
        (
            TrainOptions { label_smoothing: Some(f64::NAN), ..scratch() },
            "--label-smoothing NaN is not a number",
        ),
        (TrainOptions { device: value("0"), ..scratch() }, "--device 0 needs a GPU, but there is none"),
        (TrainOptions { name: value(""), ..scratch() }, "--name \"\" is not a valid name for a run folder"),
    ];
    for (options, expected) in cases {
        let message = fixture.train_error(options);
        assert!(message.starts_with(expected), "{message}\ndoes not begin with\n{expected}");
    }
}

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
    let options = TrainOptions { batch_size: Some(0), ..TrainOptions::default() };
    assert!(plan_train(&options, &Fixture::new().context).unwrap_err().to_string().starts_with("--batch 0"));
}

#[test]
fn a_validation_has_yolov5s_defaults() {
    let fixture = Fixture::new();
    let planned = fixture.val(ValOptions::default()).unwrap();
    let task = val_task(&planned);
    assert_eq!((task.conf_thres, task.iou_thres, task.max_det), (0.001, 0.6, 300));
    assert_eq!((task.split, task.mode), (Split::Val, ValMode::Accuracy));
    assert_eq!((task.image_size, task.batch), (640, 32));
    assert_eq!(planned.plan.run_dir, fixture.context.places.working_dir.join("runs/val/exp"));
    let speed =
        fixture.val(ValOptions { task: Some("speed".into()), half: true, ..ValOptions::default() }).unwrap();
    assert_eq!((val_task(&speed).conf_thres, val_task(&speed).iou_thres), (0.25, 0.45));
    assert!(!val_task(&speed).half && speed.warnings[0].contains("--half"));
    let error = |options| fixture.val(options).unwrap_err().to_string();
    assert!(error(ValOptions { task: Some("race".into()), ..ValOptions::default() }).contains("--task race"));
    assert!(
        error(ValOptions { task: Some("test".into()), ..ValOptions::default() })
            .contains("has no test images")
    );
    assert!(
        error(ValOptions { conf_thres: Some(1.5), ..ValOptions::default() }).contains("--conf-thres 1.5")
    );
    assert!(error(ValOptions { batch_size: Some(0), ..ValOptions::default() }).contains("--batch 0"));
    let dnn = fixture.val(ValOptions { dnn: true, ..ValOptions::default() }).unwrap();
    assert!(dnn.warnings[0].starts_with("--dnn "), "{:?}", dnn.warnings);
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
    assert!(RunPlan::read(&path).unwrap_err().to_string().contains("is not a run plan"));
    assert!(
        RunPlan::read(&path.with_extension("gone")).unwrap_err().to_string().contains("cannot read the plan")
    );
}

#[test]
fn a_run_is_resumed_in_its_folder() {
    let fixture = Fixture::new();
    let plan = fixture.train(TrainOptions { epochs: Some(7), ..scratch() }).unwrap().plan;
    let none = plan_resume(None, &fixture.context.places).unwrap_err().to_string();
    assert!(none.starts_with("there is no run to resume"), "{none}");

    let weights = plan.run_dir.join("weights");
    fs::create_dir_all(&weights).unwrap();
    let last = weights.join("last.pt");
    fs::write(&last, "tensors").unwrap();
    let planless = plan_resume(Some(&last), &fixture.context.places).unwrap_err().to_string();
    assert!(planless.contains("there is no plan.json"), "{planless}");

    plan.write().unwrap();
    for named in [None, Some(last.as_path()), Some(plan.run_dir.as_path())] {
        let resumed = plan_resume(named, &fixture.context.places).unwrap();
        assert_eq!(task(&resumed).resume, Some(last.canonicalize().unwrap()));
        assert_eq!(task(&resumed).epochs, 7);
        assert_eq!(resumed.plan.run_dir, plan.run_dir.canonicalize().unwrap());
        assert_eq!(resumed.notes.len(), usize::from(named.is_none()));
    }
    let gone =
        plan_resume(Some(&last.with_file_name("gone.pt")), &fixture.context.places).unwrap_err().to_string();
    assert!(gone.contains("this checkpoint does not exist"), "{gone}");

    let val = fixture.val(ValOptions::default()).unwrap().plan;
    fs::create_dir_all(val.run_dir.join("weights")).unwrap();
    fs::write(val.run_dir.join("weights/last.pt"), "tensors").unwrap();
    val.write().unwrap();
    let not_training = plan_resume(Some(&val.run_dir), &fixture.context.places).unwrap_err().to_string();
    assert!(not_training.contains("was not a training run"), "{not_training}");
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

/// A new option that is not part of the task would be missing in `opt.yaml`.
#[test]
fn every_training_option_is_in_opt_yaml() {
    let planned = Fixture::new().train(scratch()).unwrap();
    let settings = opt_yaml(&planned.plan, task(&planned)).unwrap();
    let options = serde_json::to_value(TrainOptions::default()).unwrap();
    // These three make `save_dir`.
    let in_save_dir = ["project", "name", "exist_ok"];
    for option in options.as_object().unwrap().keys().filter(|option| !in_save_dir.contains(&option.as_str()))
    {
        assert!(settings.contains_key(option), "--{option} is not in opt.yaml: is it in TrainTask?");
    }
    assert_eq!(settings["cfg"], "yolov5n");
    assert_eq!(
        (&settings["batch_size"], &settings["nbs"], &settings["imgsz"]),
        (&16.into(), &64.into(), &640.into())
    );
    assert_eq!(
        (&settings["noplots"], &settings["save_period"], &settings["device"]),
        (&false.into(), &(-1).into(), &"cpu".into())
    );
    assert_eq!(settings["hyp"], "hyp.yaml");
}
