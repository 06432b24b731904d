//! The options of `yolo predict`, which are those of YOLOv5's detect.py. A new one is a field here, a field of
//! [`PredictTask`](crate::run::PredictTask), and the code that uses it.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};
use serde::Serialize;

use crate::number::{decimal, whole};

/// The options of `yolo predict`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct PredictOptions {
    /// Pictures and videos: files, folders, patterns such as 'photos/*.jpg', URLs, cameras by number, screen, .txt files with one of these per line, or - for such a list on stdin
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<String>,
    /// The same, as an option
    #[arg(long, value_name = "SOURCE", num_args = 1.., action = ArgAction::Append, value_hint = ValueHint::AnyPath)]
    pub source: Vec<String>,
    /// Weights: a file, a URL or a pretrained model; several are an ensemble, whose boxes are joined [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", num_args = 1.., action = ArgAction::Set, value_hint = ValueHint::FilePath)]
    pub weights: Vec<String>,
    /// Data set whose class names are used if the weights have none
    #[arg(long, value_name = "YAML", value_hint = ValueHint::FilePath)]
    pub data: Option<String>,
    /// Image size in pixels: the longer side, or height and width [default: 640]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, num_args = 1..=2, action = ArgAction::Set, visible_aliases = ["img", "img-size"], value_name = "PIXELS")]
    pub imgsz: Vec<usize>,
    /// Pictures per batch; only pictures of the same shape share one [default: 1]
    #[arg(long = "batch", value_parser = whole::<usize>, allow_negative_numbers = true, visible_alias = "batch-size", value_name = "N")]
    pub batch_size: Option<usize>,
    /// Confidence threshold below which detections are discarded [default: 0.25]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "CONFIDENCE")]
    pub conf_thres: Option<f64>,
    /// IoU threshold for non-maximum suppression [default: 0.45]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "IOU")]
    pub iou_thres: Option<f64>,
    /// Maximum number of detections per picture [default: 1000]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub max_det: Option<usize>,
    /// Keep only these classes, by number: --classes 0 2
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, num_args = 1.., action = ArgAction::Set, value_name = "CLASS")]
    pub classes: Option<Vec<usize>>,
    /// Suppress overlapping boxes of different classes, too
    #[arg(long)]
    pub agnostic_nms: bool,
    /// Use test-time augmentation (scaled and flipped copies of each picture)
    #[arg(long)]
    pub augment: bool,
    /// Use half precision (GPU only)
    #[arg(long)]
    pub half: bool,
    /// The devices that share the pictures: GPU indices as listed by nvidia-smi (0 or 0,1,3), UUIDs (GPU-…, MIG-…) or their beginnings, all, cpu, or cpu,cpu for two ranks [default: a usable GPU, else cpu]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Threads per device that read and write pictures [default: the number of CPU cores]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub workers: Option<usize>,
    /// Use every Nth frame of videos [default: 1]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub vid_stride: Option<usize>,
    /// Save detections as text files, one per picture or frame
    #[arg(long)]
    pub save_txt: bool,
    /// Boxes in the text files: 0 for center and size as fractions, 1 for corners in pixels [default: 0]
    #[arg(long, value_name = "FORMAT")]
    pub save_format: Option<String>,
    /// Include confidences in the text files
    #[arg(long)]
    pub save_conf: bool,
    /// Save the detections of all pictures as predictions.csv
    #[arg(long)]
    pub save_csv: bool,
    /// Save each detected object as a picture of its own
    #[arg(long)]
    pub save_crop: bool,
    /// Do not save the pictures and videos with their boxes
    #[arg(long)]
    pub nosave: bool,
    /// Show pictures and videos with their boxes in the terminal, if it can show pictures: kitty, iTerm2 or sixel
    #[arg(long)]
    pub view_img: bool,
    /// Save the output of each layer of the model: the first 32 channels as a picture, and all as a NumPy file
    #[arg(long)]
    pub visualize: bool,
    /// Width of the boxes' lines in pixels [default: follows the size of the picture]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "PIXELS")]
    pub line_thickness: Option<usize>,
    /// Draw boxes without text
    #[arg(long)]
    pub hide_labels: bool,
    /// Draw the names of classes without confidences
    #[arg(long)]
    pub hide_conf: bool,
    /// Folder that contains the prediction folders [default: runs/detect]
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// Name of the prediction folder [default: exp, exp2, …]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Reuse the prediction folder if it exists
    #[arg(long)]
    pub exist_ok: bool,
    /// Accepted for compatibility with YOLOv5 scripts; has no effect, because weights are never changed
    #[arg(long)]
    pub update: bool,
    /// Accepted for compatibility with YOLOv5 scripts; has no effect on .pt and .safetensors weights
    #[arg(long)]
    pub dnn: bool,
}
