//! The command line of `yolo val`: the options of the plan, and those of the output.

use clap::Args;
use yolo_plan::options::ValOptions;

/// The options of `yolo val`.
#[derive(Debug, Args)]
pub(crate) struct ValArgs {
    #[command(flatten)]
    pub(crate) options: ValOptions,
    /// In WSL: copy a data set that is on a Windows drive to the Linux side first, where it is read many times faster; what is copied already is not copied again
    #[arg(long, help_heading = "Model and data")]
    pub(crate) data_to_linux: bool,
    /// Print what happens as JSON, one event per line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
