//! The options of `yolo train` and `yolo val`, with their help. `None` and `false` mean that the
//! user did not give the option; [`crate::run`] applies the defaults, since the built-in data set
//! has some of its own. The names are YOLOv5's (spec §12).
//!
//! A new option is a field here, a field of the task, and the code that uses it. The help, the
//! reference page and `opt.yaml` follow from these; a test fails if the task lacks the field. Numbers
//! are parsed by [`crate::number`], and may be negative, so that the message is ours.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::number::{decimal, whole};

/// YOLOv5's optimizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[expect(missing_docs, reason = "standard terms")]
pub enum Optimizer {
    #[default]
    #[serde(rename = "SGD")]
    #[value(name = "SGD")]
    Sgd,
    #[value(name = "Adam")]
    Adam,
    #[value(name = "AdamW")]
    AdamW,
}

/// Where decoded images are kept between epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Cache {
    Ram,
    Disk,
}

/// The options of `yolo train`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct TrainOptions {
    /// Initial weights: a file, a URL, or a pretrained model (yolov5n, s, m, l, x, n6 … x6), downloaded if missing; '' to train from scratch [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", help_heading = "Model and data")]
    pub weights: Option<String>,
    /// Model: yolov5n, s, m, l, x, n6 … x6, or a YAML file [default: the model stored in the weights]
    #[arg(long, value_name = "MODEL", help_heading = "Model and data")]
    pub cfg: Option<String>,
    /// Data set: a YOLOv5 YAML file, or shapes, coco128, coco8, VOC or coco; downloaded if missing [default: coco128]
    #[arg(long, value_name = "YAML", help_heading = "Model and data")]
    pub data: Option<String>,
    /// Hyperparameters: low, med, high, no-augmentation, objects365, voc, or a YAML file [default: low]
    #[arg(long, value_name = "YAML", help_heading = "Model and data")]
    pub hyp: Option<String>,
    /// Training image size in pixels, rounded up to a multiple of the stride [default: 640]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, visible_aliases = ["img", "img-size"], value_name = "PIXELS", help_heading = "Model and data")]
    pub imgsz: Option<usize>,
    /// Treat all classes as a single class
    #[arg(long, help_heading = "Model and data")]
    pub single_cls: bool,

    /// Number of epochs [default: 100]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Training")]
    pub epochs: Option<usize>,
    /// Total batch size across all ranks; must be a multiple of the number of ranks [default: 16]
    #[arg(long, value_parser = whole::<i64>, allow_negative_numbers = true, visible_alias = "batch", value_name = "N", help_heading = "Training")]
    pub batch_size: Option<i64>,
    /// Nominal batch size: accumulate gradients over about this many images per optimizer step [default: 64]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Training")]
    pub nbs: Option<usize>,
    /// Optimizer [default: SGD]
    #[arg(long, value_name = "NAME", ignore_case = true, help_heading = "Training")]
    pub optimizer: Option<Optimizer>,
    /// Use a cosine learning-rate schedule instead of a linear one
    #[arg(long, help_heading = "Training")]
    pub cos_lr: bool,
    /// Label-smoothing epsilon [default: 0]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "EPSILON", help_heading = "Training")]
    pub label_smoothing: Option<f64>,
    /// Stop after this many epochs without improvement; 0 disables early stopping [default: 100]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "EPOCHS", help_heading = "Training")]
    pub patience: Option<usize>,
    /// Layers to freeze: one number freezes the first N layers; several numbers are layer indices
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "LAYER", num_args = 1.., help_heading = "Training")]
    pub freeze: Vec<usize>,
    /// Random seed [default: 0]
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "N", help_heading = "Training")]
    pub seed: Option<u64>,
    /// Train on rectangular batches; disables mosaic
    #[arg(long, help_heading = "Training")]
    pub rect: bool,
    /// Cache decoded images: in RAM (also if no value is given) or on disk
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "ram", help_heading = "Training")]
    pub cache: Option<Cache>,
    /// Disable AutoAnchor: keep the model's anchors even if they fit the labels poorly
    #[arg(long, help_heading = "Training")]
    pub noautoanchor: bool,

    /// cpu, or GPU indices as listed by nvidia-smi: 0 or 0,1,3 [default: a usable GPU, else cpu]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE", help_heading = "Devices")]
    pub device: Option<String>,
    /// Number of ranks when training on the CPU [default: 1]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Devices")]
    pub nproc_per_node: Option<usize>,
    /// Data loader threads per rank [default: 8, limited by the number of CPU cores]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Devices")]
    pub workers: Option<usize>,
    /// Synchronize batch normalization across ranks
    #[arg(long, help_heading = "Devices")]
    pub sync_bn: bool,

    /// Folder that contains the run folders [default: runs/train]
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub project: Option<PathBuf>,
    /// Name of the run folder [default: exp, exp2, …]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub name: Option<String>,
    /// Reuse the run folder if it exists
    #[arg(long, help_heading = "Output")]
    pub exist_ok: bool,
    /// Resume an interrupted run from its last.pt; without a value, resume the most recent run under runs/
    #[arg(long, value_name = "LAST.PT", num_args = 0..=1, default_missing_value = "", help_heading = "Output")]
    pub resume: Option<String>,
    /// Save only the final checkpoint
    #[arg(long, help_heading = "Output")]
    pub nosave: bool,
    /// Validate only after the last epoch
    #[arg(long, help_heading = "Output")]
    pub noval: bool,
    /// Do not draw plots
    #[arg(long, help_heading = "Output")]
    pub noplots: bool,
    /// Also keep a checkpoint every N epochs [default: -1, disabled]
    #[arg(long, value_parser = whole::<i64>, value_name = "N", allow_negative_numbers = true, help_heading = "Output")]
    pub save_period: Option<i64>,
}

