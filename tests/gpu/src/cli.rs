//! The command line of the kit.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::stage::Stage;

/// Check everything that needs a GPU, and write one report.
///
/// Without a command, all stages run. Nothing leaves this machine, and no setting of a GPU is changed.
#[derive(Debug, Parser)]
#[command(
    name = "yolo-gpu-kit",
    bin_name = "run",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 if every selected stage passed, 1 if one failed, 2 if the command line is invalid, \
                  3 if no stage could run, 4 if none failed but something was not proven, 130 if interrupted"
)]
pub struct Cli {
    /// Another command
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to run
    #[command(flatten)]
    pub run: RunArgs,
}

/// Commands besides running stages.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Join the reports of several short runs on one machine
    Merge {
        /// The report.json files, the oldest first; a later one replaces the stages of an earlier one
        #[arg(required = true, value_name = "REPORT.JSON")]
        reports: Vec<PathBuf>,
        /// Folder for the joined report
        #[arg(long, value_name = "FOLDER", default_value = "gpu-report")]
        out: PathBuf,
    },
}

/// The options of a run.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Run only these stages, with all of the time
    #[arg(long, value_enum, value_name = "STAGE", num_args = 1.., value_delimiter = ',')]
    pub only: Vec<Stage>,
    /// Skip these stages
    #[arg(long, value_enum, hide_possible_values = true, value_name = "STAGE", num_args = 1.., value_delimiter = ',')]
    pub skip: Vec<Stage>,
    /// GPU to use, as numbered by nvidia-smi
    #[arg(long, value_name = "INDEX", default_value_t = 0, value_parser = whole_number::<u32>)]
    pub device: u32,
    /// Folder for the report
    #[arg(long, value_name = "FOLDER", default_value = "gpu-report")]
    pub out: PathBuf,
    /// Seconds for everything; a stage for which too few are left does not start
    #[arg(long, value_name = "SECONDS", default_value_t = 570, value_parser = whole_number::<u32>)]
    pub limit: u32,
    /// Measure every model and batch size; takes longer, so raise --limit too
    #[arg(long)]
    pub full: bool,
    /// Do every stage on the CPU with tiny sizes, to test the kit itself
    #[arg(long)]
    pub rehearse: bool,
    /// Keep the working folder with all runs and logs
    #[arg(long)]
    pub keep: bool,
}

/// A number that an option takes.
fn whole_number<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "it must be a whole number, such as 1")
}
