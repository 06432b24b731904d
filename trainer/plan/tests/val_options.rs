//! The options of `yolo val`: defaults, and one message for each invalid value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

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
