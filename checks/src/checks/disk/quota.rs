//! The quota of this user. A file server or a shared disk limits what each user may store; the file system still
//! reports the free space of all, and writing fails with "Disk quota exceeded". `quota`, Lustre's `lfs quota`, GPFS's
//! `mmlsquota` and BeeGFS's `beegfs-ctl` tell how much of it is used. On clusters the limit is often that of a project
//! or of a group, whose members share it.

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
    /// As the tool names the file system: its device, its server or its mount; empty if it does not name it.
    of: String,
    whose: Whose,
    /// KiB.
    space: Amount,
    files: Amount,
}

/// Who may use no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Whose {
    #[default]
    User,
    Group,
    Project,
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
    let texts = asked(host, space, &table, mount, folder);
    let all: Vec<Usage> = texts.iter().flat_map(|text| usages(text)).collect();
    let is_beegfs = space.kind.as_deref() == Some("beegfs");
    let is_it = |usage: &&Usage| {
        usage.of == mount
            || usage.of.is_empty() && is_beegfs
            || Some(&usage.of) == source.as_ref()
            || source.is_none() && is_mounted_at(host, &usage.of, mount)
    };
    let finding = all
        .iter()
        .filter(is_it)
        .find_map(|usage| finding(usage, purpose, &place(space, folder)))
        .or_else(|| refused(host, purpose, folder, space, &table))?;
    // A local disk of a node is erased after the job, and no other node has it; and that of a rented container lasts as long
    // as it.
    if host.job().is_some() || host.rental().is_some() {
        return Some(finding);
    }
    Some(make_room::elsewhere(host, &finding, space, folder).unwrap_or(finding))
}

/// A recorded command could not write here although no tool shows a quota, as for network volumes, projects and filesets.
fn refused(host: &Host, purpose: &str, folder: &str, space: &FileSystem, table: &str) -> Option<Finding> {
    const MESSAGES: [&str; 3] = ["Disk quota exceeded", "Errno 122", "os error 122"];
    let mount = space.mount.as_deref().unwrap_or(folder);
    let is_here = |line: &str| {
        let paths = line
            .split([' ', '\'', '"', '\u{2018}', '\u{2019}', ':', ','])
            .filter(|word| word.starts_with('/'));
        let paths: Vec<&str> = paths.filter(|word| word.len() > 1).collect();
        paths.iter().any(|path| match mounts::holding(table, path) {
            Some(holding) => holding.point == mount,
            None => path.strip_prefix(mount).is_some_and(|rest| rest.starts_with('/')) && mount != "/",
        })
    };
    let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let line = outputs.filter_map(|text| {
        let said = |line: &&str| MESSAGES.iter().any(|words| line.contains(words)) && is_here(line);
        text.lines().find(said).map(|line| line.trim().to_owned())
    });
    let line = line.into_iter().next()?;
    let finding = Finding::new("disk.full", format!("a quota for {purpose}{} is exhausted", place(space, folder)))
        .seen(line)
        .because("the disk has free space, but a quota of the user, the group, the project or the volume allows no more");
    let is_volume =
        mounts::source_of(table, mount).is_some_and(|source| source.starts_with(make_room::MOOSEFS));
    Some(if is_volume || host.rental().is_some() {
        finding.remedy(format!(
            "this is a network volume with a size of its own, which `df` does not show: delete old runs, archives and caches there \
             (`du -xhd 2 {mount}` finds them), or enlarge the volume on the service's page (Storage)"
        ))
    } else {
        finding.remedy(
            "delete what can be made again, such as Python environments, caches and old runs; or work in another folder, such as the \
             cluster's scratch (--project for runs, YOLO_HOME for what yolo installs); or ask the administrators which quota it is \
             and for a larger one",
        )
    })
}

/// The outputs that may name this file system. A live host is asked only where a quota is likely.
fn asked(host: &Host, space: &FileSystem, table: &str, mount: &str, folder: &str) -> Vec<String> {
    let recorded: Vec<String> = ["quota", "lfs", "mmlsquota", "beegfs-ctl"]
        .into_iter()
        .flat_map(|tool| host.recorded_outputs(tool))
        .map(|(line, output)| {
            let text = output.text();
            // Its table does not say whom it counts.
            if line.contains("beegfs-ctl") && line.contains("--gid") {
                format!("group quota\n{text}")
            } else {
                text
            }
        })
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
        "lustre" if !user.is_empty() => return of_lustre(host, &user, mount, folder),
        "beegfs" => {
            let Some(number) = host.user().ok().and_then(|user| user.uid) else { return Vec::new() };
            let number = number.to_string();
            host.command_within(&["beegfs-ctl", "--getquota", "--uid", &number], BUDGET)
        }
        "gpfs" => host.command_within(&["/usr/lpp/mmfs/bin/mmlsquota"], BUDGET),
        "nfs" | "nfs4" => host.command_within(&["quota", "-w"], BUDGET),
        _ if is_enforced() => host.command_within(&["quota", "-w"], BUDGET),
        _ => return Vec::new(),
    };
    output.ok().flatten().map(|output| output.text()).into_iter().collect()
}

