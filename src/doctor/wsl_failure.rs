//! Why WSL does not start, at a command that should run in it: the finding that `yolo doctor` shows, with its cause and
//! its remedy, in the message of the command.

use super::text;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::in_wsl::InWslError;
use crate::machine;

/// The error, with the finding if what `wsl.exe` wrote names one. What `yolo setup --wsl` repairs needs no other remedy.
pub(crate) fn with_finding(error: InWslError, dirs: &YoloDirs) -> CommandError {
    let Some(said) = error.said().filter(|_| !error.is_for_setup()) else { return error.into() };
    let Some(finding) = yolo_checks::wsl_failure(&machine::this_host(dirs), &said.command, &said.output)
    else {
        return error.into();
    };
    let mut shown = String::new();
    text::show(&mut shown, &finding, false);
    CommandError::NoWsl {
        error: Box::new(error.before_finding()),
        finding: shown.trim_end().to_owned(),
        id: finding.id,
    }
}
