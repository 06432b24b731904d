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
mod data_to_linux;
mod evolve;
mod export;
mod in_windows;
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

use yolo_base::exit;

use crate::cli::{self, Cli, Command};
use crate::doctor;
use crate::error::CommandError;
use crate::in_wsl::{self, InWslError, Prompt};
use crate::printer::Printer;
use crate::setup::smoke_test;

/// Parses the command line and runs the command that it names. The exit statuses are those of
/// [`yolo_base::exit`].
pub fn run() -> ExitCode {
    start(cfg!(windows))
}

/// Does what `yolo.exe` does, on any system: for tests of commands that run in WSL.
#[doc(hidden)]
pub fn run_as_in_windows() -> ExitCode {
    start(true)
}

fn start(in_windows: bool) -> ExitCode {
    let prompt = if in_windows { None } else { Prompt::of_this_process() };
    let cli = match cli::parse(prompt) {
        Ok(cli) => cli,
        Err(answer) => return command_line::answered(answer, std::env::args_os().skip(1)),
    };
    // It is another `yolo` that reads this one's status, not `yolo.exe`.
    let prompt = prompt.filter(|_| !cli.command.is_internal());
    let printer = Printer::new(cli.quiet);
    let result =
        run_where_it_belongs(&cli, in_windows, prompt, &printer).and_then(|status| match printer.lost() {
            Some(why) => Err(CommandError::Output { why: why.to_owned() }),
            None => Ok(status),
        });
    let status = result.unwrap_or_else(|error| {
        printer.error(&error);
        error.exit_status()
    });
    ExitCode::from(if prompt.is_some() { in_wsl::exit_status(status) } else { status })
}

/// Runs the command here, in the folder of the Windows prompt at which it was typed, or in WSL.
fn run_where_it_belongs(
    cli: &Cli,
    in_windows: bool,
    prompt: Option<&Prompt>,
    printer: &Printer,
) -> Result<u8, CommandError> {
    if in_windows && let Some(status) = in_windows::in_wsl(cli, printer)? {
        return Ok(status);
    }
    match (prompt, &cli.distribution) {
        (Some(prompt), _) => {
            if let Some(warning) = prompt.enter()? {
                printer.warning(warning);
            }
        }
        (None, Some(name)) if !in_windows && !in_windows::sets_up_wsl(&cli.command) => {
            return Err(InWslError::NotWindows(name.clone()).into());
        }
        _ => {}
    }
    dispatch(cli, &|| in_windows.then(|| in_windows::asked_for_report(cli)).flatten(), printer)
}

/// Runs one command and returns its exit status. `wsl` is for reports in Windows that have a part of WSL.
fn dispatch(cli: &Cli, wsl: &doctor::FindWsl<'_>, printer: &Printer) -> Result<u8, CommandError> {
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
        Command::Doctor(args) => doctor::doctor(args, wsl, printer),
        Command::Setup(args) => setup::setup(args, cli.distribution.as_deref(), cli.offline, printer),
        Command::Undo(args) => undo::undo(args, wsl, printer),
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
