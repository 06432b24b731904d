//! The options of `yolo export`. A new one is a field here, a field of
//! [`ExportTask`](crate::run::ExportTask), and the code that uses it. Options of YOLOv5's `export.py` that have no effect
//! here, or belong to formats that `yolo` does not write, are not in the help; planning says why.

use clap::{ArgAction, Args, ValueHint};
use serde::Serialize;

use crate::number::{decimal, whole};

/// The options of `yolo export`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct ExportOptions {
    /// Weights to export: a file, a URL or a pretrained model [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub weights: Option<String>,
    /// Formats to write, next to the weights: torchscript, onnx, torch (a state dict), yolov5 (a .pt for its scripts) and safetensors [default: torchscript]
    #[arg(
        long,
        visible_alias = "include",
        num_args = 1..,
        value_delimiter = ',',
        action = ArgAction::Append,
        value_name = "FORMAT"
    )]
    pub format: Vec<String>,
    /// Size of the input in pixels: one side, or height and width [default: 640]
    #[arg(
        long,
        value_parser = whole::<usize>,
        allow_negative_numbers = true,
        visible_aliases = ["img", "img-size"],
        num_args = 1..=2,
        value_name = "PIXELS"
    )]
    pub imgsz: Vec<usize>,
    /// Images per batch of the input [default: 1]
    #[arg(long = "batch", value_parser = whole::<usize>, allow_negative_numbers = true, visible_alias = "batch-size", value_name = "N")]
    pub batch_size: Option<usize>,
    /// The device on which the network is traced and compared with what was written: a GPU index as listed by nvidia-smi, or cpu [default: cpu]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Write the weights in half precision
    #[arg(long)]
    pub half: bool,
    /// Keep batch normalizations apart from their convolutions, where the format has operations
    #[arg(long)]
    pub no_fuse: bool,
    /// ONNX: let batch, height and width of the input be any
    #[arg(long)]
    pub dynamic: bool,
    /// ONNX: version of the operations, 12 to 17 [default: 17]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub opset: Option<usize>,
    /// ONNX: put non-maximum suppression into the graph, whose outputs are then detections
    #[arg(long)]
    pub nms: bool,
    /// With --nms: boxes of different classes suppress each other; implies --nms
    #[arg(long)]
    pub agnostic_nms: bool,
    /// With --nms: the most detections of one class per image [default: 100]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub topk_per_class: Option<usize>,
    /// With --nms: rows for detections per image [default: 100]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub topk_all: Option<usize>,
    /// With --nms: overlap (IoU) above which the less confident of two boxes is dropped [default: 0.45]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "IOU")]
    pub iou_thres: Option<f64>,
    /// With --nms: confidence that a detection must exceed [default: 0.25]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "CONF")]
    pub conf_thres: Option<f64>,
    /// Options of YOLOv5 that yolo does not have.
    #[command(flatten)]
    #[serde(skip)]
    pub yolov5: Yolov5ExportOptions,
}

/// Options of YOLOv5's `export.py` without a meaning here.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[expect(missing_docs, reason = "each is the option of the same name of export.py")]
pub struct Yolov5ExportOptions {
    #[arg(long, hide = true)]
    pub data: Option<String>,
    #[arg(long, hide = true)]
    pub inplace: bool,
    #[arg(long, hide = true)]
    pub verbose: bool,
    #[arg(long, hide = true)]
    pub optimize: bool,
    #[arg(long, hide = true)]
    pub keras: bool,
    #[arg(long, hide = true)]
    pub int8: bool,
    #[arg(long, hide = true)]
    pub per_tensor: bool,
    #[arg(long, hide = true)]
    pub cache: Option<String>,
    #[arg(long, hide = true)]
    pub mlmodel: bool,
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, hide = true)]
    pub workspace: Option<usize>,
    #[arg(long, hide = true)]
    pub simplify: bool,
}
