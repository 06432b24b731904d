//! The options of `yolo predict`: defaults, and one message for each invalid value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use yolo_base::Hint as _;
use yolo_plan::options::PredictOptions;
use yolo_plan::run::SavedBoxes;

use support::{Fixture, predict_task};

fn default() -> PredictOptions {
    PredictOptions::default()
}

#[test]
fn a_prediction_has_the_defaults_of_detect_py() {
    let fixture = Fixture::new();
    let planned = fixture.predict(default()).unwrap();
    let task = predict_task(&planned);
    assert_eq!((task.conf_thres, task.iou_thres, task.max_det), (0.25, 0.45, 1000));
    assert_eq!((task.image_size, task.batch, task.workers), ([640, 640], 1, 8));
    assert!(task.save && task.save_txt.is_none() && task.classes.is_none() && task.line_thickness.is_none());
    assert_eq!(planned.plan.run_dir, fixture.context.places.working_dir.join("runs/detect/exp"));
    assert_eq!((task.pictures.len(), task.pictures[0].stem.as_str()), (1, "a"));
    assert!(planned.warnings.is_empty());
}

#[test]
fn the_image_size_is_one_number_or_height_and_width() {
    let fixture = Fixture::new();
    let size = |imgsz: &[usize]| {
        let planned = fixture.predict(PredictOptions { imgsz: imgsz.to_vec(), ..default() }).unwrap();
        (predict_task(&planned).image_size, planned.warnings)
    };
    assert_eq!(size(&[320]), ([320, 320], vec![]));
    assert_eq!(size(&[320, 640]), ([320, 640], vec![]));
    let (rounded, warnings) = size(&[300]);
    assert_eq!((rounded, warnings.len()), ([320, 320], 1), "{warnings:?}");
}

#[test]
fn text_files_have_one_of_two_formats() {
    let fixture = Fixture::new();
    let format = |format: Option<&str>| {
        let save_format = format.map(str::to_owned);
        let planned = fixture.predict(PredictOptions { save_txt: true, save_format, ..default() })?;
        Ok::<_, yolo_plan::PlanError>(predict_task(&planned).save_txt)
    };
    assert_eq!(format(None).unwrap(), Some(SavedBoxes::CenterAndSize));
    assert_eq!(format(Some("0")).unwrap(), Some(SavedBoxes::CenterAndSize));
    assert_eq!(format(Some("1")).unwrap(), Some(SavedBoxes::Corners));
    assert_eq!(format(Some("2")).unwrap_err().to_string(), "--save-format 2 is neither 0 nor 1");
}

#[test]
fn mistakes_are_usage_errors_with_a_hint() {
    let fixture = Fixture::new();
    for (options, message) in [
        (
            PredictOptions {
                visualize: true,
                weights: vec!["best.pt".into(), "best.pt".into()],
                ..default()
            },
            "--visualize shows the layers of one model, but --weights names several files",
        ),
        (PredictOptions { visualize: true, augment: true, ..default() }, "--visualize contradicts --augment"),
        (PredictOptions { line_thickness: Some(0), ..default() }, "--line-thickness 0 would draw nothing"),
        (PredictOptions { batch_size: Some(0), ..default() }, "--batch 0"),
        (PredictOptions { imgsz: vec![640, 0], ..default() }, "--imgsz 0 is not a number of pixels"),
        (PredictOptions { conf_thres: Some(1.5), ..default() }, "--conf-thres 1.5"),
        (PredictOptions { max_det: Some(0), ..default() }, "--max-det 0 would discard every detection"),
        (PredictOptions { half: true, device: Some("cpu".into()), ..default() }, "--half contradicts"),
    ] {
        let error = fixture.predict(options).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.is_usage() && error.hint().is_some(), "{error}");
    }
    let own_folder = PredictOptions {
        project: Some("..".into()),
        name: Some("work".into()),
        exist_ok: true,
        paths: vec!["../work/a.jpg".into()],
        ..default()
    };
    let error = fixture.predict(own_folder).unwrap_err().to_string();
    assert!(error.starts_with("the files with boxes would replace those in "), "{error}");
}

#[test]
fn options_without_effect_are_pointed_out() {
    let fixture = Fixture::new();
    let warnings = |options| fixture.predict(options).unwrap().warnings;
    assert_eq!(
        warnings(PredictOptions { save_conf: true, ..default() }),
        ["--save-conf has no effect without --save-txt"]
    );
    assert_eq!(
        warnings(PredictOptions { hide_conf: true, nosave: true, ..default() }),
        ["--hide-conf has no effect with --nosave"]
    );
    let update = warnings(PredictOptions { update: true, dnn: true, ..default() });
    assert!(
        update.len() == 2 && update[0].starts_with("--update ") && update[1].starts_with("--dnn "),
        "{update:?}"
    );
}
