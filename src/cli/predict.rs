//! The command line of `yolo predict`: the options of the plan, and those of the output.

use clap::Args;
use yolo_plan::options::PredictOptions;

/// The options of `yolo predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) options: PredictOptions,
    /// Print what is found as JSON, one line per picture, between the events of the run
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
