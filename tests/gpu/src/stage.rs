//! The stages of the kit: their names, what each proves, how long it may take, and their order. The
//! first minutes prove the most.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The doctor, with and without --deep, and a recording of this machine
    Doctor,
    /// Training to the accuracy that the README states
    Train,
    /// The crates' own tests of a device against the CPU
    Tests,
    /// Runs that are killed or interrupted, and continued
    Resume,
    /// A batch that does not fit, and memory by batch size
    Memory,
    /// Images per second, and what limits them
    Speed,
    /// The Python original side by side
    Original,
    /// Several ranks, and ranks that are killed
    Ranks,
}

impl Stage {
    /// All stages, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::Doctor,
        Self::Train,
        Self::Tests,
        Self::Resume,
        Self::Memory,
        Self::Speed,
        Self::Original,
        Self::Ranks,
    ];

    /// Its name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Doctor => "doctor",
            Self::Train => "train",
            Self::Tests => "tests",
            Self::Resume => "resume",
            Self::Memory => "memory",
            Self::Speed => "speed",
            Self::Original => "original",
            Self::Ranks => "ranks",
        }
    }

    /// What it proves, as a phrase.
    pub fn proves(self) -> &'static str {
        match self {
            Self::Doctor => "the doctor judges this machine correctly",
            Self::Train => "training on the GPU reaches the accuracy of the CPU",
            Self::Tests => "the GPU computes what the CPU computes",
            Self::Resume => "a killed or interrupted run continues to the same result",
            Self::Memory => "a batch that does not fit ends in one message and leaves nothing behind",
            Self::Speed => "how many images per second, and what limits them",
            Self::Original => "how many times as fast as the Python original",
            Self::Ranks => "several ranks train together, and a dead one is named",
        }
    }

    /// How long it may take, with every model and batch size or not. A stage that `--only` names may take longer.
    pub fn limit(self, full: bool) -> Duration {
        let seconds = match self {
            Self::Doctor => 60,
            Self::Train => 150,
            Self::Tests => 120,
            Self::Resume => 130,
            Self::Memory => 110,
            Self::Speed if full => 1100,
            Self::Speed => 360,
            Self::Original if full => 500,
            Self::Original => 300,
            Self::Ranks => 170,
        };
        Duration::from_secs(seconds)
    }

    /// The time without which it does not begin. Most stages would be stopped in the middle with less than half of
    /// theirs; those that measure one thing after the other say what they have not come to.
    pub fn least(self, full: bool) -> Duration {
        match self {
            Self::Speed | Self::Original => Duration::from_secs(60),
            _ => self.limit(full) / 2,
        }
    }
}
