//! The command line of `yolo compare`.

use std::path::PathBuf;

use clap::Args;

/// The options of `yolo compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Folders of two or more runs, of yolo or YOLOv5: runs/train/exp runs/train/exp2
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the comparison as a page for the browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
