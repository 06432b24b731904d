//! The tables of the tools that tell quotas: `quota`, Lustre's `lfs quota`, GPFS's `mmlsquota` and BeeGFS's
//! `beegfs-ctl`.

use yolo_base::format;

/// One line of a tool: what is used and allowed. A limit of 0 is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Usage {
    /// As the tool names the file system: its device, its server or its mount; empty if it does not name it.
    pub(super) of: String,
    /// The part of a file system of GPFS that this is about.
    pub(super) fileset: Option<String>,
    pub(super) whose: Whose,
    /// KiB.
    pub(super) space: Amount,
    pub(super) files: Amount,
}

/// Who may use no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Whose {
    #[default]
    User,
    Group,
    Project,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) used: u64,
    /// May be exceeded for the grace period.
    pub(super) soft: u64,
    pub(super) hard: u64,
    /// What is left of that period, as the tool writes it: `6days`; `none` or `expired` when it has passed.
    pub(super) grace: Option<String>,
}

impl Amount {
    /// What may still be used; `None` without a hard limit.
    pub(super) fn left(&self) -> Option<u64> {
        (self.hard > 0).then(|| self.hard.saturating_sub(self.used))
    }

    pub(super) fn is_over(&self) -> bool {
        self.soft > 0 && self.used > self.soft
    }

    /// Over the soft limit for longer than is allowed.
    pub(super) fn is_expired(&self) -> bool {
        self.is_over() && matches!(self.grace.as_deref(), Some("none" | "expired"))
    }
}

impl std::fmt::Display for Usage {
    /// `nas:/home: 20.0 GB of 20.0 GB, 120 files`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = |kib: u64| format::bytes(kib.saturating_mul(1024));
        let of = if self.of.is_empty() { "BeeGFS" } else { self.of.as_str() };
        let part = self.fileset.as_ref().map_or(String::new(), |name| format!(", fileset {name}"));
        write!(f, "{of}{part}: {}", bytes(self.space.used))?;
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

/// The lines of `quota`, `lfs quota` and `mmlsquota` below their header, which begins with "Filesystem", and those of
/// `beegfs-ctl --getquota`.
pub(super) fn usages(text: &str) -> Vec<Usage> {
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
    let rest_of_line = rest;
    let (rest, counts_doubt, whose) = match at.map(|at| (rest[at], &rest[at + 1..])) {
        Some(("USR", rest)) => (rest, true, Whose::User),
        Some(("FILESET", rest)) => (rest, true, Whose::Project),
        // Of all groups of the user, of which most do not own the folder.
        Some(_) => return None,
        None => (rest, false, whose),
    };
    let (space, rest) = amount(rest, counts_doubt)?;
    let files = amount(rest, counts_doubt).map(|(files, _)| files).unwrap_or_default();
    let fileset = at.filter(|at| *at == 1).map(|_| rest_of_line[0].to_owned());
    Some(Usage { of: (*of).to_owned(), fileset, whose, space, files })
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
        fileset: None,
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
        assert_eq!(of_fileset.fileset.as_deref(), Some("gvo00042"));
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
