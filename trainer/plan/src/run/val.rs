//! The task and the plan of `yolo val`: options over YOLOv5's defaults (spec §12). Several ranks share
//! the batches.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::planning::need_data_set;
use super::{PlanContext, Planning, Ranks, Task, defaults, folder, image_size, weights};
use crate::backend::Connection;
use crate::batch;
use crate::dataset::DataSet;
use crate::device::{self, Device, Inventory};
use crate::error::PlanError;
use crate::options::{BackendOption, ValOptions};

/// Images per step.
pub(super) const BATCH: usize = 32;
/// Confidence, IoU and detections of an accuracy measurement (spec §9).
const ACCURACY: (f64, f64, usize) = (MAX_CONFIDENCE_FOR_METRICS, 0.6, 300);
/// The highest confidence threshold with which metrics are those of the model (spec §9): also detections of low
/// confidence are points of the curves from which mAP is computed.
const MAX_CONFIDENCE_FOR_METRICS: f64 = 0.001;
/// Confidence and IoU of a speed measurement (spec §9).
const SPEED: (f64, f64) = (0.25, 0.45);

/// The warning about `--dnn`.
pub(super) const DNN: &str =
    "--dnn selects the engine for ONNX files and has no effect on .pt and .safetensors";

/// A validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, with its default applied")]
pub struct ValTask {
    /// The data set, resolved to paths that exist.
    pub data: DataSet,
    /// Side of the square network input in pixels, a multiple of the largest stride.
    pub image_size: usize,
    /// Images per batch. Each batch is validated by one rank.
    pub batch: usize,
    /// Loader threads per rank.
    pub workers: usize,
    pub weights: Vec<PathBuf>,
    pub conf_thres: f64,
    pub iou_thres: f64,
    pub max_det: usize,
    pub split: Split,
    pub mode: ValMode,
    pub single_cls: bool,
    pub augment: bool,
    pub verbose: bool,
    pub save_txt: bool,
    pub save_hybrid: bool,
    pub save_conf: bool,
    pub save_json: bool,
    pub half: bool,
}

/// Which images of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Split {
    Train,
    Val,
    Test,
}

/// What a validation measures (spec §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValMode {
    /// Accuracy at one image size.
    Accuracy,
    /// Speed: confidence 0.25, IoU 0.45, square images.
    Speed,
    /// Accuracy at sizes 256 to 1536 in steps of 128.
    Study,
}

/// Plans a validation.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_val(options: &ValOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    let PlanContext { inventory, places, .. } = context;
    let data_argument = options.data.as_deref().unwrap_or(defaults::DATA);

    // Mistakes that the options alone show are reported before anything is fetched.
    let choice = device::choose(options.device.as_deref(), None, inventory)?;
    let batch = batch::check(i64::try_from(options.batch_size.unwrap_or(BATCH)).unwrap_or(i64::MAX), 1)?;
    let image_size = image_size::check(options.imgsz.unwrap_or(defaults::of(data_argument).image_size))?;
    let (split, mode) = split_and_mode(options.task.as_deref())?;
    let (conf_thres, iou_thres, max_det) = thresholds(options, mode)?;
    let run_dir = folder::of_run(
        options.project.as_deref().unwrap_or(Path::new("runs/val")),
        options.name.as_deref(),
        options.exist_ok,
        places,
    )?;

    let mut missing = Vec::new();
    need_data_set(data_argument, context, &mut missing)?;
    let weights = weights::find_all(&options.weights, context, &mut missing)?;
    if !missing.is_empty() {
        return Ok(Planning::Missing(missing));
    }

    let (data, mut warnings) = DataSet::load_for_run(data_argument, options.single_cls, places)?;
    has_images(&data, split)?;
    let stride = weights::largest_stride_of(&weights);
    let image_size = image_size::rounded(image_size, stride, 0, &mut warnings);
    let on_cpu = choice.devices.contains(&Device::Cpu);
    if options.half && on_cpu {
        return Err(half_on_cpu(options.device.as_deref()));
    }
    warnings.extend(without_effect(options, mode));
    warnings.extend(misleading(options, conf_thres, mode));
    let connection = connection(&choice.devices, inventory)?;
    let thresholds = (mode == ValMode::Speed).then(|| {
        format!("--task speed measures time, with confidence {conf_thres} and IoU {iou_thres}: its accuracy is not that of the model")
    });
    let notes = choice.note.into_iter().chain(connection.notes.clone()).chain(thresholds).collect();
    let ranks = Ranks::new(choice.devices, connection, None, inventory);
    // Each rank loads whole batches.
    let workers = ranks.workers(options.workers, batch, inventory.cores);

    let task = ValTask {
        data,
        image_size,
        batch,
        workers,
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
        // As in YOLOv5, speed is measured in half precision where there is one.
        half: options.half || mode != ValMode::Accuracy && !on_cpu,
    };
    Ok(Planning::ready(ranks, run_dir, Task::Val(Box::new(task)), warnings, notes))
}

