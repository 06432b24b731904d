//! The command line, one file per command. The options of a command that starts ranks are in
//! [`yolo_plan::options`], from which its file takes them. Nothing is decided here.

mod bench;
mod compare;
mod completions;
mod doctor;
mod evolve;
mod export;
mod planned_run;
mod predict;
mod setup;
mod styles;
mod train;
mod undo;
mod val;
mod weights;
mod yolov5_only;

pub(crate) use bench::BenchArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use completions::{CompletionsArgs, ManArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use export::ExportArgs;
pub(crate) use planned_run::PlannedTrain;
pub(crate) use predict::PredictArgs;
pub(crate) use setup::{SetupArgs, VariantName};
pub(crate) use train::{MachineArgs, TrainArgs};
pub(crate) use undo::{UndoArgs, Which};
pub(crate) use val::ValArgs;
pub(crate) use weights::WeightsArgs;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{CommandFactory as _, Parser, Subcommand, ValueHint};
use yolo_base::env::YOLO_OFFLINE;
use yolo_base::exit;
use yolo_plan::options::run_to_resume;

use crate::in_wsl::{self, Prompt};
use styles::STYLES;

/// Train YOLOv5 object detectors, starting from a bare machine.
#[derive(Debug, Parser)]
#[command(name = "yolo", version, styles = STYLES, max_term_width = 100, propagate_version = true)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print only results, warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Download nothing; fail if something is missing
    #[arg(long, global = true, env = YOLO_OFFLINE, value_parser = switch)]
    pub(crate) offline: bool,

    /// On Windows: the WSL distribution to work in [default: the one that `yolo setup --wsl` prepared, else WSL's default]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) distribution: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Whether a variable that takes the place of an option is on. An empty one counts as none.
fn switch(value: &str) -> Result<bool, String> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "y" | "t" => Ok(true),
        "" | "0" | "false" | "no" | "off" | "n" | "f" => Ok(false),
        _ => Err(format!("{YOLO_OFFLINE} takes 1, true, yes or on, and 0, false, no or off")),
    }
}

/// Parses the arguments of this process. What was typed at a Windows prompt has Windows paths.
pub(crate) fn parse(prompt: Option<&'static Prompt>) -> Result<Cli, clap::Error> {
    parse_from(std::env::args_os(), prompt)
}

fn parse_from<T: clap::FromArgMatches + clap::CommandFactory>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    prompt: Option<&'static Prompt>,
) -> Result<T, clap::Error> {
    let mut command = T::command();
    if let Some(prompt) = prompt {
        command = reading_windows_paths(command, prompt);
    }
    let matches = command.try_get_matches_from_mut(arguments)?;
    T::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The options of a planned run, which follow `--` in other commands. Invalid ones end the program with clap's message.
#[expect(clippy::exit, reason = "as after any other mistake in the arguments, nothing has begun")]
pub(crate) fn planned(arguments: &[String]) -> PlannedTrain {
    parse_from(arguments, Prompt::of_this_process()).unwrap_or_else(|error| {
        // If nobody reads the message, the status still tells.
        let _ = error.print();
        let status = u8::try_from(error.exit_code()).unwrap_or(exit::FAILURE);
        std::process::exit(in_wsl::exit_status(status).into())
    })
}

/// The command, whose arguments that are paths, by their type or their hint, may be those of Windows.
fn reading_windows_paths(command: clap::Command, prompt: &'static Prompt) -> clap::Command {
    let translated = move |arg: clap::Arg| {
        let of_type = arg.get_value_parser().type_id();
        if !matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath) {
            arg
        } else if arg.get_id() == "resume" {
            // Without a value, it means the newest run, which is no path.
            arg.value_parser(move |text: &str| match run_to_resume(text)? {
                newest if newest.is_empty() => Ok(newest),
                path => prompt.path(&path).map_err(|error| error.to_string()),
            })
        } else if of_type == ValueParser::path_buf().type_id() {
            arg.value_parser(move |text: &str| prompt.path(text).map(PathBuf::from))
        } else if of_type == ValueParser::string().type_id() {
            arg.value_parser(move |text: &str| prompt.path(text))
        } else {
            arg
        }
    };
    command.mut_args(translated).mut_subcommands(move |command| reading_windows_paths(command, prompt))
}

impl Command {
    /// Whether `yolo` starts this itself, and nobody types it.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self, Self::SmokeTest { .. })
    }
}

