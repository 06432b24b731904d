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
    /// Several ranks, and ranks that are killed
    Ranks,
}

impl Stage {
    /// All stages, in the order in which they run.
    pub const ALL: [Self; 7] =
        [Self::Doctor, Self::Train, Self::Tests, Self::Resume, Self::Memory, Self::Speed, Self::Ranks];

    /// Its name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Doctor => "doctor",
            Self::Train => "train",
            Self::Tests => "tests",
            Self::Resume => "resume",
            Self::Memory => "memory",
            Self::Speed => "speed",
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
            Self::Ranks => "several ranks train together, and a dead one is named",
        }
    }

    /// How long it may take: with every model and batch size or not, and with the Python original or not.
    pub fn limit(self, full: bool, with_original: bool) -> Duration {
        let seconds = match self {
            Self::Doctor => 60,
            Self::Train => 150,
            Self::Tests => 90,
            Self::Resume => 100,
            Self::Memory => 75,
            Self::Speed if full => 1500,
            Self::Speed if with_original => 350,
            Self::Speed => 200,
            Self::Ranks => 100,
        };
        Duration::from_secs(seconds)
    }
}