/// The options of `yolo val`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct ValOptions {
    /// Data set: a YOLOv5 YAML file, or shapes, coco128, coco8, VOC or coco; downloaded if missing [default: coco128]
    #[arg(long, value_name = "YAML")]
    pub data: Option<String>,
    /// Weights to evaluate: one or more files, URLs or pretrained models [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", num_args = 1.., action = ArgAction::Append)]
    pub weights: Vec<String>,
    /// Images per batch [default: 32]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, visible_alias = "batch", value_name = "N")]
    pub batch_size: Option<usize>,
    /// Image size in pixels [default: 640]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, visible_aliases = ["img", "img-size"], value_name = "PIXELS")]
    pub imgsz: Option<usize>,
    /// Confidence threshold below which detections are discarded [default: 0.001]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "CONFIDENCE")]
    pub conf_thres: Option<f64>,
    /// IoU threshold for non-maximum suppression [default: 0.6]
    #[arg(long, value_parser = decimal, allow_negative_numbers = true, value_name = "IOU")]
    pub iou_thres: Option<f64>,
    /// Maximum number of detections per image [default: 300]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub max_det: Option<usize>,
    /// Split to evaluate (train, val or test), speed to measure latency, or study to sweep image sizes [default: val]
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// cpu, or a GPU index as listed by nvidia-smi [default: a usable GPU, else cpu]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Data loader threads [default: 8, limited by the number of CPU cores]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub workers: Option<usize>,
    /// Treat all classes as a single class
    #[arg(long)]
    pub single_cls: bool,
    /// Use test-time augmentation (scaled and flipped copies of each image)
    #[arg(long)]
    pub augment: bool,
    /// Print metrics for every class, even if there are many
    #[arg(long)]
    pub verbose: bool,
    /// Save detections as YOLO label files
    #[arg(long)]
    pub save_txt: bool,
    /// Save labels and detections together as YOLO label files
    #[arg(long)]
    pub save_hybrid: bool,
    /// Include confidences in the saved label files
    #[arg(long)]
    pub save_conf: bool,
    /// Save detections in COCO's JSON format
    #[arg(long)]
    pub save_json: bool,
    /// Folder that contains the validation folders [default: runs/val]
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// Name of the validation folder [default: exp, exp2, …]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Reuse the validation folder if it exists
    #[arg(long)]
    pub exist_ok: bool,
    /// Use half precision (GPU only)
    #[arg(long)]
    pub half: bool,
    /// Accepted for compatibility with YOLOv5 scripts; has no effect on .pt and .safetensors weights
    #[arg(long)]
    pub dnn: bool,
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;
    use clap::{Args as _, Command};

    use super::*;

    #[test]
    fn invalid_numbers_have_messages_of_ours() {
        let commands = [
            TrainOptions::augment_args(Command::new("train")),
            ValOptions::augment_args(Command::new("val")),
        ];
        for command in commands {
            let options: Vec<String> =
                command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
            for option in options {
                let error_for = |value: &str| {
                    let words = [command.get_name(), &format!("--{option}"), value];
                    command.clone().try_get_matches_from(words).err()
                };
                let Some(error) = error_for("§") else { continue };
                let is_number = error.kind() == ErrorKind::ValueValidation;
                assert!(!is_number || error.to_string().contains("not a "), "--{option}: {error}");
                let negative = error_for("-1").map(|error| error.kind());
                assert!(!is_number || negative != Some(ErrorKind::UnknownArgument), "--{option} -1");
            }
        }
    }
}
