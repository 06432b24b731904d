//! The options of `yolo train`: defaults, those of the built-in data set, one message for each invalid
//! value, and their names in `opt.yaml`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use yolo_base::Hint as _;
use yolo_plan::backend::Backend;
use yolo_plan::device::Device;
use yolo_plan::hyp::HyperParameters;
use yolo_plan::options::{Balance, TrainOptions};
use yolo_plan::run::{PLAN_VERSION, opt_yaml};

use support::{Fixture, scratch, task};

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
fn sync_bn_is_advised_where_ranks_have_few_images() {
    let fixture = Fixture::new();
    let advised = |batch, ranks, sync_bn| {
        let options =
            TrainOptions { batch_size: Some(batch), nproc_per_node: Some(ranks), sync_bn, ..scratch() };
        let notes = fixture.train(options).unwrap().notes;
        notes.into_iter().find(|note| note.contains("consider --sync-bn"))
    };
    assert_eq!(
        advised(16, 2, false).unwrap(),
        "each rank normalizes over 8 images a step, which is few: consider --sync-bn, which normalizes over the \
         images of all ranks"
    );
    assert!(advised(2, 2, false).unwrap().contains("over 1 image a step"));
    let split = TrainOptions {
        batch_size: Some(18),
        batch_split: Some("14,2,2".into()),
        nproc_per_node: Some(3),
        ..scratch()
    };
    let advice = fixture.train(split).unwrap().notes.pop().unwrap();
    assert!(
        advice.starts_with("the ranks normalize over 14, 2 and 2 images a step, and 2 is few"),
        "{advice}"
    );
    assert_eq!((advised(18, 2, false), advised(16, 2, true), advised(8, 1, false)), (None, None, None));
}

#[test]
fn ranks_can_have_unequal_shares_of_the_batch() {
    let fixture = Fixture::new();
    let two = || TrainOptions { device: Some("cpu,cpu".into()), ..scratch() };
    let planned = fixture.train(TrainOptions { batch_split: Some("12,5".into()), ..two() }).unwrap();
    let unequal = task(&planned);
    assert_eq!((unequal.batch, unequal.shares(2), unequal.workers), (17, vec![12, 5], 4));
    // A run that is resumed on another number of ranks has equal shares.
    assert_eq!(unequal.shares(1), [17]);
    // An odd batch needs unequal shares.
    let odd = TrainOptions { batch_size: Some(15), ..two() };
    assert!(fixture.train_error(odd).contains("must be a multiple of 2"));
    let balance = Some(Balance::Boxes);
    assert_eq!(task(&fixture.train(TrainOptions { balance, ..two() }).unwrap()).balance, balance);
    let alone = fixture.train(TrainOptions { balance, ..scratch() }).unwrap();
    assert_eq!(
        (task(&alone).balance, alone.warnings.as_slice()),
        (None, &["--balance has no effect on a single rank".to_owned()][..])
    );
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
    assert_eq!(freeze(&[3, 40]).unwrap_err().to_string(), "--freeze 40: the last layer of the model is 24");
    assert!(freeze(&[25]).unwrap_err().to_string().contains("nothing would be trained"));
    assert!(freeze(&[usize::MAX]).is_err());
}

#[test]
fn anchors_that_nothing_fits_to_the_labels_are_pointed_out() {
    let fixture = Fixture::new();
    let warnings = |hyp: &str, noautoanchor| {
        let options = TrainOptions { hyp: Some(hyp.to_owned()), noautoanchor, ..scratch() };
        fixture.train(options).unwrap().warnings
    };
    // This one has `anchors: 3.2`.
    assert!(warnings("hyp.Objects365.yaml", true)[0].starts_with("`anchors` in the hyperparameters"));
    assert!(warnings("hyp.Objects365.yaml", false).is_empty() && warnings("low", true).is_empty());
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
        (
            TrainOptions {
                device: value("cpu,cpu"),
                batch_split: value("12,5"),
                batch_size: Some(16),
                ..scratch()
            },
            "--batch-split 12,5 adds up to 17, but --batch is 16",
        ),
        (
            TrainOptions { batch_split: value("8,8"), ..scratch() },
            "--batch-split 8,8 has 2 shares, but there is one rank",
        ),
        (TrainOptions { name: value(""), ..scratch() }, "--name \"\" is not a valid name for a run folder"),
    ];
    for (options, expected) in cases {
        let message = fixture.train_error(options);
        assert!(message.starts_with(expected), "{message}\ndoes not begin with\n{expected}");
    }
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