/// The commands. Those with many options have a usage line of their own: clap's, in a message about one option, has all
/// options that were given.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a detector
    // The last of several equal options wins, as in YOLOv5, so that scripts can append options.
    #[command(args_override_self = true, infer_long_args = true, override_usage = "yolo train [OPTIONS]")]
    Train(Box<TrainArgs>),
    /// Run one rank of a training run that torchrun, Slurm or Kubernetes starts
    #[command(
        args_override_self = true,
        infer_long_args = true,
        override_usage = "yolo rank [OPTIONS]",
        mut_args(train::hide_what_launchers_decide)
    )]
    Rank(Box<TrainArgs>),
    /// Evaluate a detector on a data set
    #[command(args_override_self = true, infer_long_args = true, override_usage = "yolo val [OPTIONS]")]
    Val(Box<ValArgs>),
    /// Export a detector to other formats
    #[command(args_override_self = true, infer_long_args = true, override_usage = "yolo export [OPTIONS]")]
    Export(Box<ExportArgs>),
    /// Find objects in pictures and videos
    #[command(
        visible_alias = "detect",
        args_override_self = true,
        infer_long_args = true,
        override_usage = "yolo predict [OPTIONS] [SOURCE]..."
    )]
    Predict(Box<PredictArgs>),
    /// Measure how fast this machine trains, and what limits it
    #[command(args_override_self = true, infer_long_args = true, override_usage = "yolo bench [OPTIONS]")]
    Bench(Box<BenchArgs>),
    /// Compare runs: metrics, settings that differ, and classes
    Compare(CompareArgs),
    /// Check this machine for problems that would stop or slow down training
    Doctor(DoctorArgs),
    /// Install what training needs: libtorch, the trainer, weights and data sets
    Setup(SetupArgs),
    /// List what yolo has changed on this machine, and undo changes
    Undo(UndoArgs),
    /// Show what is in a weights file, and what it would execute in Python
    #[command(infer_long_args = true)]
    Weights(WeightsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(ManArgs),
    /// Load a libtorch and report what it sees; `yolo setup` starts this as a separate process
    #[command(name = crate::setup::smoke_test::SUBCOMMAND, hide = true)]
    SmokeTest {
        /// The folder with the libraries
        folder: PathBuf,
    },
}

/// The commands that `--help` lists, for the tests of documentation and completions.
pub fn command_names() -> Vec<String> {
    let cli = Cli::command();
    let public = cli.get_subcommands().filter(|command| !command.is_hide_set());
    public.map(|command| command.get_name().to_owned()).collect()
}

/// Whether the command line accepts these arguments, for the test of the documentation.
///
/// # Errors
/// With clap's message.
pub fn parses(arguments: &[&str]) -> Result<(), String> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let unless_help = |error: clap::Error| match error.kind() {
        DisplayHelp | DisplayVersion => Ok(()),
        _ => Err(error.to_string()),
    };
    let cli = match Cli::try_parse_from(std::iter::once(&"yolo").chain(arguments)) {
        Ok(cli) => cli,
        Err(error) => return unless_help(error),
    };
    let planned_run = match &cli.command {
        Command::Doctor(args) => &args.run,
        Command::Setup(args) => &args.train,
        _ => return Ok(()),
    };
    PlannedTrain::try_parse_from(planned_run).map(|_| ()).or_else(unless_help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_can_be_abbreviated_as_in_yolov5() {
        let cli =
            Cli::try_parse_from(["yolo", "train", "--epoch", "3", "--sav", "5", "--evolve", "2"]).unwrap();
        let Command::Train(args) = cli.command else { panic!("another command") };
        assert_eq!((args.options.epochs, args.options.save_period), (Some(3), Some(5)));
        assert!(Cli::try_parse_from(["yolo", "train", "--no", "3"]).is_err(), "that could be several");
    }

    #[test]
    fn options_that_name_files_may_have_windows_paths() {
        fn check(command: &clap::Command, found: &mut Vec<String>) {
            for arg in command.get_arguments() {
                let names = arg.get_value_names().unwrap_or_default();
                let is_file = names.iter().any(|name| {
                    ["FILE", "YAML", "FOLDER", "SOURCE", "RUN", "PT", "CSV"]
                        .iter()
                        .any(|part| name.split(['|', '.', '-']).any(|word| word == *part))
                });
                if is_file
                    && !matches!(
                        arg.get_value_hint(),
                        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
                    )
                {
                    found.push(format!("{} {}", command.get_name(), arg.get_id()));
                }
            }
            command.get_subcommands().for_each(|command| check(command, found));
        }
        let mut found = Vec::new();
        check(&Cli::command(), &mut found);
        assert_eq!(found, Vec::<String>::new(), "give them a value_hint");
    }

    #[test]
    fn a_message_about_an_option_does_not_repeat_the_others() {
        for (line, usage) in [
            ("yolo train --data a --weights b --epochs 3 --bogus", "Usage: yolo train [OPTIONS]\n"),
            ("yolo predict a b --weights c --bogus", "Usage: yolo predict [OPTIONS] [SOURCE]...\n"),
        ] {
            let message = Cli::try_parse_from(line.split(' ')).unwrap_err().to_string();
            assert!(message.contains(usage), "{message}");
        }
    }

    #[test]
    fn a_variable_is_on_or_off() {
        for (value, on) in
            [("1", true), ("True", true), (" yes ", true), ("", false), ("0", false), ("OFF", false)]
        {
            assert_eq!(switch(value), Ok(on), "{value}");
        }
        assert!(switch("maybe").unwrap_err().starts_with("YOLO_OFFLINE takes 1, true"));
    }

    #[test]
    fn recordings_keep_the_names_of_commands() {
        for command in command_names() {
            let kept = yolo_checks::facts::YOLO_COMMANDS.contains(&command.as_str());
            assert!(kept, "add {command} to YOLO_COMMANDS in checks/src/facts/redact/secrets.rs");
        }
    }
}
