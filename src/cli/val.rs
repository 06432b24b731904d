//! The command line of `yolo val`: the options of the plan.

use clap::Args;
use yolo_plan::options::ValOptions;

/// The options of `yolo val`.
#[derive(Debug, Args)]
pub(crate) struct ValArgs {
    #[command(flatten)]
    pub(crate) options: ValOptions,
}
