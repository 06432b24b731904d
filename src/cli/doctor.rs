//! The command line of `yolo doctor`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};
use yolo_plan::number::whole;

/// The options of `yolo doctor`.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "Exit status: 0 if there are no errors, 1 if there are errors, 2 if the command line is invalid or a file \
                  is not a recording"
)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also show passed checks, evidence, GPUs, timings and all collected facts
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Report only these findings, by id or area, such as disk.full or gpu
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', action = ArgAction::Append)]
    pub(crate) only: Vec<String>,
    /// Skip these findings, by id or area
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', action = ArgAction::Append)]
    pub(crate) skip: Vec<String>,
    /// List the ids and titles of all findings
    #[arg(long, conflicts_with_all = ["explain", "replay", "record", "json"])]
    pub(crate) list: bool,
    /// Explain a finding, or list the findings of an area
    #[arg(long, value_name = "ID", conflicts_with_all = ["replay", "record", "json"])]
    pub(crate) explain: Option<String>,
    /// Launch real ranks to test compute, memory, interconnects, libtorch and disk; takes up to a minute
    #[arg(long, conflicts_with_all = ["replay", "record", "fix", "list", "explain", "only", "skip"])]
    pub(crate) deep: bool,
    /// With --deep: devices, as for `yolo train`
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "DEVICE",
        requires = "deep",
        conflicts_with = "run"
    )]
    pub(crate) device: Option<String>,
    /// With --deep: number of ranks on the CPU
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", requires = "deep", conflicts_with = "run")]
    pub(crate) nproc_per_node: Option<usize>,
    /// With --deep: data set to read and decode images from
    #[arg(long, value_name = "YAML", requires = "deep", conflicts_with = "run", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    /// Fix what can be fixed: show the changes, ask, back up, apply, and check again
    #[arg(long, conflicts_with_all = ["replay", "list", "explain"])]
    pub(crate) fix: bool,
    /// With --fix: do not ask for confirmation
    #[arg(short, long, requires = "fix")]
    pub(crate) yes: bool,
    /// With --fix: show the changes without making them
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
    /// Print docs/findings.md
    #[arg(long, hide = true)]
    pub(crate) reference: bool,
    /// Save the facts about this machine to FILE, without names, addresses or secrets
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Check the machine that was recorded in FILE instead of this one
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Compare recorded machines: what differs, and which differences matter for training on all of them
    #[arg(
        long,
        value_name = "FILE",
        num_args = 2..,
        conflicts_with_all = [
            "replay", "record", "list", "explain", "reference", "deep", "fix", "only", "skip"
        ]
    )]
    pub(crate) compare: Vec<PathBuf>,
    /// Check whether this machine can do a specific run: its `yolo train` options, after `--`
    #[arg(last = true, value_name = "TRAIN OPTIONS")]
    pub(crate) run: Vec<String>,
}
