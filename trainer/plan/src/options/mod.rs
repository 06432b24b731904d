//! The options of the commands that start ranks, with their help: one file per command. `None` and
//! `false` mean that the user did not give the option; [`crate::run`] applies the defaults, because
//! the built-in data set has others. The names are YOLOv5's (spec §12).
//!
//! Numbers are parsed by [`crate::number`], whose messages are written for users. clap lets negative
//! ones through, so that the parser can reject them.

mod bench;
mod train;
mod val;
mod workers;

pub use bench::BenchOptions;
pub use train::{BackendOption, Balance, Cache, Optimizer, Parallel, TrainOptions};
pub use val::ValOptions;
pub use workers::Workers;

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;
    use clap::{Args as _, Command};

    use super::*;

    #[test]
    fn invalid_numbers_have_messages_of_ours() {
        let commands = [
            BenchOptions::augment_args(Command::new("bench")),
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
