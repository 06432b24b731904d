//! The options of the commands that start ranks, with their help: one file per command. `None` and
//! `false` mean that the user did not give the option; [`crate::run`] applies the defaults, because
//! the built-in data set has others. The names are YOLOv5's (spec §12).
//!
//! Numbers are parsed by [`crate::number`], whose messages are written for users. clap lets negative
//! ones through, so that the parser can reject them.

mod bench;
mod export;
mod predict;
mod train;
mod val;
mod workers;

use clap::Args as _;

pub use bench::{BenchOptions, LoaderThreads};
pub use export::{ExportOptions, Yolov5ExportOptions};
pub use predict::PredictOptions;
pub use train::{
    BackendOption, Balance, Cache, Optimizer, Parallel, PrecisionOption, TrainOptions, run_to_resume,
};
pub use val::ValOptions;
pub use workers::Workers;

/// The option of a field of [`TrainOptions`] as the help names it: `--batch` of `batch_size`. A field that has none is
/// named in the same way.
pub fn option_name(field: &str) -> String {
    let command = TrainOptions::augment_args(clap::Command::new("train"));
    let option = command.get_arguments().find(|option| option.get_id() == field);
    let long = option.and_then(|option| option.get_long());
    format!("--{}", long.map_or_else(|| field.replace('_', "-"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn messages_name_an_option_as_its_help_does() {
        assert_eq!(option_name("batch_size"), "--batch");
        assert_eq!(option_name("nproc_per_node"), "--nproc-per-node");
        assert_eq!(option_name("no_such_field"), "--no-such-field");
    }

    #[test]
    fn invalid_numbers_have_messages_of_ours() {
        let commands = [
            BenchOptions::augment_args(Command::new("bench")),
            ExportOptions::augment_args(Command::new("export")),
            PredictOptions::augment_args(Command::new("predict")),
            TrainOptions::augment_args(Command::new("train")),
            ValOptions::augment_args(Command::new("val")),
        ];
        for command in commands {
            let options: Vec<String> =
                command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
            for option in options {
                let error_for = |value: &str| {
                    let words = [command.get_name(), &format!("--{option}"), value];
                    command.clone().try_get_matches_from(words).err()
                };
                let Some(error) = error_for("§") else { continue };
                let is_number = error.kind() == ErrorKind::ValueValidation;
                assert!(!is_number || error.to_string().contains("not a "), "--{option}: {error}");
                let negative = error_for("-1").map(|error| error.kind());
                assert!(!is_number || negative != Some(ErrorKind::UnknownArgument), "--{option} -1");
            }
        }
    }
}
