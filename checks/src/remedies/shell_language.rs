//! The languages of shells in which remedies are written.

/// A language of shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// sh, bash, zsh and their relatives.
    Posix,
    Fish,
    /// csh and tcsh, which some clusters give their users.
    Csh,
    Nushell,
    /// That of Windows, and `pwsh` on Linux.
    PowerShell,
    /// Python in a cell of a notebook: what `!` starts there cannot change the variables of the next line.
    Notebook,
}
