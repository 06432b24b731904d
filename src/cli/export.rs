//! The command line of `yolo export`: the options of the plan, and those of the output.

use clap::Args;
use yolo_plan::options::ExportOptions;

/// The options of `yolo export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) options: ExportOptions,
    /// Print what happens as JSON, one event per line; the last one has the files
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
