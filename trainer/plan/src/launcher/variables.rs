//! Reading single variables of a launcher, with errors that name them.

use super::name::Launcher;
use crate::error::PlanError;

/// What to do about variables that a launcher sets and that cannot be right.
pub(super) const CHECK: &str =
    "check the launcher and its version; docs/launchers.md lists what `yolo rank` reads";

/// The environment of this process.
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// The value, if the variable is set and not empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The value as a number.
    pub(super) fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, PlanError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok();
        number.map(Some).ok_or_else(|| {
            PlanError::usage(format!("{name} is `{text}`, which is not a number")).with_hint(CHECK)
        })
    }

    /// The value as a number. `launcher` is who sets it.
    pub(super) fn required<N: std::str::FromStr>(
        &self,
        name: &str,
        launcher: Launcher,
    ) -> Result<N, PlanError> {
        self.number(name)?.ok_or_else(|| missing(name, launcher))
    }

    /// The value as a port.
    pub(super) fn port(&self, name: &str) -> Result<Option<u16>, PlanError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let port = text.parse().ok().filter(|port| *port > 0);
        port.map(Some).ok_or_else(|| {
            PlanError::usage(format!("{name} is `{text}`, which is not a port from 1 to 65535"))
                .with_hint(CHECK)
        })
    }
}

/// The error for a variable that is not set.
pub(super) fn missing(name: &str, launcher: Launcher) -> PlanError {
    PlanError::usage(format!("{name} is not set, which {launcher} sets for each process")).with_hint(CHECK)
}
