//! `yolo completions` and `yolo man`, both generated from the command line's definition.

use clap::CommandFactory as _;
use yolo_base::exit;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::error::CommandError;
use crate::printer::Printer;

/// Prints a completion script.
pub(super) fn completions(args: &CompletionsArgs, printer: &Printer) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "yolo", &mut script);
    printer.result(String::from_utf8_lossy(&script).trim_end());
    exit::SUCCESS
}

/// Writes one man page per command.
pub(super) fn man(args: &ManArgs) -> Result<u8, CommandError> {
    let write = || {
        fs_err::create_dir_all(&args.to)?;
        clap_mangen::generate_to(Cli::command(), &args.to)
    };
    write().map_err(|source| CommandError::File {
        what: format!("cannot write the man pages to {}", args.to.display()),
        source,
        hint: Some("name a writable folder with --to".to_owned()),
    })?;
    Ok(exit::SUCCESS)
}
