//! Paths as messages and plans show them.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and with `..` resolved, for messages and plans.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // The parent of a link is another folder, so `..` after a link stays.
            Component::ParentDir
                if matches!(result.components().next_back(), Some(Component::Normal(_)))
                    && !result.is_symlink() =>
            {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}
