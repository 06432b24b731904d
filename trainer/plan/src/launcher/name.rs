//! Who has started a rank, and what messages call it.

use std::fmt;

/// Who has started a rank, as its variables show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "names of programs")]
pub enum Launcher {
    Torchrun,
    Srun,
    Kubernetes,
    /// A script or a person: the variables name no program.
    Unknown,
}

/// Its name in messages.
impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torchrun => "torchrun",
            Self::Srun => "srun",
            Self::Kubernetes => "Kubernetes",
            Self::Unknown => "the launcher",
        })
    }
}
