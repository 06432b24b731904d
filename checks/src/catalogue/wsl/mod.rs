//! Catalogue entries about the Windows Subsystem for Linux, in one file per subject.

mod disk;
mod gpu;
mod installation;
mod network;
mod session;
mod settings;
mod start;

use super::Entry;

pub(super) const ROWS: &[&[Entry]] =
    &[installation::ROWS, start::ROWS, gpu::ROWS, settings::ROWS, disk::ROWS, network::ROWS, session::ROWS];
