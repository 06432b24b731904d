//! Which commands run in WSL when they are typed at a Windows prompt. Those that train, or need what training needs, do.
//! Those that only read files run in Windows if the files are there, which needs no WSL. Mistakes that the options show
//! by themselves are reported before WSL starts, which takes seconds.

use std::path::PathBuf;

use yolo_plan::run::{check_train_options, check_val_options};

use super::run::not_started;
use crate::cli::{Cli, Command, MachineArgs, TrainArgs};
use crate::dirs::YoloDirs;
use crate::doctor::with_finding;
use crate::error::CommandError;
use crate::in_wsl::{InWslError, Wsl, arguments_of_this_process};
use crate::launch::machines::Place as MachinePlace;
use crate::printer::{Printer, RunEvents};

/// Where a command runs.
enum Place {
    Windows,
    Wsl,
    /// In WSL if there is one.
    Either,
}

/// Runs the command in WSL if it belongs there, and returns its exit status.
pub(super) fn in_wsl(cli: &Cli, printer: &Printer) -> Result<Option<u8>, CommandError> {
    let place = place(cli);
    if matches!(place, Place::Windows) {
        return Ok(None);
    }
    check_options(&cli.command, printer)?;
    let dirs = YoloDirs::from_env()?;
    let wsl = match Wsl::choose(cli.distribution.as_deref(), &dirs) {
        Err(_) if matches!(place, Place::Either) => return Ok(None),
        chosen => chosen.map_err(|error| with_finding(error, &dirs))?,
    };
    let trains = matches!(cli.command, Command::Train(_));
    let ended = wsl.run(&arguments_of_this_process(), trains);
    Ok(Some(ended.map_err(|error| {
        if error.is_sudden() {
            printer.end_line();
        }
        with_finding(error, &dirs)
    })?))
}

/// The WSL whose part a report in Windows includes: that of the doctor, and the list of changes. `None` for other commands,
/// and for what a doctor says about anything but this PC.
pub(super) fn asked_for_report(cli: &Cli) -> Option<Result<Wsl, InWslError>> {
    let is_about_this_pc = match &cli.command {
        Command::Doctor(args) => {
            !args.list
                && !args.reference
                && args.explain.is_none()
                && args.replay.is_none()
                && args.compare.is_empty()
        }
        Command::Undo(args) => args.which.is_empty(),
        _ => false,
    };
    let dirs = YoloDirs::from_env().ok().filter(|_| is_about_this_pc)?;
    let wsl = Wsl::choose(cli.distribution.as_deref(), &dirs);
    // Without WSL there is nothing to list in it.
    let is_without = matches!(wsl, Err(InWslError::NotInstalled | InWslError::NoDistribution { .. }));
    let is_list = matches!(cli.command, Command::Undo(_));
    (!is_list || !is_without).then_some(wsl)
}

/// Whether the command is `yolo setup --wsl`.
pub(super) fn sets_up_wsl(command: &Command) -> bool {
    matches!(command, Command::Setup(args) if args.wsl)
}

/// Reports a mistake that the options show by themselves, also as an event for programs.
fn check_options(command: &Command, printer: &Printer) -> Result<(), CommandError> {
    let (checked, json) = match command {
        Command::Train(args) => (check_training(args), args.json),
        Command::Val(args) => (check_val_options(&args.options).map_err(CommandError::from), args.json),
        _ => return Ok(()),
    };
    checked.map_err(|error| not_started(json.then(|| RunEvents::new(printer)).as_ref(), error))
}

fn check_training(args: &TrainArgs) -> Result<(), CommandError> {
    args.yolov5_only.refuse()?;
    if args.evolution.evolve.is_some() {
        return Ok(());
    }
    let MachineArgs { nnodes, node_rank, master_addr, master_port } = &args.machines;
    MachinePlace::of_options(*nnodes, *node_rank, master_addr.as_deref(), *master_port)?;
    Ok(check_train_options(&args.options)?)
}

fn place(cli: &Cli) -> Place {
    match &cli.command {
        Command::Train(_)
        | Command::Rank(_)
        | Command::Val(_)
        | Command::Export(_)
        | Command::Predict(_)
        | Command::Bench(_) => Place::Wsl,
        Command::Setup(args) if !args.wsl => Place::Wsl,
        // It starts ranks.
        Command::Doctor(args) if args.deep => Place::Wsl,
        // Windows has changes and files of its own; a distribution is named to mean those inside it.
        Command::Undo(_) | Command::Compare(_) | Command::Weights(_) if cli.distribution.is_some() => {
            Place::Wsl
        }
        Command::Compare(args) => of_files(&args.runs),
        Command::Weights(args) => of_files(&args.files),
        _ => Place::Windows,
    }
}

fn of_files(files: &[PathBuf]) -> Place {
    if files.iter().all(|file| file.exists()) { Place::Windows } else { Place::Either }
}
