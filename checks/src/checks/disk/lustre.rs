//! Full storage targets of Lustre. A file is on one or a few of them, so a write fails with "No space left on
//! device" when one of those is full, although the sum, which the file system reports, looks ample.

use std::collections::BTreeMap;

use yolo_base::format;

use super::room::{LEAST, place};
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::status::Status;

/// Where the client lists the targets (OSTs), since Lustre 2.12 and before.
const LISTS: [&str; 2] = ["/sys/fs/lustre/osc", "/proc/fs/lustre/osc"];
/// With more targets, one that is full matters less, and asking all takes too long.
const MOST: usize = 128;

/// `disk.full` for a Lustre file system that has space in sum, and full targets.
pub(super) fn full_targets(host: &Host, purpose: &str, folder: &str, space: &FileSystem) -> Option<Finding> {
    if space.kind.as_deref() != Some("lustre") {
        return None;
    }
    let mount = space.mount.as_deref().unwrap_or(folder);
    let (all, full) = of_client(host, mount).or_else(|| of_lfs(host, mount))?;
    let free = format::bytes(space.available?);
    if full.is_empty() {
        return None;
    }
    let title = format!(
        "{} of {} of the Lustre file system for {purpose}{} {} full, although {free} are free in sum",
        full.len(),
        format::count(all, "storage target"),
        place(space, folder),
        if full.len() == 1 { "is" } else { "are" },
    );
    Some(
        Finding::new("disk.full", title)
            .status(Status::Warning)
            .seen(format!("full: {}", full.join(", ")))
            .because(
                "a file of Lustre is on one or a few storage targets (OSTs): those on a full one cannot grow, and writing them \
                 fails with \"No space left on device\", as does a new file that is striped over all",
            )
            .remedy(
                "save to a local disk of the node or to another file system (--project), delete files that you do not need, or \
                 move large ones off the full targets; `lfs df` shows how full each is",
            )
            .command(format!("lfs df -h {}", crate::shell_quote::quote(mount))),
    )
}

/// The number of targets, and the names of the full ones, as the client reports them.
fn of_client(host: &Host, mount: &str) -> Option<(usize, Vec<String>)> {
    let (list, names) = LISTS.iter().find_map(|list| Some((*list, host.folder(list).ok()??)))?;
    let system = |name: &String| name.split_once("-OST").map(|(system, _)| system.to_owned());
    let mut systems: Vec<String> = names.iter().filter_map(system).collect();
    systems.dedup();
    let mine = match &systems[..] {
        [only] => only.clone(),
        // The source of a mount is 10.1.0.5@tcp:/scratch.
        several => {
            let table = host.text("/proc/self/mountinfo").ok().flatten()?;
            let source = yolo_base::mounts::source_of(&table, mount)?;
            let name = source.rsplit_once(":/")?.1.split('/').next()?;
            several.iter().find(|system| *system == name)?.clone()
        }
    };
    // A file system that is mounted twice lists each target twice, as s1-OST0000-osc-ffff8a01 with its mount.
    let short = |name: &str| name.split("-osc-").next().unwrap_or(name).to_owned();
    let mut targets: BTreeMap<String, &String> = BTreeMap::new();
    for name in names.iter().filter(|name| system(name).as_ref() == Some(&mine)) {
        targets.entry(short(name)).or_insert(name);
    }
    if targets.len() > MOST {
        return None;
    }
    let mut full = Vec::new();
    for (short, name) in &targets {
        // If a server does not answer, the others may not either, and each question would take its whole time.
        let text = host.text(&format!("{list}/{name}/kbytesavail")).ok()?;
        let left = text.and_then(|text| text.trim().parse::<u64>().ok());
        if left.is_some_and(|kib| kib < LEAST / 1024) {
            full.push(short.clone());
        }
    }
    Some((targets.len(), full))
}

/// The same in a recorded `lfs df`: `scratch-OST0001_UUID 1121173504 1121094656 76800 100% /scratch[OST:1]`.
fn of_lfs(host: &Host, mount: &str) -> Option<(usize, Vec<String>)> {
    let outputs = host.recorded_outputs("lfs").into_iter().map(|(_, output)| output.text());
    outputs.map(|text| targets_in(&text, mount)).find(|(all, _)| *all > 0)
}

fn targets_in(text: &str, mount: &str) -> (usize, Vec<String>) {
    let targets: Vec<(String, u64)> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[name, _, _, left, _, on] = words.as_slice() else { return None };
            on.strip_prefix(mount).filter(|rest| rest.starts_with("[OST:"))?;
            Some((name.trim_end_matches("_UUID").to_owned(), left.parse().ok()?))
        })
        .collect();
    let full = targets.iter().filter(|(_, kib)| *kib < LEAST / 1024).map(|(name, _)| name.clone()).collect();
    (targets.len(), full)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn full_targets_are_read_from_lfs() {
        let text = "UUID 1K-blocks Used Available Use% Mounted on\na-MDT0000_UUID 9 9 0 100% /s[MDT:0]\n\
            a-OST0000_UUID 9 1 226956288 80% /s[OST:0]\na-OST0001_UUID 9 9 76800 100% /s[OST:1]\n";
        assert_eq!(targets_in(text, "/s"), (2, vec!["a-OST0001".to_owned()]));
        assert_eq!(targets_in(text, "/other"), (0, vec![]));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC| |\n){0,80}") {
            let _ = targets_in(&text, "/");
        }
    }
}
