//! The command line of a planned run: the options of `yolo train` that follow `--` in `yolo doctor` and
//! `yolo setup`.

use clap::Parser;

use super::TrainArgs;

/// The options of a planned run, which follow `--` in other commands.
#[derive(Debug, Parser)]
#[command(name = "yolo train", no_binary_name = true, override_usage = "yolo train [OPTIONS]", styles = super::STYLES)]
pub(crate) struct PlannedTrain {
    #[command(flatten)]
    pub(crate) train: TrainArgs,
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
