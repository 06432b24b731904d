//! Whether the machine has room for the kit: checked before the first stage, so that no stage fails
//! halfway for a reason that has nothing to do with it.

use std::path::Path;

use sysinfo::System;
use yolo_base::format::bytes;

use crate::error::KitError;

/// Runs, checkpoints and logs of all stages, with room to spare.
const DISK: u64 = 1 << 30;
/// The trainer with libtorch, its loader, and the data set.
const MEMORY: u64 = 4 << 30;

/// Checks free disk space at `folder` and available memory.
///
/// # Errors
/// When there is too little.
pub fn check(folder: &Path) -> Result<(), KitError> {
    let disk = rustix::fs::statvfs(folder).map_err(std::io::Error::from)?;
    let free = disk.f_bavail * disk.f_frsize;
    let mut system = System::new();
    system.refresh_memory();
    judge(free, system.available_memory(), folder)
}

fn judge(free: u64, memory: u64, folder: &Path) -> Result<(), KitError> {
    if free < DISK {
        return Err(KitError::Unable(format!(
            "{} has {} free, and {} is needed; set TMPDIR to a folder on a larger disk",
            folder.display(),
            bytes(free),
            bytes(DISK)
        )));
    }
    if memory < MEMORY {
        return Err(KitError::Unable(format!(
            "{} of memory is available, and {} is needed; stop other programs",
            bytes(memory),
            bytes(MEMORY)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_disk_or_memory_is_named_with_both_sizes() {
        let folder = Path::new("/tmp");
        assert!(judge(2 << 30, 8 << 30, folder).is_ok());
        let message = judge(1 << 20, 8 << 30, folder).unwrap_err().to_string();
        assert!(
            message.contains("/tmp has 1.0 MB free") && message.contains("1.1 GB is needed"),
            "{message}"
        );
        let message = judge(2 << 30, 1 << 30, folder).unwrap_err().to_string();
        assert!(message.contains("of memory is available"), "{message}");
    }
}
