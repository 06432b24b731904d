//! The options of `yolo export`: defaults, and one message for each invalid value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use yolo_base::Hint as _;
use yolo_plan::PlanError;
use yolo_plan::options::{ExportOptions, Yolov5ExportOptions};
use yolo_plan::run::{ExportFormat, ExportTask, OnnxNms, Planned, Planning, Task, plan_export};

use support::Fixture;

fn plan(fixture: &Fixture, options: &ExportOptions) -> Result<Box<Planned>, PlanError> {
    match plan_export(options, &fixture.context)? {
        Planning::Ready(planned) => Ok(planned),
        Planning::Missing(needs) => panic!("{needs:?} are missing"),
    }
}

fn task(planned: &Planned) -> &ExportTask {
    let Task::Export(task) = &planned.plan.task else { panic!("another task") };
    task
}

fn best() -> ExportOptions {
    ExportOptions { weights: Some("best.pt".to_owned()), ..ExportOptions::default() }
}

fn formats(names: &[&str]) -> ExportOptions {
    ExportOptions { format: names.iter().map(|&name| name.to_owned()).collect(), ..best() }
}

/// The message and the hint of options that are refused.
#[track_caller]
fn refused(options: &ExportOptions) -> String {
    let error = plan(&Fixture::new(), options).unwrap_err();
    assert!(error.is_usage(), "{error}");
    format!("{error}; {}", error.hint().unwrap())
}

#[test]
fn an_export_has_yolov5s_defaults() {
    let fixture = Fixture::new();
    let planned = plan(&fixture, &best()).unwrap();
    let work = &fixture.context.places.working_dir;
    let task = task(&planned);
    assert_eq!((task.image_size, task.batch, task.half, task.fuse), ([640, 640], 1, false, true));
    assert_eq!(task.files[0].path, work.join("best.torchscript"));
    assert_eq!(task.files.len(), 1);
    assert!(planned.warnings.is_empty() && !planned.plan.task.has_folder());
    assert_eq!(planned.plan.ranks.devices, [yolo_plan::device::Device::Cpu]);
    let missing = plan_export(&ExportOptions::default(), &fixture.context).unwrap();
    assert!(format!("{missing:?}").contains("yolov5s.pt"), "{missing:?}");
}

#[test]
fn each_format_has_a_file_beside_the_weights() {
    let fixture = Fixture::new();
    let all: Vec<&str> = ExportFormat::ALL.map(ExportFormat::name).to_vec();
    let planned = plan(&fixture, &formats(&[&all[..], &all[..1]].concat())).unwrap();
    let mut names: Vec<String> = task(&planned)
        .files
        .iter()
        .map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), all.len(), "a format that is named twice is written once");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two formats have one file");
}

#[test]
fn fetched_weights_are_exported_into_the_working_folder() {
    let mut fixture = Fixture::new();
    let fetched = fixture.context.places.data_sets.join("yolov5n.pt");
    fixture.context.fetched.insert("yolov5n.pt".to_owned(), fetched.clone());
    let options = ExportOptions { weights: Some("yolov5n.pt".to_owned()), ..ExportOptions::default() };
    let planned = plan(&fixture, &options).unwrap();
    assert_eq!(task(&planned).weights, fetched);
    assert_eq!(task(&planned).files[0].path, fixture.context.places.working_dir.join("yolov5n.torchscript"));
}

#[test]
fn sizes_are_multiples_of_the_stride() {
    let fixture = Fixture::new();
    let planned = plan(&fixture, &ExportOptions { imgsz: vec![320, 600], ..best() }).unwrap();
    assert_eq!(task(&planned).image_size, [320, 608]);
    assert_eq!(
        planned.warnings,
        ["--imgsz 600 is not a multiple of the model's largest stride 32: using 608"]
    );
    assert!(
        refused(&ExportOptions { imgsz: vec![0], ..best() })
            .starts_with("--imgsz 0 is not a number of pixels")
    );
    assert!(refused(&ExportOptions { batch_size: Some(0), ..best() }).contains("--batch 0"));
}

#[test]
fn formats_that_are_not_written_are_refused_by_name() {
    for name in [
        "openvino",
        "engine",
        "tensorrt",
        "coreml",
        "saved_model",
        "pb",
        "tflite",
        "edgetpu",
        "tfjs",
        "paddle",
    ] {
        let error = refused(&formats(&[name]));
        assert!(
            error.starts_with(&format!("yolo does not write the format {name}; use --format ")),
            "{error}"
        );
    }
    assert_eq!(
        refused(&formats(&["tensorrt"])).replace("tensorrt", "engine"),
        refused(&formats(&["engine"]))
    );
    assert_eq!(
        refused(&formats(&["torchscrpt"])),
        "yolo does not know the format torchscrpt; choose from torchscript, onnx, torch, yolov5 and safetensors"
    );
}

#[test]
fn an_export_never_replaces_its_weights() {
    let fixture = Fixture::new();
    let weights = fixture.context.places.working_dir.join("best.safetensors");
    std::fs::write(weights, "tensors").unwrap();
    let options =
        ExportOptions { weights: Some("best.safetensors".to_owned()), ..formats(&["torch", "safetensors"]) };
    let error = plan(&fixture, &options).unwrap_err().to_string();
    assert!(error.starts_with("--format safetensors would replace the weights "), "{error}");
}

