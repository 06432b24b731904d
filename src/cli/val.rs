//! The command line of `yolo val`: the options of the plan, and those of the output.

use clap::Args;
use yolo_plan::options::ValOptions;

/// The options of `yolo val`.
#[derive(Debug, Args)]
pub(crate) struct ValArgs {
    #[command(flatten)]
    pub(crate) options: ValOptions,
    /// Print what happens as JSON, one event per line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
