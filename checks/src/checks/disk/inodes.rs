//! Whether more files may be created where space is left: file systems with a fixed number of inodes, and
//! servers with a quota of files, refuse new ones although gigabytes are free.

use super::remote;
use super::room::{LEAST, LEAST_FILES, place};
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// `disk.full` for a file system with space but without inodes.
pub(super) fn used_up(host: &Host, purpose: &str, folder: &str, space: &FileSystem) -> Option<Finding> {
    let files = space.inodes_free.filter(|&files| files < LEAST_FILES)?;
    if space.available.is_none_or(|free| free < LEAST) || files == 0 && !is_limited(host, folder, space) {
        return None;
    }
    let kind = space.kind.as_deref().unwrap_or_default();
    let left = match files {
        0 => "no more files fit".to_owned(),
        1 => "only 1 more file fits".to_owned(),
        _ => format!("only {files} more files fit"),
    };
    let title = format!("{left} on the disk for {purpose}{}", place(space, folder));
    let finding = Finding::new("disk.full", title).seen(folder);
    Some(if remote::of_kind(kind).is_some() {
        finding
            .because(
                "the file server limits the number of files (inodes), by its disk or by a quota, whatever their size: no new \
                 file can be written, with \"No space left on device\" or \"Disk quota exceeded\"",
            )
            .remedy(
                "delete what consists of many small files and can be made again, such as Python environments and caches; or \
                 work in another folder, such as the cluster's scratch (--project for runs); or ask the administrators of \
                 the file server for a larger quota of files",
            )
    } else {
        finding
            .remedy(
                "delete what consists of many small files and can be made again, such as caches, Python environments and old \
                 runs (the \
                 command shows the folders with most files): this disk limits the number of files (inodes), whatever their size",
            )
            .command(format!(
                "sudo du --inodes -xd 3 {} | sort -n | tail -n 20",
                quote(space.mount.as_deref().unwrap_or(folder))
            ))
    })
}

/// Whether 0 free inodes means none: file systems without a fixed number, such as btrfs, report 0 of 0, also through a
/// file server.
fn is_limited(host: &Host, folder: &str, space: &FileSystem) -> bool {
    let of_kind = || space.kind.as_deref().is_some_and(|kind| kind.starts_with("ext") || kind == "xfs");
    match space.inodes.or_else(|| recorded_inodes(host, space.mount.as_deref().unwrap_or(folder))) {
        Some(all) => all > 0,
        None => of_kind(),
    }
}

/// The number in a recorded `df -i`: `nas:/home 1000000 1000000 0 100% /home`.
fn recorded_inodes(host: &Host, mount: &str) -> Option<u64> {
    let outputs = host.recorded_outputs("df").into_iter();
    let of_inodes = outputs.filter(|(line, _)| line.split_whitespace().any(|word| word == "-i"));
    of_inodes.map(|(_, output)| output.text()).find_map(|text| inodes_of(&text, mount))
}

fn inodes_of(text: &str, mount: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A long name of a device is on a line of its own.
        let [.., all, _, _, _, on] = words[..] else { return None };
        (on == mount).then(|| all.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn inodes_are_read_from_df() {
        let text = "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 100 5 95 5% /\n\
            nas01:/export/home\n 1000000 1000000 0 100% /home\nnas:/b 0 0 0 - /b\n";
        assert_eq!(inodes_of(text, "/home"), Some(1_000_000));
        assert_eq!(inodes_of(text, "/b"), Some(0));
        assert_eq!(inodes_of(text, "/c"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC| |\n){0,80}") {
            let _ = inodes_of(&text, "/");
        }
    }
}
