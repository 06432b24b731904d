//! The command line of `yolo train`: the options of the plan, and those of the start and the output.

use clap::{Arg, Args};
use yolo_plan::number::{positive, whole};
use yolo_plan::options::TrainOptions;

use super::evolve::EvolveArgs;
use super::yolov5_only::Yolov5OnlyArgs;

/// The options of `yolo train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) options: TrainOptions,
    /// In WSL: copy a data set that is on a Windows drive to the Linux side first, where it is read many times faster; what is copied already is not copied again
    #[arg(long, help_heading = "Model and data")]
    pub(crate) data_to_linux: bool,
    /// Print what happens as JSON, one event per line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) evolution: EvolveArgs,
    #[command(flatten)]
    pub(crate) yolov5_only: Yolov5OnlyArgs,
    #[command(flatten)]
    pub(crate) machines: MachineArgs,
    /// Skip the preflight checks
    #[arg(long, help_heading = "Devices")]
    pub(crate) no_preflight: bool,
}

/// Options of `yolo train` that `yolo rank` refuses, because the launcher decides this.
const LAUNCHERS: [&str; 6] =
    ["nproc_per_node", "max_restarts", "nnodes", "node_rank", "master_addr", "master_port"];

/// Leaves these options out of the help of `yolo rank`.
pub(super) fn hide_what_launchers_decide(arg: Arg) -> Arg {
    // With a launcher, there is only one way to train on several devices.
    let id = arg.get_id().as_str();
    let hidden = LAUNCHERS.contains(&id) || super::evolve::OPTIONS.contains(&id) || id == "parallel";
    if hidden { arg.hide(true) } else { arg }
}

impl TrainArgs {
    /// The options that are given although a launcher decides this, as the user writes them.
    pub(crate) fn what_launchers_decide(&self) -> Vec<String> {
        let MachineArgs { nnodes, node_rank, master_addr, master_port } = &self.machines;
        let given = [
            self.options.nproc_per_node.is_some(),
            self.options.max_restarts.is_some(),
            nnodes.is_some(),
            node_rank.is_some(),
            master_addr.is_some(),
            master_port.is_some(),
        ];
        let names = LAUNCHERS.iter().zip(given).filter(|(_, given)| *given);
        names.map(|(name, _)| format!("--{}", name.replace('_', "-"))).collect()
    }
}

/// The place of this machine in a run on several.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct MachineArgs {
    /// Number of machines; start the same command on each, with a --node-rank of its own [default: 1]
    #[arg(long, value_parser = positive::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub(crate) nnodes: Option<usize>,
    /// Number of this machine, starting at 0; machine 0 shows the run and saves its results
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub(crate) node_rank: Option<usize>,
    /// Host name or address of machine 0, at which the others reach it
    #[arg(long, value_name = "HOST")]
    pub(crate) master_addr: Option<String>,
    /// Port on machine 0 [default: 29500]
    #[arg(long, value_parser = positive::<u16>, allow_negative_numbers = true, value_name = "PORT")]
    pub(crate) master_port: Option<u16>,
}
