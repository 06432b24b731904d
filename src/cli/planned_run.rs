//! The command line of a planned run: the options of `yolo train` that follow `--` in `yolo doctor` and
//! `yolo setup`.

use clap::{Args, Parser};
use yolo_plan::number::{positive, whole};

use super::TrainArgs;

/// The options of a planned run, which follow `--` in other commands.
#[derive(Debug, Parser)]
#[command(name = "yolo train", no_binary_name = true, styles = super::STYLES)]
pub(crate) struct PlannedTrain {
    #[command(flatten)]
    pub(crate) train: TrainArgs,
    #[command(flatten)]
    pub(crate) multi_node: MultiNodeArgs,
}

/// Options of a run on several machines, for checking a machine before it takes part in one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct MultiNodeArgs {
    /// Number of machines [default: 1]
    #[arg(long, value_parser = positive::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub(crate) nnodes: Option<usize>,
    /// Rank of this machine, starting at 0
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    pub(crate) node_rank: Option<usize>,
    /// Host name or address of machine 0, which hosts the rendezvous
    #[arg(long, value_name = "HOST")]
    pub(crate) master_addr: Option<String>,
    /// Port on machine 0 [default: 29500]
    #[arg(long, value_parser = positive::<u16>, allow_negative_numbers = true, value_name = "PORT")]
    pub(crate) master_port: Option<u16>,
    /// Use mixed precision (true or false)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) amp: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_are_explained() {
        for (arguments, expected) in [
            (["--nnodes", "two"], "not a whole number"),
            (["--nnodes", "0"], "the number must be at least 1"),
            (["--node-rank", "-1"], "the number must not be negative"),
            (["--master-port", "65536"], "the number is too large"),
        ] {
            let error = PlannedTrain::try_parse_from(arguments).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
