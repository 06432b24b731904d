//! What the checks of a disk's room have in common: how little is too little, and how messages name a disk.

use crate::facts::FileSystem;

/// In bytes. Below this, a checkpoint may no longer fit.
pub(super) const LEAST: u64 = 500_000_000;

/// The disk by its mount point, as in `df`.
pub(super) fn place(space: &FileSystem, folder: &str) -> String {
    format!(" ({})", space.mount.as_deref().unwrap_or(folder))
}
