//! The words of the command: clap's types, with the names and defaults of YOLOv5 where it has the
//! option. Nothing is decided here; the words go to `yolo-plan` as they were typed.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use yolo_plan::options::{Cache, Optimizer, TrainOptions, ValOptions};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// From a bare machine to a trained YOLOv5 detector.
#[derive(Debug, Parser)]
#[command(name = "yolo", version, styles = STYLES, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    /// Say only results, warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Fetch nothing; what is missing is an error
    #[arg(long, global = true, env = "YOLO_OFFLINE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) offline: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `yolo` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a detector on every device named
    // The last of two equal options counts, as in YOLOv5: a script appends what it changes.
    #[command(args_override_self = true)]
    Train(Box<TrainArgs>),
    /// Measure a detector on a data set
    #[command(args_override_self = true)]
    Val(Box<ValArgs>),
    /// Find what will stop or slow a run on this machine
    Doctor(DoctorArgs),
    /// Install what a run needs: libtorch, the trainer, weights, data sets
    Setup(SetupArgs),
    /// Load a libtorch and answer what it sees; `yolo setup` starts this as a process of its own
    #[command(name = crate::setup::smoke_test::SUBCOMMAND, hide = true)]
    LookAtLibtorch {
        /// The folder of the libraries
        folder: PathBuf,
    },
}

/// The options of `yolo doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 no error was found, 1 an error was found, 2 misuse")]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show what is well too, the evidence, the GPUs, the time of each check and all facts
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Look for these findings only: ids or areas, such as gpu or disk.full
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', action = ArgAction::Append)]
    pub(crate) only: Vec<String>,
    /// Do not look for these
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', action = ArgAction::Append)]
    pub(crate) skip: Vec<String>,
    /// List all that can be found
    #[arg(long, conflicts_with_all = ["explain", "replay", "record"])]
    pub(crate) list: bool,
    /// Tell all about one finding, or name those of an area
    #[arg(long, value_name = "ID", conflicts_with_all = ["replay", "record"])]
    pub(crate) explain: Option<String>,
    /// Start real ranks: computation, memory, links, libtorch and disk are tried, in a minute at most
    #[arg(long, conflicts_with_all = ["replay", "record", "fix", "list", "explain"])]
    pub(crate) deep: bool,
    /// With --deep: the devices, as for `yolo train`
    #[arg(long, value_name = "DEVICE", requires = "deep", conflicts_with = "run")]
    pub(crate) device: Option<String>,
    /// With --deep: ranks on the CPU
    #[arg(long, value_name = "N", requires = "deep", conflicts_with = "run")]
    pub(crate) nproc_per_node: Option<usize>,
    /// With --deep: the data set whose images are read and decoded
    #[arg(long, value_name = "YAML", requires = "deep", conflicts_with = "run")]
    pub(crate) data: Option<String>,
    /// Mend what can be mended: says what it will change, asks, keeps a backup, and looks again
    #[arg(long, conflicts_with_all = ["replay", "list", "explain"])]
    pub(crate) fix: bool,
    /// With --fix: do not ask
    #[arg(short, long, requires = "fix")]
    pub(crate) yes: bool,
    /// With --fix: only say what would be changed
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
    /// Print docs/findings.md
    #[arg(long, hide = true)]
    pub(crate) reference: bool,
    /// Write what was asked of this machine to a file, without names, addresses and secrets
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Judge the machine that a file of --record tells of
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Options of `yolo train` after --: the machine is judged for that run
    #[arg(last = true, value_name = "TRAIN OPTIONS")]
    pub(crate) run: Vec<String>,
}

/// The options of a run that is meant, read as `yolo train` reads them.
#[derive(Debug, Parser)]
#[command(name = "yolo train", no_binary_name = true, styles = STYLES)]
pub(crate) struct MeantRun {
    #[command(flatten)]
    pub(crate) train: TrainArgs,
    #[command(flatten)]
    pub(crate) machines: MachinesArgs,
}

