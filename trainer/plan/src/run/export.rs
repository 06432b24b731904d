//! The task and the plan of `yolo export`: one weights file in other formats. Options over YOLOv5's defaults
//! (spec §12). It runs as one rank, because what was written is compared with the network.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::export_formats::ExportFormat;
use super::{PlanContext, Planning, Ranks, Task, image_size, weights};
use crate::backend::Connection;
use crate::batch;
use crate::device;
use crate::error::PlanError;
use crate::options::{ExportOptions, Yolov5ExportOptions};

/// YOLOv5's default weights.
const WEIGHTS: &str = "yolov5s.pt";
/// Side of the input in pixels.
const IMAGE_SIZE: usize = 640;

/// The version of ONNX's operations that is written, and those that can be: operations changed between others.
const OPSET: usize = 17;
const OPSETS: std::ops::RangeInclusive<usize> = 12..=17;

/// YOLOv5's settings for suppression inside a graph.
const NMS_CONFIDENCE: f64 = 0.25;
const NMS_IOU: f64 = 0.45;
const NMS_TOPK: usize = 100;

/// The possible numbers of detections.
const TOPK: std::ops::RangeInclusive<usize> = 1..=30_000;

/// An export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportTask {
    /// The weights to export.
    pub weights: PathBuf,
    /// The files to write, in the order in which they are written.
    pub files: Vec<ExportFile>,
    /// Height and width of the input in pixels.
    pub image_size: [usize; 2],
    /// Images per batch of the input.
    pub batch: usize,
    /// Write half precision.
    pub half: bool,
    /// Fold batch normalizations into their convolutions, where the format has operations.
    pub fuse: bool,
    /// What ONNX files are like.
    pub onnx: OnnxSettings,
}

/// What an ONNX file is like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OnnxSettings {
    /// The version of the operations.
    pub opset: i64,
    /// Batch, height and width of the input may be any.
    pub dynamic: bool,
    /// Suppression inside the graph.
    pub nms: Option<OnnxNms>,
}

/// Suppression inside an ONNX graph.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OnnxNms {
    /// Boxes of different classes suppress each other.
    pub agnostic: bool,
    /// Most detections of a class per image.
    pub topk_per_class: usize,
    /// Rows for detections per image.
    pub topk_all: usize,
    /// IoU above which the less confident of two boxes is dropped.
    pub iou_thres: f64,
    /// Confidence that a detection must exceed.
    pub conf_thres: f64,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportFile {
    /// Its format.
    pub format: ExportFormat,
    /// Where it goes.
    pub path: PathBuf,
}

/// Plans an export. It leaves no run folder: the folder of its plan is the caller's.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_export(options: &ExportOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    let PlanContext { inventory, places, .. } = context;
    let formats = formats(options)?;
    let onnx = onnx(options, &formats)?;
    let mut warnings = of_yolov5(&options.yolov5, &formats)?;
    let choice = device::choose(Some(options.device.as_deref().unwrap_or("cpu")), None, inventory)?;
    if choice.devices.len() > 1 {
        return Err(PlanError::usage(format!(
            "--device {} names {} devices, but a network is exported on one",
            options.device.as_deref().unwrap_or_default(),
            choice.devices.len()
        ))
        .with_hint("omit --device to export on the CPU"));
    }
    let batch = batch::check(i64::try_from(options.batch_size.unwrap_or(1)).unwrap_or(i64::MAX), 1)?;
    let image_size = match *options.imgsz.as_slice() {
        [] => [IMAGE_SIZE; 2],
        [side] => [side; 2],
        [height, width, ..] => [height, width],
    };
    image_size.into_iter().try_for_each(|side| image_size::check(side).map(drop))?;
    if options.no_fuse && !formats.iter().any(|format| format.has_operations()) {
        warnings.push("--no-fuse has no effect: files without operations always have all tensors".to_owned());
    }

    let argument = options.weights.as_deref().unwrap_or(WEIGHTS);
    let mut missing = Vec::new();
    let Some(weights) = weights::find(argument, context, &mut missing)? else {
        return Ok(Planning::Missing(missing));
    };
    let stride = weights::largest_stride(&weights);
    let image_size = image_size.map(|side| image_size::rounded(side, stride, 0, &mut warnings));
    warnings.dedup();
    // What was fetched is in a folder of `yolo`, where nobody would look for the files.
    let named = places.working_dir.join(argument);
    let folder = match named.is_file() {
        true => named.parent().map(Path::to_owned).unwrap_or_default(),
        false => places.working_dir.clone(),
    };
    let files = formats
        .into_iter()
        .map(|format| {
            let path = folder.join(format.file_name(&named));
            match path == named {
                false => Ok(ExportFile { format, path }),
                true => Err(PlanError::usage(format!(
                    "--format {} would replace the weights {} themselves",
                    format.name(),
                    path.display()
                ))
                .with_hint("give another format, or rename the weights")),
            }
        })
        .collect::<Result<Vec<_>, PlanError>>()?;
    let ranks = Ranks::new(choice.devices, Connection::default(), None, inventory);
    let task =
        ExportTask { weights, files, image_size, batch, half: options.half, fuse: !options.no_fuse, onnx };
    Ok(Planning::ready(ranks, PathBuf::new(), Task::Export(task), warnings, Vec::new()))
}