/// Ranks that validate or predict exchange only their results, which are in memory of the host.
pub(super) fn connection(devices: &[Device], inventory: &Inventory) -> Result<Connection, PlanError> {
    if devices.len() < 2 {
        return Ok(Connection::default());
    }
    Connection::choose(BackendOption::Gloo, None, devices, inventory)
}

/// What `--task` measures, and on which images.
pub(super) fn split_and_mode(task: Option<&str>) -> Result<(Split, ValMode), PlanError> {
    Ok(match task.unwrap_or("val") {
        "train" => (Split::Train, ValMode::Accuracy),
        "val" => (Split::Val, ValMode::Accuracy),
        "test" => (Split::Test, ValMode::Accuracy),
        "speed" => (Split::Val, ValMode::Speed),
        "study" => (Split::Val, ValMode::Study),
        other => {
            return Err(PlanError::usage(format!(
                "--task {other} is not one of train, val, test, speed and study"
            ))
            .with_hint("omit it to measure the accuracy on the validation images"));
        }
    })
}

/// Confidence, IoU, and the most detections per image.
pub(super) fn thresholds(options: &ValOptions, mode: ValMode) -> Result<(f64, f64, usize), PlanError> {
    let (conf, iou, max_det) = ACCURACY;
    let (conf, iou) = match mode {
        ValMode::Speed => SPEED,
        ValMode::Accuracy | ValMode::Study => {
            (options.conf_thres.unwrap_or(conf), options.iou_thres.unwrap_or(iou))
        }
    };
    checked_thresholds(conf, iou, options.max_det.unwrap_or(max_det), max_det)
}

/// The thresholds, if they are possible. `default` is the default of `max_det`.
pub(super) fn checked_thresholds(
    conf: f64,
    iou: f64,
    max_det: usize,
    default: usize,
) -> Result<(f64, f64, usize), PlanError> {
    for (option, value) in [("--conf-thres", conf), ("--iou-thres", iou)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(PlanError::usage(format!("{option} {value} is not a number from 0 to 1"))
                .with_hint(format!("give such a number, or omit {option} for its default")));
        }
    }
    if max_det == 0 {
        return Err(PlanError::usage("--max-det 0 would discard every detection: it must be at least 1")
            .with_hint(format!("omit it for at most {default} detections per image")));
    }
    Ok((conf, iou, max_det))
}

/// Only the test split of a data set may be empty.
fn has_images(data: &DataSet, split: Split) -> Result<(), PlanError> {
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
        .with_hint("add `test:` with the folder of its images to the YAML file"));
    }
    Ok(())
}

/// Half precision has no fast operations on a CPU, and some not at all.
pub(super) fn half_on_cpu(device: Option<&str>) -> PlanError {
    let because = "half precision needs a CUDA device, because a CPU is slower with it";
    match device {
        Some(device) => PlanError::usage(format!("--half contradicts --device {device}: {because}"))
            .with_hint("omit --half, or give a GPU with --device"),
        None => PlanError::new(format!("--half cannot be used, because no GPU is usable here: {because}"))
            .with_hint("omit --half; `yolo doctor` says why no GPU is usable"),
    }
}

/// Warnings about options that change nothing in this run.
fn without_effect(options: &ValOptions, mode: ValMode) -> Vec<String> {
    let mut warnings = Vec::new();
    if options.save_conf && !options.save_txt && !options.save_hybrid {
        warnings.push("--save-conf has no effect without --save-txt".to_owned());
    }
    if options.imgsz.is_some() && matches!(mode, ValMode::Study) {
        warnings.push(
            "--imgsz has no effect with --task study, which measures sizes from 256 to 1536".to_owned(),
        );
    }
    if options.dnn {
        warnings.push(DNN.to_owned());
    }
    warnings
}

/// Options with which precision, recall and mAP say little about the model.
fn misleading(options: &ValOptions, conf_thres: f64, mode: ValMode) -> Vec<String> {
    let mut warnings = Vec::new();
    if options.save_hybrid {
        warnings.push(
            "--save-hybrid adds the labels to the detections, so the metrics are those of the labels and not of the model"
                .to_owned(),
        );
    }
    if mode != ValMode::Speed && conf_thres > MAX_CONFIDENCE_FOR_METRICS {
        warnings.push(format!(
            "--conf-thres {conf_thres} leaves out detections that the metrics need, so they are too low; use at most \
             {MAX_CONFIDENCE_FOR_METRICS}, the default, to measure accuracy"
        ));
    }
    warnings
}
