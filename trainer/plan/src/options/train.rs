//! The options of `yolo train`. A new one is a field here, a field of
//! [`TrainTask`](crate::run::TrainTask), and the code that uses it. The help, the reference page and
//! `opt.yaml` follow from these; a test fails if the task lacks the field.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};

use super::workers::Workers;
use crate::number::{decimal, whole};

/// What clap puts in place of a `--resume` without a value. Nobody can type it.
const NEWEST_RUN: &str = "\0";

/// What `--resume` names: empty for the newest run. An empty value is refused: it comes from a variable of a script that
/// is not set, and the newest run may be another one.
///
/// # Errors
/// With the end of a sentence that begins with the option, if the value is empty.
pub fn run_to_resume(text: &str) -> Result<String, &'static str> {
    match text {
        NEWEST_RUN => Ok(String::new()),
        "" => Err("it is empty; without a value, --resume continues the newest run below runs"),
        path => Ok(path.to_owned()),
    }
}

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

/// How ranks exchange tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum BackendOption {
    #[default]
    Auto,
    Nccl,
    Gloo,
}

/// How several devices train one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the help of an option with documented values takes several lines per option"
)]
pub enum Parallel {
    #[default]
    Ddp,
    Dp,
    Model,
}

impl Parallel {
    /// Whether a single process uses all devices.
    pub fn is_one_process(self) -> bool {
        self != Self::Ddp
    }
}

/// The value, as in options and plan files.
impl fmt::Display for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ddp => "ddp",
            Self::Dp => "dp",
            Self::Model => "model",
        })
    }
}

/// The number format of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum PrecisionOption {
    #[default]
    Auto,
    Fp32,
    Fp16,
    Bf16,
}

/// Where decoded images are kept between epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Cache {
    Ram,
    Disk,
    None,
}

impl Cache {
    /// Whether all images are kept, if there is room.
    pub fn keeps_all(self) -> bool {
        self != Self::None
    }
}

/// What the ranks have about equally much of in each step: boxes, or bytes of image files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the help of an option with documented values takes several lines per option"
)]
pub enum Balance {
    Boxes,
    Bytes,
}

/// The options of `yolo train`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct TrainOptions {
    /// Initial weights: a file, a URL, or a pretrained model (yolov5n, s, m, l, x, n6 … x6), downloaded if missing; '' to train from scratch [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub weights: Option<String>,
    /// Model: yolov5n, s, m, l, x, n6 … x6, or a YAML file [default: the model stored in the weights]
    #[arg(long, value_name = "MODEL", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub cfg: Option<String>,
    /// Data set: a YOLOv5 YAML file, or shapes, coco128, coco8, VOC or coco; downloaded if missing [default: coco128]
    #[arg(long, value_name = "YAML", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub data: Option<String>,
    /// Hyperparameters: low, med, high, no-augmentation, objects365, voc, or a YAML file [default: low]
    #[arg(long, value_name = "YAML", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
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
    /// Total batch size across all ranks; a multiple of their number unless --batch-split is given; -1 measures the largest that fits into the memory of the GPUs [default: 16]
    #[arg(long = "batch", value_parser = whole::<i64>, allow_negative_numbers = true, visible_alias = "batch-size", value_name = "N", help_heading = "Training")]
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
    /// Let libtorch use its fastest algorithms, even if their results vary from run to run for the same seed
    #[arg(long, help_heading = "Training")]
    pub nondeterministic: bool,
    /// Train on rectangular batches; disables mosaic
    #[arg(long, help_heading = "Training")]
    pub rect: bool,
    /// Train each batch at a size of its own, from half to one and a half times --imgsz
    #[arg(long, help_heading = "Training")]
    pub multi_scale: bool,
    /// Draw the images of each epoch with replacement, those with classes of low mAP more often
    #[arg(long, help_heading = "Training")]
    pub image_weights: bool,
    /// Make one image of twice the size from every four: all side by side, or the first enlarged; the batch of each rank must be a multiple of 4
    #[arg(long, help_heading = "Training")]
    pub quad: bool,
    /// Number format of the network: fp32, or mixed precision with fp16 or bf16 [default: auto, which is fp16 on GPUs and fp32 on the CPU]
    #[arg(long, value_name = "FORMAT", ignore_case = true, help_heading = "Training")]
    pub precision: Option<PrecisionOption>,
    /// Where to keep decoded images: ram (also if no value is given), disk, or none [default: up to 256 MB in memory]
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "ram", help_heading = "Training")]
    pub cache: Option<Cache>,
    /// Disable AutoAnchor: keep the model's anchors even if they fit the labels poorly
    #[arg(long, help_heading = "Training")]
    pub noautoanchor: bool,

    /// GPU indices (0,1), UUIDs, all, cpu, or cpu,cpu; one rank per entry [default: a usable GPU, else cpu]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE", help_heading = "Devices")]
    pub device: Option<String>,
    /// Number of ranks when training on the CPU [default: 1]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Devices")]
    pub nproc_per_node: Option<usize>,
    /// How several devices train: ddp, one process per device; dp, one process with a replica of the model on each device; model, one process with the layers spread over the devices [default: ddp]
    #[arg(long, value_name = "MODE", ignore_case = true, help_heading = "Devices")]
    pub parallel: Option<Parallel>,
    /// How ranks communicate [default: auto, which is nccl between GPUs if possible, else gloo]
    #[arg(long, value_name = "BACKEND", ignore_case = true, help_heading = "Devices")]
    pub backend: Option<BackendOption>,
    /// A libnccl.so.2 to use instead of libtorch's, or pip for that of Python's package nvidia-nccl-cu13 or -cu12; 2.30 or newer lets ranks share a GPU, as in --device 0,0
    #[arg(long, value_name = "FILE|pip", help_heading = "Devices")]
    pub nccl: Option<PathBuf>,
    /// Data loader threads per rank; auto, on one machine, measures before training how many are needed [default: the rank's share of the CPU cores; no more than it has images per step]
    #[arg(long, value_parser = Workers::parse, allow_negative_numbers = true, value_name = "N|auto", help_heading = "Devices")]
    pub workers: Option<Workers>,
    /// Images of each rank per step, for GPUs of different sizes: auto, in proportion to their memory, or one number per rank (16,8) [default: equal shares]
    #[arg(long, allow_negative_numbers = true, value_name = "SPLIT", help_heading = "Devices")]
    pub batch_split: Option<String>,
    /// Balance the ranks in each step by the boxes or the file sizes of their images
    #[arg(long, value_name = "COST", ignore_case = true, help_heading = "Devices")]
    pub balance: Option<Balance>,
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
    #[arg(long, value_name = "LAST.PT", num_args = 0..=1, value_parser = run_to_resume, default_missing_value = NEWEST_RUN, help_heading = "Output", value_hint = ValueHint::FilePath)]
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
    /// Also write event files that TensorBoard opens, into the run folder
    #[arg(long, help_heading = "Output")]
    pub tensorboard: bool,
    /// Also keep a checkpoint every N epochs [default: -1, disabled]
    #[arg(long, value_parser = whole::<i64>, value_name = "N", allow_negative_numbers = true, help_heading = "Output")]
    pub save_period: Option<i64>,
    /// Restart a failed run from its last checkpoint, up to N times; a run that fails before its first step is not restarted [default: 0]
    #[arg(long, value_parser = whole::<u32>, allow_negative_numbers = true, value_name = "N", help_heading = "Devices")]
    pub max_restarts: Option<u32>,
}
