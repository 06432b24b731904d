//! The quota of this user. A file server or a shared disk limits what each user may store; the file system still
//! reports the free space of all, and writing fails with "Disk quota exceeded". `quota`, Lustre's `lfs quota` and
//! GPFS's `mmlsquota` tell how much of it is used.

use std::time::Duration;

use yolo_base::{format, mounts};

use super::make_room;
use super::room::{COMFORTABLE, LEAST, LEAST_FILES, place};
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::status::Status;

/// A file server that does not answer must not delay the doctor.
const BUDGET: Duration = Duration::from_millis(500);
/// The options with which local file systems are mounted that enforce quotas (quotactl(2), xfs(5)).
const ENFORCED: [&str; 8] =
    ["usrquota", "grpquota", "uquota", "gquota", "quota", "usrjquota", "grpjquota", "prjquota"];

/// One line of a tool: what is used and allowed. A limit of 0 is none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Usage {
    /// As the tool names the file system: its device, its server or its mount.
    of: String,
    /// KiB.
    space: Amount,
    files: Amount,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Amount {
    used: u64,
    /// May be exceeded for the grace period.
    soft: u64,
    hard: u64,
    /// What is left of that period, as the tool writes it: `6days`; `none` or `expired` when it has passed.
    grace: Option<String>,
}

/// `disk.full` for a file system with space on which this user may store no more.
pub(super) fn used_up(host: &Host, purpose: &str, folder: &str, space: &FileSystem) -> Option<Finding> {
    let mount = space.mount.as_deref().unwrap_or(folder);
    let table = host.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
    let source = mounts::source_of(&table, mount);
    let texts = asked(host, space, &table, mount);
    let all: Vec<Usage> = texts.iter().flat_map(|text| usages(text)).collect();
    let is_it = |usage: &&Usage| {
        usage.of == mount
            || Some(&usage.of) == source.as_ref()
            || source.is_none() && is_mounted_at(host, &usage.of, mount)
    };
    let finding =
        all.iter().filter(is_it).find_map(|usage| finding(usage, purpose, &place(space, folder)))?;
    // A local disk of a node is erased after the job, and no other node has it.
    if host.job().is_some() {
        return Some(finding);
    }
    Some(make_room::elsewhere(host, &finding, space, folder).unwrap_or(finding))
}

/// The outputs that may name this file system. A live host is asked only where a quota is likely.
fn asked(host: &Host, space: &FileSystem, table: &str, mount: &str) -> Vec<String> {
    let recorded: Vec<String> = ["quota", "lfs", "mmlsquota"]
        .into_iter()
        .flat_map(|tool| host.recorded_outputs(tool))
        .map(|(_, output)| output.text())
        .collect();
    if host.is_recorded() && !recorded.is_empty() {
        return recorded;
    }
    let user = host.user().ok().and_then(|user| user.name).unwrap_or_default();
    let is_enforced = || {
        mounts::holding(table, mount).is_some_and(|mount| {
            mount
                .options
                .iter()
                .any(|option| ENFORCED.contains(&option.split('=').next().unwrap_or_default()))
        })
    };
    let output = match space.kind.as_deref().unwrap_or_default() {
        "lustre" if !user.is_empty() => host.command_within(&["lfs", "quota", "-u", &user, mount], BUDGET),
        "gpfs" => host.command_within(&["/usr/lpp/mmfs/bin/mmlsquota"], BUDGET),
        "nfs" | "nfs4" => host.command_within(&["quota", "-w"], BUDGET),
        _ if is_enforced() => host.command_within(&["quota", "-w"], BUDGET),
        _ => return Vec::new(),
    };
    output.ok().flatten().map(|output| output.text()).into_iter().collect()
}

/// Whether a recorded `df` or `mount` names this source and mount in one line.
fn is_mounted_at(host: &Host, source: &str, mount: &str) -> bool {
    let outputs = ["df", "mount"].into_iter().flat_map(|tool| host.recorded_outputs(tool));
    outputs.map(|(_, output)| output.text()).any(|text| {
        text.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(source) && words.any(|word| word == mount)
        })
    })
}