/// Lustre counts the files of a user, of a group, and of the project that a folder belongs to.
fn of_lustre(host: &Host, user: &str, mount: &str, folder: &str) -> Vec<String> {
    let ask = |arguments: &[&str]| {
        let output = host.command_within(arguments, BUDGET).ok().flatten();
        output.map(|output| output.text()).filter(|text| !text.is_empty())
    };
    let project = ask(&["lfs", "project", "-d", folder]);
    let project = project.and_then(|text| text.split_whitespace().next().map(ToOwned::to_owned));
    let project = project.filter(|number| number != "0" && number.parse::<u32>().is_ok());
    // New files belong to the group of the folder only if it says so (setgid).
    let stat = host.stat(folder).ok().flatten();
    let group = stat.filter(|stat| {
        let mode = stat.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        mode.is_some_and(|mode| mode & 0o2000 != 0)
    });
    let group = group.and_then(|stat| stat.gid).map(|gid| gid.to_string());
    [
        ask(&["lfs", "quota", "-u", user, mount]),
        project.and_then(|number| ask(&["lfs", "quota", "-p", &number, mount])),
        group.and_then(|number| ask(&["lfs", "quota", "-g", &number, mount])),
    ]
    .into_iter()
    .flatten()
    .collect()
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
    let quota = match usage.whose {
        Whose::User => "your quota",
        Whose::Group => "the quota of your group",
        Whose::Project => "the quota of your project",
    };
    let left = space.left().map(|kib| kib.saturating_mul(1024));
    let (title, is_over) = if left.is_some_and(|bytes| bytes < LEAST) || space.is_expired() {
        let title = match (space.is_expired(), left) {
            (true, _) => format!(
                "{quota} for {purpose}{place} is exceeded, and its grace period is over: nothing more can be written"
            ),
            (_, None | Some(0)) => format!("{quota} for {purpose}{place} is used up"),
            (_, Some(bytes)) => {
                format!("only {} of {quota} are left for {purpose}{place}", format::bytes(bytes))
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
        (format!("{quota} allows {left} on the disk for {purpose}{place}"), true)
    } else if space.is_over() || files.is_over() {
        let grace =
            [space, files].into_iter().find(|amount| amount.is_over()).and_then(|it| it.grace.clone());
        let when = grace.map_or_else(|| "soon".to_owned(), |grace| format!("in {}", spaced(&grace)));
        (format!("{quota} for {purpose}{place} is exceeded: writing will fail {when}"), false)
    } else if let Some(bytes) = left.filter(|&bytes| bytes < COMFORTABLE) {
        (format!("only {} of {quota} are left for {purpose}{place}", format::bytes(bytes)), false)
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
    let finding = match usage.whose {
        Whose::User => finding,
        Whose::Group | Whose::Project => finding
            .because(
                "the disk has free space, but not for the members of this group or project, who share a limit: a checkpoint that does \
                 not fit is lost, with \"Disk quota exceeded\" or \"No space left on device\"",
            )
            .remedy(
                "delete what can be made again, and ask all members to do so: Python environments, which count by their many \
                 files (`du --inodes -xd 2` \
                 finds them, `conda clean -a` helps), caches, old runs; or work in another folder, such as the cluster's scratch \
                 (--project for runs, YOLO_HOME for what yolo installs); or ask the administrators for a larger quota",
            ),
    };
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
        let of = if self.of.is_empty() { "BeeGFS" } else { self.of.as_str() };
        write!(f, "{of}: {}", bytes(self.space.used))?;
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

/// The lines of `quota`, `lfs quota` and `mmlsquota` below their header, which begins with "Filesystem", and those of
/// `beegfs-ctl --getquota`.
fn usages(text: &str) -> Vec<Usage> {
    let mut found: Vec<Usage> = text.lines().filter_map(of_beegfs).collect();
    let mut name: Option<&str> = None;
    let mut whose = if text.starts_with("group quota") { Whose::Group } else { Whose::User };
    for usage in &mut found {
        usage.whose = whose;
    }
    let mut is_below = false;
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("Disk quotas for ") {
            whose = match kind.split_whitespace().next().unwrap_or_default() {
                "grp" | "group" => Whose::Group,
                "prj" | "project" => Whose::Project,
                _ => Whose::User,
            };
            is_below = false;
            continue;
        }
        if line.trim_start().starts_with("Filesystem") {
            is_below = true;
            continue;
        }
        if !is_below {
            continue;
        }
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
        found.extend(usage(&words, whose));
    }
    found
}

fn usage(words: &[&str], whose: Whose) -> Option<Usage> {
    let (of, rest) = words.split_first()?;
    // GPFS says what each quota is for, after the name of a fileset, and how much it has not yet counted.
    let at = rest.iter().take(2).position(|word| matches!(*word, "USR" | "GRP" | "FILESET"));
    let (rest, counts_doubt, whose) = match at.map(|at| (rest[at], &rest[at + 1..])) {
        Some(("USR", rest)) => (rest, true, Whose::User),
        Some(("FILESET", rest)) => (rest, true, Whose::Project),
        // Of all groups of the user, of which most do not own the folder.
        Some(_) => return None,
        None => (rest, false, whose),
    };
    let (space, rest) = amount(rest, counts_doubt)?;
    let files = amount(rest, counts_doubt).map(|(files, _)| files).unwrap_or_default();
    Some(Usage { of: (*of).to_owned(), whose, space, files })
}

/// `mara| 1000||  99.98 GiB| 100.00 GiB||  12345| unlimited`
fn of_beegfs(line: &str) -> Option<Usage> {
    let mut parts = line.split("||").skip(1);
    let (space, files) = (parts.next()?.split_once('|')?, parts.next()?.split_once('|')?);
    let of = |(used, hard): (&str, &str), read: fn(&str) -> Option<u64>| {
        Some(Amount { used: read(used)?, soft: 0, hard: read(hard)?, grace: None })
    };
    let count = |text: &str| match text.trim() {
        "unlimited" => Some(0),
        text => text.parse().ok(),
    };
    Some(Usage {
        of: String::new(),
        whose: Whose::User,
        space: of(space, kib_of_words)?,
        files: of(files, count)?,
    })
}

/// `99.98 GiB` in KiB; no limit is 0.
fn kib_of_words(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    if first == "unlimited" {
        return Some(0);
    }
    let number: f64 = first.parse().ok().filter(|number: &f64| (0.0..1e15).contains(number))?;
    let kib = match words.next().unwrap_or("Byte") {
        "KiB" => 1.0,
        "MiB" => 1024.0,
        "GiB" => 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0,
        "PiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => 1.0 / 1024.0,
    };
    Some((number * kib) as u64)
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

    #[test]
    fn a_project_a_fileset_and_a_group_share_a_limit() {
        let lustre = "Disk quotas for prj 4711 (pid 4711):\n\
            \x20    Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace\n\
            /lustre/work  1000 0 0 - 500000* 0 500000 -\n";
        let of_project = &usages(lustre)[0];
        assert_eq!((of_project.whose, of_project.files.hard), (Whose::Project, 500_000));
        let fileset = "                         Block Limits   |     File Limits\n\
            Filesystem Fileset    type             KB      quota      limit   in_doubt    grace |    files   quota    limit in_doubt    grace\n\
            fs1 gvo00042 FILESET 100 0 100 0 none | 7 0 0 0 none\n";
        let of_fileset = &usages(fileset)[0];
        assert_eq!((of_fileset.whose, of_fileset.space.hard), (Whose::Project, 100));
        let beegfs = "group quota\n      user/group     ||           size          ||    chunk files    \n\
            \x20    name     |  id  ||    used    |    hard    ||  used   |  hard   \n\
            --------------|------||------------|------------||---------|---------\n\
            \x20         vision|  2000|| 1.50 GiB| 2.00 GiB||    12345| unlimited\n";
        let of_beegfs = usages(beegfs);
        assert_eq!(of_beegfs.len(), 1);
        assert_eq!(
            (of_beegfs[0].whose, of_beegfs[0].space.hard, of_beegfs[0].files.hard),
            (Whose::Group, 2_097_152, 0)
        );
    }

    proptest! {
        #[test]
        fn any_table_of_beegfs_is_read(line in "(\\|\\||\\|| |[0-9.]{1,4}|GiB|unlimited|\\PC){0,20}") {
            let _ = of_beegfs(&line);
        }

        #[test]
        fn any_text_is_read(text in "Filesystem\n(\\PC|[0-9*]| |\n){0,80}") {
            let _ = usages(&text);
        }
    }
}
