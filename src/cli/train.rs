//! The command line of `yolo train`: the options of the plan, and those of the start.

use clap::Args;
use yolo_plan::options::TrainOptions;

/// The options of `yolo train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) options: TrainOptions,
    /// Skip the preflight checks
    #[arg(long, help_heading = "Devices")]
    pub(crate) no_preflight: bool,
}
