//! Windows Subsystem for Linux: the rows of the catalogue, by what they are about.

mod disk;
mod gpu;
mod installation;
mod network;
mod session;
mod settings;

use super::Entry;

pub(super) const ROWS: &[&[Entry]] =
    &[installation::ROWS, gpu::ROWS, settings::ROWS, disk::ROWS, network::ROWS, session::ROWS];
