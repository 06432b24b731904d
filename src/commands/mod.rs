//! What each command does, one file per command; that of `yolo doctor` is the folder `src/doctor/`.
//! A command calls the modules that do the work and prints; no command calls another.
//! [`run`](mod@run) is the shared path of everything that starts ranks.

mod auto_batch;
mod before_training;
mod bench;
mod bench_tables;
mod command_line;
mod compare;
mod completions;
mod evolve;
mod export;
mod interrupt;
mod loader_threads;
mod log_folder;
mod machines;
mod missing;
mod predict;
mod rank;
mod resumed_checkpoint;
mod run;
mod setup;
mod train;
mod undo;
mod val;
mod weights;

use std::process::ExitCode;

use clap::Parser as _;
use yolo_base::exit;

use crate::cli::{Cli, Command};
use crate::doctor;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::setup::smoke_test;

/// Parses the command line and runs the command that it names. The exit statuses are those of
/// [`yolo_base::exit`].
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return command_line::answered(&answer, std::env::args_os().skip(1)),
    };
    let printer = Printer::new(cli.quiet);
    let result = dispatch(&cli, &printer).and_then(|status| match printer.lost() {
        Some(why) => Err(CommandError::Output { why: why.to_owned() }),
        None => Ok(status),
    });
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            printer.error(&error);
            ExitCode::from(error.exit_status())
        }
    }
}

/// Runs one command and returns its exit status.
fn dispatch(cli: &Cli, printer: &Printer) -> Result<u8, CommandError> {
    match &cli.command {
        Command::Train(args) if args.evolution.evolve.is_some() => evolve::evolve(args, cli.offline, printer),
        Command::Train(args) => train::train(args, cli.offline, printer),
        Command::Rank(args) => rank::rank(args, cli.offline, printer),
        Command::Val(args) => val::val(args, cli.offline, printer),
        Command::Export(args) => export::export(args, cli.offline, printer),
        Command::Predict(args) => predict::predict(args, cli.offline, printer),
        Command::Bench(args) if args.has_tables() => bench_tables::bench_tables(args, cli.offline, printer),
        Command::Bench(args) => bench::bench(args, cli.offline, printer),
        Command::Compare(args) => compare::compare(args, printer),
        Command::Doctor(args) => doctor::doctor(args, printer),
        Command::Setup(args) => setup::setup(args, cli.offline, printer),
        Command::Undo(args) => undo::undo(args, printer),
        Command::Weights(args) => weights::weights(args, printer),
        Command::Completions(args) => Ok(completions::completions(args, printer)),
        Command::Man(args) => completions::man(args),
        Command::SmokeTest { folder } => Ok(match smoke_test::run(folder) {
            Ok(answer) => {
                printer.result(answer);
                exit::SUCCESS
            }
            Err(why) => {
                // The process that started this one puts it into its own message.
                printer.warning(why);
                exit::FAILURE
            }
        }),
    }
}
