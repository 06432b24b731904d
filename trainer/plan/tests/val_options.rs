//! The options of `yolo val`: defaults, and one message for each invalid value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use yolo_base::Hint as _;
use yolo_plan::options::ValOptions;
use yolo_plan::run::{Split, ValMode};

use support::{Fixture, val_task};

#[test]
fn a_validation_has_yolov5s_defaults() {
    let fixture = Fixture::new();
    let planned = fixture.val(ValOptions::default()).unwrap();
    let task = val_task(&planned);
    assert_eq!((task.conf_thres, task.iou_thres, task.max_det), (0.001, 0.6, 300));
    assert_eq!((task.split, task.mode), (Split::Val, ValMode::Accuracy));
    assert_eq!((task.image_size, task.batch), (640, 32));
    assert_eq!(planned.plan.run_dir, fixture.context.places.working_dir.join("runs/val/exp"));
    let speed = fixture.val(ValOptions { task: Some("speed".into()), ..ValOptions::default() }).unwrap();
    assert_eq!((val_task(&speed).conf_thres, val_task(&speed).iou_thres), (0.25, 0.45));
    assert!(!val_task(&speed).half && speed.warnings.is_empty(), "the fixture has no GPU");
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
fn options_with_which_metrics_say_little_are_pointed_out() {
    let fixture = Fixture::new();
    let warnings = |options| fixture.val(options).unwrap().warnings;
    let default = ValOptions::default;
    assert!(
        warnings(ValOptions { conf_thres: Some(0.001), save_txt: true, save_conf: true, ..default() })
            .is_empty()
    );
    let high = warnings(ValOptions { conf_thres: Some(0.5), ..default() });
    assert!(high[0].starts_with("--conf-thres 0.5 leaves out detections"), "{high:?}");
    let hybrid = warnings(ValOptions { save_hybrid: true, save_conf: true, ..default() });
    assert!(hybrid.len() == 1 && hybrid[0].starts_with("--save-hybrid adds the labels"), "{hybrid:?}");
    let alone = warnings(ValOptions { save_conf: true, ..default() });
    assert_eq!(alone, ["--save-conf has no effect without --save-txt"]);
    let study = warnings(ValOptions { task: Some("study".into()), imgsz: Some(320), ..default() });
    assert!(study[0].starts_with("--imgsz has no effect with --task study"), "{study:?}");
}

#[test]
fn half_precision_is_refused_on_the_cpu() {
    let fixture = Fixture::new();
    let error = |device: Option<&str>| {
        let device = device.map(str::to_owned);
        let error = fixture.val(ValOptions { half: true, device, ..ValOptions::default() }).unwrap_err();
        format!("{error}; {}", error.hint().unwrap())
    };
    assert_eq!(
        error(Some("cpu")),
        "--half contradicts --device cpu: half precision needs a CUDA device, because a CPU is slower with it; \
         omit --half, or give a GPU with --device"
    );
    assert_eq!(
        error(None),
        "--half cannot be used, because no GPU is usable here: half precision needs a CUDA device, because a CPU is \
         slower with it; omit --half; `yolo doctor` says why no GPU is usable"
    );
}
