//! The command lines of `yolo completions` and the hidden `yolo man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// The options of `yolo completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// The options of `yolo man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder for the pages
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}
