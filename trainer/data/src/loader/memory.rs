//! Where a loader keeps decoded images, and how much memory of the machine is its own to spend: a rank that is alone on its
//! machine decides for itself, ranks that one `yolo` has started share images, and ranks that another
//! launcher has started divide the memory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use sysinfo::System;
use yolo_base::format::memory;

/// The memory for decoded images on the machine of a rank.
#[derive(Debug, Clone)]
pub struct ImageMemory {
    ranks: usize,
    shared: Option<Arc<File>>,
}

impl Default for ImageMemory {
    /// That of a process that is alone on its machine.
    fn default() -> Self {
        Self { ranks: 1, shared: None }
    }
}

impl ImageMemory {
    /// That of one of `ranks` on this machine, which share the images in a file of [`Self::shareable`] if they have one.
    pub fn of_rank(ranks: usize, shared: Option<File>) -> Self {
        let shared = shared.filter(|_| ranks > 1);
        Self { ranks: ranks.max(1), shared: shared.map(Arc::new) }
    }

    /// A file for the images that ranks share. They must inherit it.
    ///
    /// # Errors
    ///
    /// If the system has no files that only processes with their descriptor can see.
    pub fn shareable() -> io::Result<File> {
        #[cfg(target_os = "linux")]
        return super::shared::create();
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The same memory for images that ranks do not share.
    pub(super) fn apart(&self) -> Self {
        Self { ranks: self.ranks, shared: None }
    }

    /// The ranks that have memory of their own on this machine.
    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// The file that ranks share.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "ranks run on Linux"))]
    pub(super) fn shared(&self) -> Option<&File> {
        self.shared.as_deref()
    }
}

/// How much of a training split a loader keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The ranks that share it; 1 for images of this process alone.
    pub ranks: usize,
    /// Images in memory.
    pub images: usize,
    /// Images of the split.
    pub of: usize,
    /// The bytes of those in memory.
    pub bytes: u64,
    /// How often an image was decoded, by all of these ranks.
    pub decoded: u64,
}

/// The memory available without swapping, within the limits of a container, in bytes.
pub(super) fn available_memory() -> u64 {
    let mut system = System::new();
    system.refresh_memory();
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    system.available_memory().min(limit)
}

/// The warning if `needed` bytes of images in each of several `processes`, with a margin of 10 %, do not fit in memory
/// (spec §7).
pub(super) fn ram_warning(needed: u64, processes: usize, available: u64) -> Option<String> {
    let needed = needed.saturating_mul(processes as u64);
    let with_margin = needed.saturating_add(needed / 10);
    let of = match processes {
        1 => String::new(),
        ranks => format!(" for {ranks} ranks that do not share it"),
    };
    (with_margin >= available).then(|| {
        format!(
            "--cache ram needs {}{of}, including a margin of 10 %, but {} is free; not all images are kept in memory",
            memory(with_margin),
            memory(available)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ram_cache_needs_a_margin_of_a_tenth() {
        assert_eq!(ram_warning(100 << 20, 1, 200 << 20), None);
        assert_eq!(
            ram_warning(100 << 20, 1, 105 << 20).as_deref(),
            Some(
                "--cache ram needs 110.0 MiB, including a margin of 10 %, but 105.0 MiB is free; not all images are kept in memory"
            )
        );
    }

    #[test]
    fn ranks_that_do_not_share_it_need_it_once_each() {
        assert_eq!(
            ram_warning(100 << 20, 2, 200 << 20).as_deref(),
            Some(
                "--cache ram needs 220.0 MiB for 2 ranks that do not share it, including a margin of 10 %, but \
                 200.0 MiB is free; not all images are kept in memory"
            )
        );
    }
}