fn finding(usage: &Usage, purpose: &str, place: &str) -> Option<Finding> {
    let (space, files) = (&usage.space, &usage.files);
    let left = space.left().map(|kib| kib.saturating_mul(1024));
    let (title, is_over) = if left.is_some_and(|bytes| bytes < LEAST) || space.is_expired() {
        let title = match (space.is_expired(), left) {
            (true, _) => format!(
                "your quota for {purpose}{place} is exceeded, and its grace period is over: nothing more can be written"
            ),
            (_, None | Some(0)) => format!("your quota for {purpose}{place} is used up"),
            (_, Some(bytes)) => {
                format!("only {} of your quota are left for {purpose}{place}", format::bytes(bytes))
            }
        };
        (title, true)
    } else if files.left().is_some_and(|files| files < LEAST_FILES) || files.is_expired() {
        let left = match files.left() {
            Some(left @ 1..) if !files.is_expired() => {
                format!("only {} more", format::count(left as usize, "file"))
            }
            _ => "no more files".to_owned(),
        };
        (format!("your quota allows {left} on the disk for {purpose}{place}"), true)
    } else if space.is_over() || files.is_over() {
        let grace =
            [space, files].into_iter().find(|amount| amount.is_over()).and_then(|it| it.grace.clone());
        let when = grace.map_or_else(|| "soon".to_owned(), |grace| format!("in {}", spaced(&grace)));
        (format!("your quota for {purpose}{place} is exceeded: writing will fail {when}"), false)
    } else if let Some(bytes) = left.filter(|&bytes| bytes < COMFORTABLE) {
        (format!("only {} of your quota are left for {purpose}{place}", format::bytes(bytes)), false)
    } else {
        return None;
    };
    let finding = Finding::new("disk.full", title)
        .seen(usage.to_string())
        .because(
            "the disk has free space, but not for this user: a checkpoint that does not fit into the quota is lost, with \
             \"Disk quota exceeded\"",
        )
        .remedy(
            "delete what can be made again, such as Python environments, caches and old runs; or work in another folder, \
             such as the cluster's scratch (--project for runs, YOLO_HOME for what yolo installs); or ask the administrators \
             for a larger quota",
        );
    Some(if is_over { finding } else { finding.status(Status::Warning) })
}

impl Amount {
    /// What may still be used; `None` without a hard limit.
    fn left(&self) -> Option<u64> {
        (self.hard > 0).then(|| self.hard.saturating_sub(self.used))
    }

    fn is_over(&self) -> bool {
        self.soft > 0 && self.used > self.soft
    }

    /// Over the soft limit for longer than is allowed.
    fn is_expired(&self) -> bool {
        self.is_over() && matches!(self.grace.as_deref(), Some("none" | "expired"))
    }
}

impl std::fmt::Display for Usage {
    /// `nas:/home: 20.0 GB of 20.0 GB, 120 files`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = |kib: u64| format::bytes(kib.saturating_mul(1024));
        write!(f, "{}: {}", self.of, bytes(self.space.used))?;
        let limit =
            |amount: &Amount| if amount.is_over() || amount.hard == 0 { amount.soft } else { amount.hard };
        if limit(&self.space) > 0 {
            write!(f, " of {}", bytes(limit(&self.space)))?;
        }
        write!(f, ", {}", self.files.used)?;
        if limit(&self.files) > 0 {
            write!(f, " of {}", limit(&self.files))?;
        }
        f.write_str(" files")
    }
}

/// `6 days` of `6days`
fn spaced(grace: &str) -> String {
    match grace.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at @ 1..) if grace[at..].chars().all(char::is_alphabetic) => {
            format!("{} {}", &grace[..at], &grace[at..])
        }
        _ => grace.to_owned(),
    }
}

/// The lines of `quota`, `lfs quota` and `mmlsquota` below their header, which begins with "Filesystem".
fn usages(text: &str) -> Vec<Usage> {
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("Filesystem")).skip(1);
    let mut found = Vec::new();
    let mut name: Option<&str> = None;
    for line in lines {
        let mut words: Vec<&str> = line.split_whitespace().filter(|word| *word != "|").collect();
        // A long name is on a line of its own.
        if let &[only] = words.as_slice() {
            name = Some(only);
            continue;
        }
        if let Some(name) = name.take()
            && words.first().is_some_and(|word| number(word).is_some())
        {
            words.insert(0, name);
        }
        found.extend(usage(&words));
    }
    found
}

