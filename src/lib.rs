//! The library of the command `yolo`: everything that asks, fetches, plans and starts, and that
//! links nothing of libtorch. `main.rs` is a thin shell around [`run`].

mod cli;
mod doctor;
mod error;
pub mod fetch;
mod host;
mod launch;
pub mod places;
mod printer;
mod run_folder;
pub mod setup;
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
        Command::Train(args) => train::train(args, &printer),
        Command::Val(args) => val::val(args, &printer),
        Command::Doctor(args) => doctor::doctor(args, &printer),
        Command::Setup(_) => setup_command(&printer),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error, error.hint());
            ExitCode::FAILURE
        }
    }
}

/// `yolo setup`: libtorch and, from a checkout, the trainer; the link for cargo is left on the way.
fn setup_command(printer: &Printer) -> Result<ExitCode, error::CommandError> {
    let places = places::Places::from_env()?;
    let programs = host::programs(&places, printer)?;
    printer.say(format_args!(
        "libtorch ({}) is in {}, the trainer is {}",
        programs.libtorch.variant,
        programs.libtorch.root.display(),
        programs.trainer.display()
    ));
    Ok(ExitCode::SUCCESS)
}
