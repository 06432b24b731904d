//! The command line of `yolo bench`: the options of the plan, and those of the start and the output.

use clap::Args;
use yolo_plan::options::BenchOptions;

/// The options of `yolo bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) options: BenchOptions,
    /// Print the results as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Skip the preflight checks
    #[arg(long, help_heading = "Devices")]
    pub(crate) no_preflight: bool,
}
