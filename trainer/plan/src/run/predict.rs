//! The task and the plan of `yolo predict`: options over the defaults of YOLOv5's detect.py (spec §12). Several
//! ranks share the pictures and the videos.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source_names::{Picture, Sources};
use super::sources;
use super::val::{connection, half_on_cpu};
use super::video::Video;
use super::{PlanContext, Planning, Ranks, Task, folder, image_size, weights};
use crate::batch;
use crate::dataset::Description;
use crate::device::{self, Device};
use crate::error::PlanError;
use crate::options::PredictOptions;

/// The longer side of a picture in the network.
const IMAGE_SIZE: usize = 640;
/// Confidence, IoU and detections per picture (spec §12).
const THRESHOLDS: (f64, f64, usize) = (0.25, 0.45, 1000);

/// A search for objects in pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, with its default applied")]
pub struct PredictTask {
    /// The pictures, in the order of their sources.
    pub pictures: Vec<Picture>,
    /// The videos, cameras and streams, which come after the pictures.
    pub videos: Vec<Video>,
    /// Of so many frames of a video, the last is used.
    pub vid_stride: usize,
    /// One file, or those of an ensemble.
    pub weights: Vec<PathBuf>,
    /// Class names for weights that have none; empty if `--data` is not given.
    pub names: Vec<String>,
    /// Height and width that a picture is fitted into, in pixels.
    pub image_size: [usize; 2],
    pub batch: usize,
    /// Threads per rank that read and write.
    pub workers: usize,
    pub conf_thres: f64,
    pub iou_thres: f64,
    pub max_det: usize,
    /// The classes to keep; `None` for all.
    pub classes: Option<Vec<usize>>,
    pub agnostic_nms: bool,
    pub augment: bool,
    pub half: bool,
    /// What the text files hold of each box; `None` without `--save-txt`.
    pub save_txt: Option<SavedBoxes>,
    pub save_conf: bool,
    pub save_csv: bool,
    pub save_crop: bool,
    /// Whether pictures with their boxes are written: not with `--nosave`.
    pub save: bool,
    /// Pixels; `None` if it follows the size of the picture.
    pub line_thickness: Option<usize>,
    pub hide_labels: bool,
    pub hide_conf: bool,
    pub visualize: bool,
    /// The height and width in pixels that a picture may have in the terminal; `None` if it is not shown there.
    #[serde(default)]
    pub view_img: Option<[usize; 2]>,
}

/// How text files describe a box: `--save-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SavedBoxes {
    /// Center and size as fractions of the picture, as in label files.
    CenterAndSize,
    /// Left, top, right and bottom in pixels, as in Pascal VOC.
    Corners,
}

/// Plans a prediction. `listed` is what stdin held, if a source is `-`; `screen` the height and width in pixels that
/// pictures may have in the terminal, for `--view-img`.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_predict(
    options: &PredictOptions,
    listed: Option<&str>,
    screen: Option<[usize; 2]>,
    context: &PlanContext,
) -> Result<Planning, PlanError> {
    let PlanContext { inventory, places, .. } = context;

    // Mistakes that the options alone show are reported before anything is fetched.
    refuse(options)?;
    let choice = device::choose(options.device.as_deref(), None, inventory)?;
    let batch = batch::check(i64::try_from(options.batch_size.unwrap_or(1)).unwrap_or(i64::MAX), 1)?;
    let sides = sides(&options.imgsz)?;
    let (conf_thres, iou_thres, max_det) = super::val::checked_thresholds(
        options.conf_thres.unwrap_or(THRESHOLDS.0),
        options.iou_thres.unwrap_or(THRESHOLDS.1),
        options.max_det.unwrap_or(THRESHOLDS.2),
        THRESHOLDS.2,
    )?;
    let saved = saved_boxes(options.save_format.as_deref())?;
    let run_dir = folder::of_run(
        options.project.as_deref().unwrap_or(Path::new("runs/detect")),
        options.name.as_deref(),
        options.exist_ok,
        places,
    )?;
    let names = match &options.data {
        Some(data) => Description::read(data, places)?.names,
        None => Vec::new(),
    };
    let sources: Vec<&str> = options.paths.iter().chain(&options.source).map(String::as_str).collect();
    let mut missing = Vec::new();
    let Sources { pictures, videos } = sources::find(&sources, listed, context, &mut missing)?;
    let mut files = pictures.iter().map(|it| &it.path).chain(videos.iter().map(|it| &it.source));
    if !options.nosave && files.any(|file| file.parent() == Some(&run_dir)) {
        return Err(PlanError::usage(format!(
            "the files with boxes would replace those in {}, which are to be read",
            run_dir.display()
        ))
        .with_hint("give another --name or --project, or --nosave"));
    }

    let weights = weights::find_all(&options.weights, context, &mut missing)?;
    if !missing.is_empty() {
        return Ok(Planning::Missing(missing));
    }
    let mut warnings = without_effect(options);
    if options.vid_stride.is_some() && videos.is_empty() {
        warnings.push("--vid-stride has no effect without videos".to_owned());
    }
    let stride = weights::largest_stride_of(&weights);
    let image_size = sides.map(|side| image_size::rounded(side, stride, 0, &mut warnings));
    warnings.dedup();
    if options.half && choice.devices.contains(&Device::Cpu) {
        return Err(half_on_cpu(options.device.as_deref()));
    }
    let connection = connection(&choice.devices, inventory)?;
    let notes = choice.note.into_iter().chain(connection.notes.clone()).collect();
    let ranks = Ranks::new(choice.devices, connection, None, inventory);
    let most = (inventory.cores / ranks.on_this_machine().max(1)).max(1);
    let workers = options.workers.unwrap_or(most).clamp(1, most);

    let task = PredictTask {
        pictures,
        videos,
        vid_stride: options.vid_stride.unwrap_or(1),
        weights,
        names,
        image_size,
        batch,
        workers,
        conf_thres,
        iou_thres,
        max_det,
        classes: options.classes.clone(),
        agnostic_nms: options.agnostic_nms,
        augment: options.augment,
        half: options.half,
        save_txt: options.save_txt.then_some(saved),
        save_conf: options.save_conf,
        save_csv: options.save_csv,
        save_crop: options.save_crop,
        save: !options.nosave,
        line_thickness: options.line_thickness,
        hide_labels: options.hide_labels,
        hide_conf: options.hide_conf,
        visualize: options.visualize,
        view_img: screen.filter(|_| options.view_img),
    };
    Ok(Planning::ready(ranks, run_dir, Task::Predict(Box::new(task)), warnings, notes))
}