#[test]
fn options_of_yolov5_without_a_meaning_are_named() {
    let with = |yolov5: Yolov5ExportOptions| ExportOptions { yolov5, ..best() };
    let warned = with(Yolov5ExportOptions {
        data: Some("coco128.yaml".to_owned()),
        inplace: true,
        simplify: true,
        verbose: true,
        ..Yolov5ExportOptions::default()
    });
    let warnings = plan(&Fixture::new(), &warned).unwrap().warnings;
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains("has no effect")), "{warnings:?}");
    let default = Yolov5ExportOptions::default;
    for (given, option) in [
        (Yolov5ExportOptions { optimize: true, ..default() }, "--optimize"),
        (Yolov5ExportOptions { keras: true, ..default() }, "--keras"),
        (Yolov5ExportOptions { int8: true, ..default() }, "--int8"),
        (Yolov5ExportOptions { per_tensor: true, ..default() }, "--per-tensor"),
        (Yolov5ExportOptions { mlmodel: true, ..default() }, "--mlmodel"),
        (Yolov5ExportOptions { cache: Some("c".to_owned()), ..default() }, "--cache"),
        (Yolov5ExportOptions { workspace: Some(4), ..default() }, "--workspace"),
    ] {
        let error = refused(&with(given));
        assert!(error.starts_with(option), "{option}: {error}");
    }
    let fixture = Fixture::new();
    let unfused = ExportOptions { no_fuse: true, ..formats(&["torch"]) };
    assert!(plan(&fixture, &unfused).unwrap().warnings[0].starts_with("--no-fuse has no effect"));
}

#[test]
fn onnx_has_the_operations_of_opset_17_for_one_size() {
    let fixture = Fixture::new();
    let settings = |options: &ExportOptions| task(&plan(&fixture, options).unwrap()).onnx;
    let default = settings(&formats(&["onnx"]));
    assert_eq!((default.opset, default.dynamic), (17, false));
    let other = settings(&ExportOptions { opset: Some(12), dynamic: true, ..formats(&["onnx"]) });
    assert_eq!((other.opset, other.dynamic), (12, true));
    for opset in [5, 18] {
        let error = refused(&ExportOptions { opset: Some(opset), ..formats(&["onnx"]) });
        assert!(error.starts_with(&format!("--opset {opset} is not one of 12 to 17; ")), "{error}");
    }
    assert_eq!(
        refused(&ExportOptions { dynamic: true, ..best() }),
        "--dynamic is for ONNX, which --format does not name; add --format onnx, or omit --dynamic"
    );
    assert!(refused(&ExportOptions { opset: Some(12), ..best() }).starts_with("--opset is for ONNX"));
    assert_eq!(
        refused(&ExportOptions { dynamic: true, half: true, ..formats(&["onnx"]) }),
        "--half contradicts --dynamic, as in YOLOv5; export half precision for one size, or single precision for any"
    );
}

#[test]
fn suppression_is_for_onnx_and_has_yolov5s_settings() {
    let fixture = Fixture::new();
    let onnx = |change: fn(&mut ExportOptions)| {
        let mut options = formats(&["onnx"]);
        change(&mut options);
        options
    };
    let nms = |options: &ExportOptions| task(&plan(&fixture, options).unwrap()).onnx.nms;
    assert_eq!(nms(&onnx(|_| ())), None);
    let default =
        OnnxNms { agnostic: false, topk_per_class: 100, topk_all: 100, iou_thres: 0.45, conf_thres: 0.25 };
    assert_eq!(nms(&onnx(|options| options.nms = true)), Some(default));
    let agnostic = onnx(|options| options.agnostic_nms = true);
    assert_eq!(nms(&agnostic), Some(OnnxNms { agnostic: true, ..default }), "it implies --nms, as in YOLOv5");
    let changed = onnx(|options| {
        options.nms = true;
        (options.topk_all, options.topk_per_class) = (Some(9), Some(3));
        (options.iou_thres, options.conf_thres) = (Some(0.6), Some(0.1));
    });
    let expected = OnnxNms { topk_per_class: 3, topk_all: 9, iou_thres: 0.6, conf_thres: 0.1, ..default };
    assert_eq!(nms(&changed), Some(expected));

    let torchscript = ExportOptions { nms: true, ..formats(&["torchscript"]) };
    assert!(refused(&torchscript).starts_with("--nms is for ONNX, which --format does not name"));
    // Nothing is written of a list in which one format would silently lack what was asked for.
    let both = |agnostic_nms| ExportOptions { nms: true, agnostic_nms, ..formats(&["onnx", "torchscript"]) };
    assert_eq!(
        refused(&both(false)),
        "--nms cannot be applied to torchscript, which yolo writes without suppression; \
         export torchscript on its own, without --nms"
    );
    let implied = ExportOptions { nms: false, ..both(true) };
    assert!(refused(&implied).starts_with("--agnostic-nms cannot be applied to torchscript"));
    assert!(nms(&ExportOptions { nms: true, ..formats(&["onnx", "safetensors"]) }).is_some());
    let alone = onnx(|options| options.topk_all = Some(9));
    assert_eq!(
        refused(&alone),
        "--topk-all is for suppression inside an ONNX file; add --nms, or omit --topk-all"
    );
    let contradiction = ExportOptions { topk_per_class: Some(9), ..agnostic };
    assert!(refused(&contradiction).starts_with("--topk-per-class contradicts --agnostic-nms"));
    let none = ExportOptions { topk_all: Some(0), ..changed.clone() };
    assert!(refused(&none).starts_with("--topk-all 0 is not a number from 1 to 30000"));
    let overlap = ExportOptions { iou_thres: Some(1.5), ..changed };
    assert!(refused(&overlap).starts_with("--iou-thres 1.5 is not a number from 0 to 1"));
}
