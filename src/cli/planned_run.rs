//! The command line of a planned run: the options of `yolo train` that follow `--` in `yolo doctor` and
//! `yolo setup`.

use clap::{Args, Parser};

use super::TrainArgs;

/// The options of a planned run, which follow `--` in other commands.
#[derive(Debug, Parser)]
#[command(name = "yolo train", no_binary_name = true, styles = super::STYLES)]
pub(crate) struct PlannedTrain {
    #[command(flatten)]
    pub(crate) train: TrainArgs,
    #[command(flatten)]
    pub(crate) future: FutureArgs,
}

/// Options of a future `yolo train`, for checking a machine before it takes part in a run.
#[derive(Debug, Args)]
pub(crate) struct FutureArgs {
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
