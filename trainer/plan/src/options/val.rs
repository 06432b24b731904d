//! The options of `yolo val`. A new one is a field here, a field of
//! [`ValTask`](crate::run::ValTask), and the code that uses it.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};
use serde::Serialize;

use crate::number::{decimal, whole};

/// The options of `yolo val`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct ValOptions {
    /// Data set: a YOLOv5 YAML file, or shapes, coco128, coco8, VOC or coco; downloaded if missing [default: coco128]
    #[arg(long, value_name = "YAML", value_hint = ValueHint::FilePath, help_heading = "Model and data")]
    pub data: Option<String>,
    /// Weights to evaluate: a file, a URL or a pretrained model; several are an ensemble, or with --task speed and study evaluated one by one [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", num_args = 1.., action = ArgAction::Append, value_hint = ValueHint::FilePath, help_heading = "Model and data")]
    pub weights: Vec<String>,
    /// Image size in pixels [default: 640]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, visible_aliases = ["img", "img-size"], value_name = "PIXELS", help_heading = "Model and data")]
    pub imgsz: Option<usize>,
    /// Treat all classes as a single class
    #[arg(long, help_heading = "Model and data")]
    pub single_cls: bool,

    /// Split to evaluate (train, val or test), speed to measure latency, or study to sweep image sizes [default: val]
    #[arg(long, value_name = "TASK", help_heading = "Validation")]
    pub task: Option<String>,
    /// Images per batch; with several devices, each takes whole batches [default: 32]
    #[arg(long = "batch", value_parser = whole::<usize>, allow_negative_numbers = true, visible_alias = "batch-size", value_name = "N", help_heading = "Validation")]
    pub batch_size: Option<usize>,
    /// Confidence threshold below which detections are discarded [default: 0.001]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "CONFIDENCE", help_heading = "Validation")]
    pub conf_thres: Option<f64>,
    /// IoU threshold for non-maximum suppression; published COCO results use 0.65 [default: 0.6]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "IOU", help_heading = "Validation")]
    pub iou_thres: Option<f64>,
    /// Maximum number of detections per image [default: 300]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Validation")]
    pub max_det: Option<usize>,
    /// Use test-time augmentation (scaled and flipped copies of each image)
    #[arg(long, help_heading = "Validation")]
    pub augment: bool,
    /// Use half precision (GPU only)
    #[arg(long, help_heading = "Validation")]
    pub half: bool,
    /// Accepted for compatibility with YOLOv5 scripts; has no effect on .pt and .safetensors weights
    #[arg(long, help_heading = "Validation")]
    pub dnn: bool,
    /// Print metrics for every class, even if there are many
    #[arg(long, help_heading = "Validation")]
    pub verbose: bool,

    /// The devices that share the images: GPU indices as listed by nvidia-smi (0 or 0,1,3), UUIDs (GPU-…, MIG-…) or their beginnings, all, cpu, or cpu,cpu for two ranks [default: a usable GPU, else cpu]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE", help_heading = "Devices")]
    pub device: Option<String>,
    /// Data loader threads [default: the number of CPU cores; no more than images in a batch]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Devices")]
    pub workers: Option<usize>,

    /// Save detections as YOLO label files
    #[arg(long, help_heading = "Output")]
    pub save_txt: bool,
    /// Save labels and detections together as YOLO label files
    #[arg(long, help_heading = "Output")]
    pub save_hybrid: bool,
    /// Include confidences in the saved label files
    #[arg(long, help_heading = "Output")]
    pub save_conf: bool,
    /// Save detections in COCO's JSON format, and print the numbers of COCO's evaluation
    #[arg(long, help_heading = "Output")]
    pub save_json: bool,
    /// Folder that contains the validation folders [default: runs/val]
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub project: Option<PathBuf>,
    /// Name of the validation folder [default: exp, exp2, …]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub name: Option<String>,
    /// Reuse the validation folder if it exists
    #[arg(long, help_heading = "Output")]
    pub exist_ok: bool,
}