/// Options of a run on several machines, by which a machine can be judged before it takes part.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct MachinesArgs {
    /// Machines that take part [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) nnodes: Option<usize>,
    /// Which of them this is, from 0
    #[arg(long, value_name = "N")]
    pub(crate) node_rank: Option<usize>,
    /// Name or address of machine 0, where the ranks meet
    #[arg(long, value_name = "HOST")]
    pub(crate) master_addr: Option<String>,
    /// The port there [default: 29500]
    #[arg(long, value_name = "PORT")]
    pub(crate) master_port: Option<u16>,
    /// How ranks talk: nccl or gloo [default: nccl between GPUs, else gloo]
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
    /// Mixed precision, or not
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) amp: Option<bool>,
}

/// The options of `yolo setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Variant of libtorch; auto chooses from the driver and every GPU [default: the one in use, else auto]
    #[arg(long, value_name = "VARIANT")]
    pub(crate) libtorch: Option<VariantName>,
    /// Weights: yolov5n, s, m, l, x, their 6-variants, an address or a file; may be given several times
    #[arg(long, value_name = "NAME", num_args = 1.., action = ArgAction::Append)]
    pub(crate) weights: Vec<String>,
    /// Data set: coco128, coco8, VOC, coco, shapes, or a yaml with download:; may be given several times
    #[arg(long, value_name = "NAME", num_args = 1.., action = ArgAction::Append)]
    pub(crate) data: Vec<String>,
    /// Say what would be installed, and install nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the plan, and what was done, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show what is installed, with sizes
    #[arg(long, conflicts_with_all = ["libtorch", "weights", "data", "remove", "dry_run"])]
    pub(crate) list: bool,
    /// Remove what --list shows under this name: cu130, yolov5n.pt, coco128, unfinished
    #[arg(long, value_name = "WHAT", num_args = 1.., conflicts_with_all = ["libtorch", "weights", "data", "dry_run"])]
    pub(crate) remove: Vec<String>,
    /// Set up WSL: on Windows from nothing to a Linux that can train, inside WSL its settings
    #[arg(long, conflicts_with_all = ["libtorch", "weights", "data", "list", "remove"])]
    pub(crate) wsl: bool,
    /// The WSL distribution to use [default: the default one, or Ubuntu]
    #[arg(long, value_name = "NAME", requires = "wsl")]
    pub(crate) distribution: Option<String>,
    /// Machines of the training that is meant [default: 1]
    #[arg(long, value_name = "N", requires = "wsl", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nnodes: Option<u32>,
    /// Agree beforehand to every step that would ask
    #[arg(short, long, requires = "wsl")]
    pub(crate) yes: bool,
    /// The options of the `yolo train` that is meant, after `--`
    #[arg(last = true, requires = "wsl", value_name = "TRAIN OPTIONS", allow_hyphen_values = true)]
    pub(crate) train: Vec<String>,
}

/// Variants of libtorch, as they are typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum VariantName {
    Auto,
    Cpu,
    Cu126,
    Cu128,
    Cu130,
}

/// The optimizers.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OptimizerName {
    #[value(name = "SGD")]
    Sgd,
    #[value(name = "Adam")]
    Adam,
    #[value(name = "AdamW")]
    AdamW,
}

impl From<OptimizerName> for Optimizer {
    fn from(name: OptimizerName) -> Self {
        match name {
            OptimizerName::Sgd => Self::Sgd,
            OptimizerName::Adam => Self::Adam,
            OptimizerName::AdamW => Self::AdamW,
        }
    }
}

/// Where images are cached.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CacheName {
    Ram,
    Disk,
}

impl From<CacheName> for Cache {
    fn from(name: CacheName) -> Self {
        match name {
            CacheName::Ram => Self::Ram,
            CacheName::Disk => Self::Disk,
        }
    }
}

