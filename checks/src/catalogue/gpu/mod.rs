//! Catalogue entries about the driver and GPUs, in one file per subject.

mod chosen;
mod driver;
mod health;
mod peers;

use super::Entry;

pub(super) const ROWS: &[&[Entry]] = &[driver::ROWS, chosen::ROWS, health::ROWS, peers::ROWS];