fn usage(words: &[&str]) -> Option<Usage> {
    let (of, rest) = words.split_first()?;
    // GPFS says what each quota is for, and how much it has not yet counted.
    let (rest, counts_doubt) = match rest.first() {
        Some(&"USR") => (&rest[1..], true),
        Some(&("GRP" | "FILESET")) => return None,
        _ => (rest, false),
    };
    let (space, rest) = amount(rest, counts_doubt)?;
    let files = amount(rest, counts_doubt).map(|(files, _)| files).unwrap_or_default();
    Some(Usage { of: (*of).to_owned(), space, files })
}

/// `used quota limit [in_doubt] [grace]`; a grace period that is not running is left out, `-` or, by GPFS, `none`.
fn amount<'a, 'b>(words: &'a [&'b str], counts_doubt: bool) -> Option<(Amount, &'a [&'b str])> {
    let &[used, soft, hard, ..] = words else { return None };
    let (used, soft, hard) = (number(used)?, number(soft)?, number(hard)?);
    let rest = &words[if counts_doubt { words.len().min(4) } else { 3 }..];
    let (grace, rest) = match rest {
        // GPFS writes "6 days".
        [count, unit, rest @ ..] if number(count).is_some() && is_unit(unit) => {
            (Some(format!("{count} {unit}")), rest)
        }
        [word, rest @ ..] if number(word).is_none() => {
            (Some((*word).to_owned()).filter(|word| word != "-"), rest)
        }
        rest => (None, rest),
    };
    Some((Amount { used, soft, hard, grace }, rest))
}

fn is_unit(word: &str) -> bool {
    ["day", "hour", "minute", "week"].iter().any(|unit| word.strip_suffix('s').unwrap_or(word) == *unit)
}

/// `10240`, with a `*` when a limit is exceeded; lfs brackets what it could not ask of every server.
fn number(word: &str) -> Option<u64> {
    word.trim_matches(['*', '[', ']']).parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<(String, u64, u64, u64)> {
        usages(text).into_iter().map(|it| (it.of, it.space.used, it.space.hard, it.files.used)).collect()
    }

    #[test]
    fn the_lines_of_quota_are_read() {
        let text = "Disk quotas for user mara (uid 1000): \n\
            \x20    Filesystem   space   quota   limit   grace   files   quota   limit   grace\n\
            nas:/export/home 20971500* 18874368 20971520   6days  120034       0       0        \n\
            \x20     /dev/sda2    4096       0  104857600             77       0       0        \n";
        let expected =
            [("nas:/export/home", 20_971_500, 20_971_520, 120_034), ("/dev/sda2", 4096, 104_857_600, 77)];
        let expected = expected.map(|(of, used, hard, files)| (of.to_owned(), used, hard, files));
        assert_eq!(of(text), expected);
        assert_eq!(usages(text)[0].space.grace.as_deref(), Some("6days"));
    }

    #[test]
    fn a_long_name_has_a_line_of_its_own() {
        let text = "     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace\n\
            /lustre/project/very-long\n\
            \x20          104857600* 104857600 115343360 6d23h11m  1000000  0  0  -\n";
        assert_eq!(of(text), [("/lustre/project/very-long".to_owned(), 104_857_600, 115_343_360, 1_000_000)]);
    }

    #[test]
    fn the_columns_of_gpfs_are_read() {
        let text = "                         Block Limits                                    |     File Limits\n\
            Filesystem type             KB      quota      limit   in_doubt    grace |    files   quota    limit in_doubt    grace  Remarks\n\
            home       USR        20971520   20971520   20971520          0   6 days |   314159  500000   500000        0     none \n\
            home       GRP        1 1 1 0 none | 1 1 1 0 none\n";
        assert_eq!(of(text), [("home".to_owned(), 20_971_520, 20_971_520, 314_159)]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "Filesystem\n(\\PC|[0-9*]| |\n){0,80}") {
            let _ = usages(&text);
        }
    }
}
