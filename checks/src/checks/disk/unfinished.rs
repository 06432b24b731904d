//! Whether incomplete downloads of `yolo setup` take up space. The next setup resumes them, so only
//! those that are days old are reported. Their lock files need no cleanup: the kernel releases a
//! lock when its process ends.

use yolo_base::format;

use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are there incomplete downloads?",
    reports: &["disk.unfinished"],
    preflight: false,
    run,
};

/// Data folders that setup fills; its staging directories are named `.incoming-…`.
const FILLED: [&str; 3] = ["libtorch", "weights", "datasets"];
const INCOMING: &str = ".incoming-";
/// Older downloads, in days, are considered abandoned.
const OLD: u64 = 2;
const DAY: u64 = 86_400;

fn run(host: &Host, _: &Intent) -> Answer {
    let Some(data) = host.places()?.data else { return Ok(Vec::new()) };
    let now = host.time()?;
    let mut old = Vec::new();
    for folder in FILLED {
        let folder = format!("{data}/{folder}");
        for name in host.folder(&folder)?.unwrap_or_default() {
            let path = format!("{folder}/{name}");
            if !name.starts_with(INCOMING) {
                continue;
            }
            let modified = host.stat(&path)?.and_then(|stat| stat.modified).unwrap_or(now);
            let days = now.saturating_sub(modified) / DAY;
            if days >= OLD {
                old.push((path, days));
            }
        }
    }
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let oldest = old.iter().map(|(_, days)| *days).max().unwrap_or(0);
    let title = format!(
        "{} of yolo setup, up to {} old",
        format::count(old.len(), "incomplete download"),
        age(oldest)
    );
    let finding = Finding::new("disk.unfinished", title).command("yolo setup --remove unfinished");
    let each = |finding: Finding, (path, days): (String, u64)| {
        finding.seen(format!("{path}, {} old", age(days))).change(Change::Remove { path })
    };
    Ok(vec![old.into_iter().fold(finding, each)])
}

fn age(days: u64) -> String {
    format::count(usize::try_from(days).unwrap_or(usize::MAX), "day")
}