/// The options of `yolo train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Weights to start from: a file, an address, or yolov5n, s, m, l, x and their 6-variants, which are fetched; '' starts from random weights [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", help_heading = "Model and data")]
    weights: Option<String>,
    /// Model: yolov5n, s, m, l, x, their 6-variants, or a yaml file [default: what the weights say]
    #[arg(long, value_name = "MODEL", help_heading = "Model and data")]
    cfg: Option<String>,
    /// Data set: a YOLOv5 yaml file, or shapes, coco128, coco8, VOC, coco; fetched when it is missing [default: coco128]
    #[arg(long, value_name = "YAML", help_heading = "Model and data")]
    data: Option<String>,
    /// Hyper-parameters: low, med, high, no-augmentation, objects365, voc, or a yaml file [default: low]
    #[arg(long, value_name = "YAML", help_heading = "Model and data")]
    hyp: Option<String>,
    /// Size of training images in pixels, rounded up to a multiple of the stride [default: 640]
    #[arg(long, visible_aliases = ["img", "img-size"], value_name = "PIXELS", help_heading = "Model and data")]
    imgsz: Option<usize>,
    /// Treat all classes as one
    #[arg(long, help_heading = "Model and data")]
    single_cls: bool,

    /// Epochs [default: 100]
    #[arg(long, value_name = "N", help_heading = "Training")]
    epochs: Option<usize>,
    /// Images a step over all ranks, a multiple of their number [default: 16]
    #[arg(
        long,
        visible_alias = "batch",
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Training"
    )]
    batch_size: Option<i64>,
    /// Nominal batch: gradients are added up to this many images before a step [default: 64]
    #[arg(long, value_name = "N", help_heading = "Training")]
    nbs: Option<usize>,
    /// Optimizer [default: SGD]
    #[arg(long, value_name = "NAME", ignore_case = true, help_heading = "Training")]
    optimizer: Option<OptimizerName>,
    /// Cosine learning-rate schedule instead of the linear one
    #[arg(long, help_heading = "Training")]
    cos_lr: bool,
    /// How far class targets stay from 0 and 1 [default: 0]
    #[arg(long, value_name = "EPSILON", help_heading = "Training")]
    label_smoothing: Option<f64>,
    /// Epochs without a better fitness before training stops; 0 never stops [default: 100]
    #[arg(long, value_name = "EPOCHS", help_heading = "Training")]
    patience: Option<usize>,
    /// Layers that do not learn: one number freezes that many from the first, several are indices
    #[arg(long, value_name = "LAYER", num_args = 1.., help_heading = "Training")]
    freeze: Vec<usize>,
    /// Seed of weights, order and augmentation [default: 0]
    #[arg(long, value_name = "N", help_heading = "Training")]
    seed: Option<u64>,
    /// Rectangular batches, without mosaic
    #[arg(long, help_heading = "Training")]
    rect: bool,
    /// Keep decoded images in ram (the default of this option) or on disk
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "ram", help_heading = "Training")]
    cache: Option<CacheName>,
    /// Keep the model's anchors even if others fit the labels better
    #[arg(long, help_heading = "Training")]
    noautoanchor: bool,

    /// cpu, 0, or 0,1,3, numbered as nvidia-smi does [default: a GPU if it can be used, else cpu]
    #[arg(long, value_name = "DEVICE", help_heading = "Devices")]
    device: Option<String>,
    /// Ranks on the CPU [default: 1]
    #[arg(long, value_name = "N", help_heading = "Devices")]
    nproc_per_node: Option<usize>,
    /// Threads that load images, a rank [default: 8, at most the cores]
    #[arg(long, value_name = "N", help_heading = "Devices")]
    workers: Option<usize>,
    /// Start without asking first what on this machine would stop the run
    #[arg(long, help_heading = "Devices")]
    pub(crate) no_preflight: bool,
    /// Batch normalisation over the images of all ranks
    #[arg(long, help_heading = "Devices")]
    sync_bn: bool,

    /// Folder of all runs [default: runs/train]
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    project: Option<PathBuf>,
    /// Name of this run [default: exp, exp2, …]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    name: Option<String>,
    /// Write into the run's folder even if it exists
    #[arg(long, help_heading = "Output")]
    exist_ok: bool,
    /// Continue an interrupted run: its last.pt, or the newest under runs/
    #[arg(long, value_name = "LAST.PT", num_args = 0..=1, default_missing_value = "", help_heading = "Output")]
    pub(crate) resume: Option<String>,
    /// Write a checkpoint at the end only
    #[arg(long, help_heading = "Output")]
    nosave: bool,
    /// Validate after the last epoch only
    #[arg(long, help_heading = "Output")]
    noval: bool,
    /// Draw no plots
    #[arg(long, help_heading = "Output")]
    noplots: bool,
    /// Keep a checkpoint every so many epochs [default: -1, never]
    #[arg(long, value_name = "EPOCHS", allow_negative_numbers = true, help_heading = "Output")]
    save_period: Option<i64>,
}