/// What ONNX files are like.
///
/// # Errors
/// When an option contradicts another, or no ONNX file is written.
fn onnx(options: &ExportOptions, formats: &[ExportFormat]) -> Result<OnnxSettings, PlanError> {
    let given = [
        ("--dynamic", options.dynamic),
        ("--opset", options.opset.is_some()),
        ("--nms", options.nms),
        ("--agnostic-nms", options.agnostic_nms),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given)
        && !formats.contains(&ExportFormat::Onnx)
    {
        return Err(PlanError::usage(format!("{option} is for ONNX, which --format does not name"))
            .with_hint(format!("add --format onnx, or omit {option}")));
    }
    // A reader of both files would expect detections from both. Files of tensors have no outputs to suppress.
    if let Some(option) = [("--nms", options.nms), ("--agnostic-nms", options.agnostic_nms)]
        .into_iter()
        .find_map(|(option, given)| given.then_some(option))
        && formats.contains(&ExportFormat::TorchScript)
    {
        return Err(PlanError::usage(format!(
            "{option} cannot be applied to torchscript, which yolo writes without suppression"
        ))
        .with_hint(format!("export torchscript on its own, without {option}")));
    }
    let opset = options.opset.unwrap_or(OPSET);
    if !OPSETS.contains(&opset) {
        let (first, last) = (OPSETS.start(), OPSETS.end());
        return Err(PlanError::usage(format!("--opset {opset} is not one of {first} to {last}"))
            .with_hint(format!("omit it for {OPSET}; converters of ONNX make other versions from that")));
    }
    if options.dynamic && options.half {
        return Err(PlanError::usage("--half contradicts --dynamic, as in YOLOv5")
            .with_hint("export half precision for one size, or single precision for any"));
    }
    Ok(OnnxSettings { opset: opset as i64, dynamic: options.dynamic, nms: onnx_nms(options)? })
}

/// Suppression inside the graph, if it is asked for.
///
/// # Errors
/// When a number is impossible, or belongs to suppression that is not asked for.
fn onnx_nms(options: &ExportOptions) -> Result<Option<OnnxNms>, PlanError> {
    let agnostic = options.agnostic_nms;
    let given = [
        ("--topk-per-class", options.topk_per_class.is_some()),
        ("--topk-all", options.topk_all.is_some()),
        ("--iou-thres", options.iou_thres.is_some()),
        ("--conf-thres", options.conf_thres.is_some()),
    ];
    if !options.nms && !agnostic {
        return match given.iter().find(|(_, given)| *given) {
            None => Ok(None),
            Some((option, _)) => {
                Err(PlanError::usage(format!("{option} is for suppression inside an ONNX file"))
                    .with_hint(format!("add --nms, or omit {option}")))
            }
        };
    }
    if agnostic && options.topk_per_class.is_some() {
        return Err(PlanError::usage(
            "--topk-per-class contradicts --agnostic-nms, which takes all classes as one",
        )
        .with_hint("use --topk-all"));
    }
    for (option, value) in [("--topk-per-class", options.topk_per_class), ("--topk-all", options.topk_all)] {
        if value.is_some_and(|value| !TOPK.contains(&value)) {
            let (least, most) = (TOPK.start(), TOPK.end());
            return Err(PlanError::usage(format!(
                "{option} {} is not a number from {least} to {most}",
                value.unwrap_or_default()
            ))
            .with_hint(format!("omit it for {NMS_TOPK}")));
        }
    }
    let (conf_thres, iou_thres, topk_all) = super::val::checked_thresholds(
        options.conf_thres.unwrap_or(NMS_CONFIDENCE),
        options.iou_thres.unwrap_or(NMS_IOU),
        options.topk_all.unwrap_or(NMS_TOPK),
        NMS_TOPK,
    )?;
    let topk_per_class = options.topk_per_class.unwrap_or(NMS_TOPK);
    Ok(Some(OnnxNms { agnostic, topk_per_class, topk_all, iou_thres, conf_thres }))
}

/// The formats of `--format`, each once.
fn formats(options: &ExportOptions) -> Result<Vec<ExportFormat>, PlanError> {
    if options.format.is_empty() {
        return Ok(vec![ExportFormat::TorchScript]);
    }
    let named: Vec<ExportFormat> = options
        .format
        .iter()
        .map(|name| ExportFormat::parse(name.trim()))
        .collect::<Result<_, PlanError>>()?;
    Ok(ExportFormat::ALL.into_iter().filter(|format| named.contains(format)).collect())
}

/// Warnings about options of YOLOv5 that have no effect here.
///
/// # Errors
/// When an option would change what is written.
fn of_yolov5(given: &Yolov5ExportOptions, formats: &[ExportFormat]) -> Result<Vec<String>, PlanError> {
    if given.optimize {
        return Err(PlanError::usage("--optimize: yolo does not write TorchScript for phones").with_hint(
            "export without it, and use torch.utils.mobile_optimizer.optimize_for_mobile on the file",
        ));
    }
    let names: Vec<String> = formats.iter().map(|format| format.name().to_owned()).collect();
    let written = yolo_base::format::list(&names);
    let others = [
        ("--keras", given.keras),
        ("--int8", given.int8),
        ("--per-tensor", given.per_tensor),
        ("--mlmodel", given.mlmodel),
        ("--cache", given.cache.is_some()),
        ("--workspace", given.workspace.is_some()),
    ];
    if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
        return Err(PlanError::usage(format!("{option} does not apply to the format {written}"))
            .with_hint(format!("omit {option}")));
    }
    let mut warnings = Vec::new();
    if given.data.is_some() {
        warnings.push("--data has no effect: the class names are those of the weights".to_owned());
    }
    if given.inplace {
        warnings.push("--inplace has no effect: the exported network is the same".to_owned());
    }
    if given.simplify {
        warnings.push("--simplify has no effect: the graph is written as simple as it gets".to_owned());
    }
    if given.verbose {
        warnings.push("--verbose has no effect".to_owned());
    }
    Ok(warnings)
}