/// Refuses options that make no sense.
fn refuse(options: &PredictOptions) -> Result<(), PlanError> {
    if options.vid_stride == Some(0) {
        return Err(PlanError::usage("--vid-stride 0 would use no frame: it must be at least 1")
            .with_hint("use 1 for every frame, 2 for every other one"));
    }
    if options.visualize && options.weights.len() > 1 {
        return Err(PlanError::usage(
            "--visualize shows the layers of one model, but --weights names several files",
        )
        .with_hint(format!("give one, such as --weights {}", options.weights[0])));
    }
    if options.visualize && options.augment {
        return Err(PlanError::usage(
            "--visualize contradicts --augment, with which the model sees each picture three times",
        )
        .with_hint("omit one of them"));
    }
    if options.line_thickness == Some(0) {
        return Err(PlanError::usage("--line-thickness 0 would draw nothing: it must be at least 1")
            .with_hint("use --nosave to write no pictures"));
    }
    Ok(())
}

/// Height and width of `--imgsz`.
fn sides(option: &[usize]) -> Result<[usize; 2], PlanError> {
    let sides = match *option {
        [] => [IMAGE_SIZE; 2],
        [side] => [side; 2],
        [.., height, width] => [height, width],
    };
    for side in sides {
        image_size::check(side)?;
    }
    Ok(sides)
}

fn saved_boxes(option: Option<&str>) -> Result<SavedBoxes, PlanError> {
    match option.unwrap_or("0") {
        "0" => Ok(SavedBoxes::CenterAndSize),
        "1" => Ok(SavedBoxes::Corners),
        other => Err(PlanError::usage(format!("--save-format {other} is neither 0 nor 1"))
            .with_hint("use 0 for center and size as fractions, 1 for corners in pixels")),
    }
}

/// Warnings about options that change nothing in this run.
fn without_effect(options: &PredictOptions) -> Vec<String> {
    let mut warnings = Vec::new();
    for (given, option) in
        [(options.save_conf, "--save-conf"), (options.save_format.is_some(), "--save-format")]
    {
        if given && !options.save_txt {
            warnings.push(format!("{option} has no effect without --save-txt"));
        }
    }
    for (given, option) in [
        (options.line_thickness.is_some(), "--line-thickness"),
        (options.hide_labels, "--hide-labels"),
        (options.hide_conf, "--hide-conf"),
    ] {
        if given && options.nosave {
            warnings.push(format!("{option} has no effect with --nosave"));
        }
    }
    if options.hide_conf && options.hide_labels {
        warnings.push("--hide-conf has no effect with --hide-labels".to_owned());
    }
    if options.update {
        warnings.push(
            "--update has no effect: yolo changes no weights file, and needs no updated one".to_owned(),
        );
    }
    if options.dnn {
        warnings.push(super::val::DNN.to_owned());
    }
    warnings
}
