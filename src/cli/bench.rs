//! The command line of `yolo bench`: the options of the plan, and those of the start and the output.

use std::path::PathBuf;

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
    /// Also write the tables as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    /// Also draw the tables as an SVG image
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// Skip the preflight checks
    #[arg(long, help_heading = "Devices")]
    pub(crate) no_preflight: bool,
}

impl BenchArgs {
    /// Whether tables are measured, and not one run.
    pub(crate) fn has_tables(&self) -> bool {
        self.options.scaling || self.options.batches.is_some()
    }
}
