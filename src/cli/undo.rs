//! The command line of `yolo undo`.

use clap::Args;

/// The options of `yolo undo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without a number, it lists all changes. It never unregisters a distribution and never deletes data \
                  sets, runs, or weights that you may have trained. Exit status: 0 if everything named was undone, \
                  1 if something was not"
)]
pub(crate) struct UndoArgs {
    /// Changes to undo, by their numbers in the list; `last` is the latest one that can be undone
    #[arg(value_name = "NUMBER", value_parser = which)]
    pub(crate) which: Vec<Which>,
    /// Show what would be done without doing it
    #[arg(long, requires = "which")]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long, requires = "which")]
    pub(crate) yes: bool,
    /// Also restore files that were edited since; a copy of the current file is kept
    #[arg(long, requires = "which")]
    pub(crate) force: bool,
    /// Print the changes and the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A change, as the user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Last,
    Number(u64),
}

fn which(text: &str) -> Result<Which, String> {
    match text {
        "last" => Ok(Which::Last),
        number => number.parse().map(Which::Number).map_err(|_| {
            "it is neither `last` nor the number of a change; `yolo undo` lists them".to_owned()
        }),
    }
}
