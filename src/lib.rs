//! The library of the command `yolo`: everything that asks, fetches, plans and starts, and that
//! links nothing of libtorch. `main.rs` is a thin shell around [`run`].

mod cli;
pub mod dirs;
mod doctor;
mod error;
pub mod fetch;
mod host;
mod interrupt;
mod launch;
mod needs;
mod printer;
mod run_folder;
pub mod setup;
mod setup_command;
mod train;
mod val;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use printer::Printer;

/// Reads the words of the command line, does what they say, and says how it went: 0 when it was
/// done, 1 when it could not be, 2 when the words were wrong, 130 when the user interrupted it.
pub fn run() -> ExitCode {
    // clap answers --help and --version, and wrong words with exit code 2.
    let cli = Cli::parse();
    let printer = Printer::new(cli.quiet);
    let done = match &cli.command {
        Command::Train(args) => train::train(args, cli.offline, &printer),
        Command::Val(args) => val::val(args, cli.offline, &printer),
        Command::Doctor(args) => Ok(doctor::doctor(args, &printer)),
        Command::Setup(args) => setup_command::setup(args, cli.offline, &printer),
        Command::LookAtLibtorch { folder } => look_at_libtorch(folder, &printer),
    };
    match done {
        Ok(_) if printer.lost().is_some() => {
            let why = printer.lost().unwrap_or_default();
            printer.error(format!("what was asked for cannot be written to stdout: {why}"), None);
            ExitCode::FAILURE
        }
        Ok(code) => code,
        Err(error) => {
            printer.error(&error, error.hint());
            ExitCode::FAILURE
        }
    }
}

/// The process that `yolo setup` starts to try a libtorch.
fn look_at_libtorch(folder: &std::path::Path, printer: &Printer) -> Result<ExitCode, error::CommandError> {
    Ok(match setup::smoke_test::run(folder) {
        Ok(answer) => {
            printer.result(answer);
            ExitCode::SUCCESS
        }
        Err(why) => {
            // The process that asked puts it into its own message.
            printer.warning(why);
            ExitCode::FAILURE
        }
    })
}
