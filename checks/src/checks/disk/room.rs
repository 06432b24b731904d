//! What the checks of a disk's room have in common: how little is too little, and how messages name a disk.

use crate::facts::FileSystem;

/// In bytes. Below this, a checkpoint may no longer fit.
pub(super) const LEAST: u64 = 500_000_000;

/// In bytes. Below this, an installation and a few runs will soon fill the disk.
pub(super) const COMFORTABLE: u64 = 5_000_000_000;

/// With fewer files that may still be created, a disk is as good as full.
pub(super) const LEAST_FILES: u64 = 1000;

/// The disk by its mount point, as in `df`.
pub(super) fn place(space: &FileSystem, folder: &str) -> String {
    format!(" ({})", space.mount.as_deref().unwrap_or(folder))
}
