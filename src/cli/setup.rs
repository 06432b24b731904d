//! The command line of `yolo setup`.

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use yolo_plan::number::positive;

/// The options of `yolo setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// libtorch build; auto selects one for this machine's driver and GPUs [default: the installed one, else auto]
    #[arg(long, value_name = "VARIANT")]
    pub(crate) libtorch: Option<VariantName>,
    /// Build the NCCL plugin, even if libtorch has no CUDA; CUDA variants build it anyway
    #[arg(long)]
    pub(crate) nccl: bool,
    /// Weights to install: yolov5n, s, m, l, x, n6 … x6, a URL or a file; repeatable
    #[arg(long, value_name = "NAME", num_args = 1.., action = ArgAction::Append, value_hint = ValueHint::FilePath)]
    pub(crate) weights: Vec<String>,
    /// Data set to install: coco128, coco8, VOC, coco, shapes, or a YAML file with a `download:` URL; repeatable
    #[arg(long, value_name = "NAME", num_args = 1.., action = ArgAction::Append, value_hint = ValueHint::FilePath)]
    pub(crate) data: Vec<String>,
    /// Show what would be installed without installing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the plan and the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List what is installed, with sizes
    #[arg(long, conflicts_with_all = ["libtorch", "nccl", "weights", "data", "remove", "dry_run"])]
    pub(crate) list: bool,
    /// Remove installed items by their names in --list, such as cu130, yolov5n.pt or coco128; `unfinished` removes incomplete downloads
    #[arg(long, value_name = "NAME", num_args = 1.., conflicts_with_all = ["libtorch", "nccl", "weights", "data", "dry_run"])]
    pub(crate) remove: Vec<String>,
    /// Set up WSL: on Windows, install a Linux distribution for training; inside WSL, adjust its settings
    #[arg(long, conflicts_with_all = ["libtorch", "nccl", "weights", "data", "list", "remove"])]
    pub(crate) wsl: bool,
    /// With --wsl: number of machines in the planned run [default: 1]
    #[arg(long, value_name = "N", requires = "wsl", value_parser = positive::<u32>, allow_negative_numbers = true)]
    pub(crate) nnodes: Option<u32>,
    /// With --wsl: answer yes to all prompts
    #[arg(short, long, requires = "wsl")]
    pub(crate) yes: bool,
    /// With --wsl: the `yolo train` options of the run you plan, after `--`
    #[arg(last = true, requires = "wsl", value_name = "TRAIN OPTIONS", allow_hyphen_values = true)]
    pub(crate) train: Vec<String>,
}

/// The libtorch variants, and `auto`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum VariantName {
    Auto,
    Cpu,
    Cu126,
    Cu128,
    Cu130,
}
