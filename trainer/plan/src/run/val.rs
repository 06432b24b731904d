//! The plan of `yolo val`: options over YOLOv5's defaults (spec §12), one rank, one device.

use std::path::Path;

use super::weights::{self, Weights};
use super::{
    PLAN_VERSION, PlanContext, Planned, Planning, RunPlan, Split, Task, ValMode, ValTask, defaults, folder,
    need,
};
use crate::dataset::DataSet;
use crate::device::{self, Device};
use crate::error::PlanError;
use crate::options::ValOptions;

/// YOLOv5's default weights.
const WEIGHTS: &str = "yolov5s.pt";
/// Images per step.
const BATCH: usize = 32;
/// Confidence, IoU and detections of an accuracy measurement (spec §9).
const ACCURACY: (f64, f64, usize) = (0.001, 0.6, 300);
/// Confidence and IoU of a speed measurement (spec §9).
const SPEED: (f64, f64) = (0.25, 0.45);

/// Plans a validation. A built-in data set must exist already.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_val(options: &ValOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    let PlanContext { inventory, places, .. } = context;
    let mut warnings = Vec::new();
    let data_argument = options.data.as_deref().unwrap_or(defaults::DATA);
    if options.dnn {
        warnings.push(
            "--dnn selects the engine for ONNX files and has no effect on .pt and .safetensors".to_owned(),
        );
    }
    let choice = device::choose(options.device.as_deref(), None, inventory)?;
    let batch = options.batch_size.unwrap_or(BATCH);
    let batch = crate::batch::check(i64::try_from(batch).unwrap_or(i64::MAX), 1)?;
    let (split, mode) = match options.task.as_deref().unwrap_or("val") {
        "train" => (Split::Train, ValMode::Accuracy),
        "val" => (Split::Val, ValMode::Accuracy),
        "test" => (Split::Test, ValMode::Accuracy),
        "speed" => (Split::Val, ValMode::Speed),
        "study" => (Split::Val, ValMode::Study),
        other => {
            return Err(PlanError::new(format!(
                "--task {other} is not one of train, val, test, speed and study"
            )));
        }
    };
    let (conf, iou, max_det) = ACCURACY;
    let (conf_thres, iou_thres) = match mode {
        ValMode::Speed => SPEED,
        _ => (options.conf_thres.unwrap_or(conf), options.iou_thres.unwrap_or(iou)),
    };
    for (option, value) in [("--conf-thres", conf_thres), ("--iou-thres", iou_thres)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(PlanError::new(format!("{option} {value} is not a number from 0 to 1")));
        }
    }
    let max_det = options.max_det.unwrap_or(max_det);
    if max_det == 0 {
        return Err(PlanError::new("--max-det 0 would discard every detection: it must be at least 1"));
    }

    let mut missing: Vec<_> = need::data_set(data_argument, places)?.into_iter().collect();
    let mut weights = Vec::new();
    let default_weights = [WEIGHTS.to_owned()];
    let arguments = if options.weights.is_empty() { &default_weights } else { options.weights.as_slice() };
    for argument in arguments {
        match weights::find(argument, context)? {
            Weights::File(path) => weights.push(path),
            Weights::Missing(need) => missing.push(need),
        }
    }
    if !missing.is_empty() {
        return Ok(Planning::Missing(missing));
    }

    let (mut data, data_warnings) = DataSet::load_with_warnings(data_argument, places)?;
    warnings.extend(data_warnings);
    let images = match split {
        Split::Train => &data.train,
        Split::Val => &data.val,
        Split::Test => &data.test,
    };
    if images.is_empty() {
        return Err(PlanError::new(format!(
            "the data set {} has no test images for --task test",
            data.yaml.display()
        ))
        .with_hint("add `test:` with the folder of its images to the yaml"));
    }
    if options.single_cls {
        super::merge_classes(&mut data);
    }
    let stride = weights.iter().map(|path| weights::stride(path)).max().unwrap_or(0).max(32);
    let size = options.imgsz.unwrap_or(defaults::of(data_argument).image_size);
    let image_size = super::image_size(size, stride, 0, &mut warnings)?;
    let on_cpu = choice.devices == [Device::Cpu];
    if options.half && on_cpu {
        warnings.push("--half works on GPUs only: validating in fp32 on the CPU".to_owned());
    }
    let ranks = super::ranks(choice.devices, inventory);
    let project = options.project.as_deref().unwrap_or(Path::new("runs/val"));
    let name = options.name.as_deref().unwrap_or("exp");
    let plan = RunPlan {
        version: PLAN_VERSION,
        program: super::program(),
        run_dir: folder::increment(&places.working_dir.join(project), name, options.exist_ok)?,
        task: Task::Val(Box::new(ValTask {
            data,
            image_size,
            batch,
            workers: super::workers(options.workers, &ranks, batch, inventory),
            weights,
            conf_thres,
            iou_thres,
            max_det,
            split,
            mode,
            single_cls: options.single_cls,
            augment: options.augment,
            verbose: options.verbose,
            // --save-hybrid implies --save-txt: the joined labels are written as text.
            save_txt: options.save_txt || options.save_hybrid,
            save_hybrid: options.save_hybrid,
            save_conf: options.save_conf,
            save_json: options.save_json,
            half: options.half && !on_cpu,
        })),
        ranks,
    };
    let notes = choice.note.into_iter().collect();
    Ok(Planning::Ready(Box::new(Planned { plan, warnings, notes })))
}
