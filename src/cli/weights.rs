//! The command line of `yolo weights`.

use std::path::PathBuf;

use clap::Args;

/// The options of `yolo weights`.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing in a file is executed. Exit status: 0 if all files can be used, 1 if one cannot be read or would \
                  execute unknown code in Python"
)]
pub(crate) struct WeightsArgs {
    /// Weights files (.pt, .safetensors, .onnx), run folders, or the names of installed weights
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Show how two files differ: what they say about themselves, and their tensors
    #[arg(long)]
    pub(crate) diff: bool,
    /// List all tensors, and everything that Python would import
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print JSON: an array with an object for each file, or an object with --diff
    #[arg(long)]
    pub(crate) json: bool,
}
