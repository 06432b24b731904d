//! A disk that is soon full: a small tmpfs, which root can mount. A test that may not is skipped.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::Path;
use std::process::{Command, Stdio};

/// A small file system, unmounted when it is dropped.
pub struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Mounts one on an empty folder; `None` without the right to.
    pub fn mount(folder: &'a Path, size: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