impl TrainArgs {
    /// The words as options of a plan.
    pub(crate) fn options(&self) -> TrainOptions {
        TrainOptions {
            weights: self.weights.clone(),
            cfg: self.cfg.clone(),
            data: self.data.clone(),
            hyp: self.hyp.clone(),
            epochs: self.epochs,
            batch_size: self.batch_size,
            nbs: self.nbs,
            imgsz: self.imgsz,
            device: self.device.clone(),
            nproc_per_node: self.nproc_per_node,
            workers: self.workers,
            optimizer: self.optimizer.map(Into::into),
            sync_bn: self.sync_bn,
            seed: self.seed,
            project: self.project.clone(),
            name: self.name.clone(),
            exist_ok: self.exist_ok,
            nosave: self.nosave,
            noval: self.noval,
            noautoanchor: self.noautoanchor,
            noplots: self.noplots,
            freeze: self.freeze.clone(),
            cos_lr: self.cos_lr,
            label_smoothing: self.label_smoothing,
            patience: self.patience,
            save_period: self.save_period,
            single_cls: self.single_cls,
            rect: self.rect,
            cache: self.cache.map(Into::into),
        }
    }
}

/// The options of `yolo val`.
#[derive(Debug, Args)]
pub(crate) struct ValArgs {
    /// Data set: a YOLOv5 yaml file, or shapes, coco128, coco8, VOC, coco [default: coco128]
    #[arg(long, value_name = "YAML")]
    data: Option<String>,
    /// Weights, one file or several [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", num_args = 1.., action = ArgAction::Append)]
    weights: Vec<String>,
    /// Images a batch [default: 32]
    #[arg(long, visible_alias = "batch", value_name = "N")]
    batch_size: Option<usize>,
    /// Size of images in pixels [default: 640]
    #[arg(long, visible_aliases = ["img", "img-size"], value_name = "PIXELS")]
    imgsz: Option<usize>,
    /// Least confidence of a detection [default: 0.001]
    #[arg(long, value_name = "CONFIDENCE")]
    conf_thres: Option<f64>,
    /// Overlap above which the less confident detection goes [default: 0.6]
    #[arg(long, value_name = "IOU")]
    iou_thres: Option<f64>,
    /// Detections an image [default: 300]
    #[arg(long, value_name = "N")]
    max_det: Option<usize>,
    /// train, val, test, speed or study [default: val]
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// cpu or the number of a GPU [default: a GPU if it can be used, else cpu]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Threads that load images [default: 8, at most the cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Treat all classes as one
    #[arg(long)]
    single_cls: bool,
    /// Add the detections of two scales and a mirror image
    #[arg(long)]
    augment: bool,
    /// Show every class, even when there are many
    #[arg(long)]
    verbose: bool,
    /// Save detections as label files
    #[arg(long)]
    save_txt: bool,
    /// Save labels and detections together as label files
    #[arg(long)]
    save_hybrid: bool,
    /// Save the confidence with each line of --save-txt
    #[arg(long)]
    save_conf: bool,
    /// Save detections as COCO's JSON
    #[arg(long)]
    save_json: bool,
    /// Folder of all validations [default: runs/val]
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// Name of this validation [default: exp, exp2, …]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write into the folder even if it exists
    #[arg(long)]
    exist_ok: bool,
    /// Half precision, on a GPU
    #[arg(long)]
    half: bool,
    /// OpenCV's engine for ONNX files; changes nothing for .pt and .safetensors
    #[arg(long)]
    dnn: bool,
}

impl ValArgs {
    /// The words as options of a plan.
    pub(crate) fn options(&self) -> ValOptions {
        ValOptions {
            data: self.data.clone(),
            weights: self.weights.clone(),
            batch_size: self.batch_size,
            imgsz: self.imgsz,
            conf_thres: self.conf_thres,
            iou_thres: self.iou_thres,
            max_det: self.max_det,
            task: self.task.clone(),
            device: self.device.clone(),
            workers: self.workers,
            single_cls: self.single_cls,
            augment: self.augment,
            verbose: self.verbose,
            save_txt: self.save_txt,
            save_hybrid: self.save_hybrid,
            save_conf: self.save_conf,
            save_json: self.save_json,
            project: self.project.clone(),
            name: self.name.clone(),
            exist_ok: self.exist_ok,
            half: self.half,
            dnn: self.dnn,
        }
    }
}
