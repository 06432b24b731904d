//! What WSL silently does with a file: lines that it skips, keys that it does not know, values that it
//! rejects, and files that it may not read at all.

use std::fmt;

use super::keys::{self, Value};
use super::scan::{Broken, LineKind};
use super::{ConfigFile, Document, Encoding, Setting, size};

/// Something that WSL ignores or misreads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The line, from 1; `None` when it is the whole file.
    pub line: Option<usize>,
    /// What it is.
    pub problem: Problem,
}

/// What WSL ignores or misreads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Not every WSL reads this encoding.
    Encoding(Encoding),
    /// A line that WSL skips; in `wsl.conf` it also skips everything after it.
    Broken {
        /// Why.
        why: Broken,
        /// The key that the line would set.
        key: Option<String>,
        /// Whether WSL reads nothing after it.
        ends: bool,
    },
    /// A key before the first section.
    NoSection {
        /// The key.
        key: String,
        /// The section it belongs to, when WSL knows the key.
        belongs: Option<&'static str>,
    },
    /// A section that no file of WSL has.
    UnknownSection {
        /// The name.
        name: String,
        /// The name that it resembles.
        like: Option<&'static str>,
    },
    /// A known key in a section where WSL does not look for it.
    WrongSection {
        /// The key.
        key: String,
        /// The section it is in.
        section: String,
        /// The section it belongs to.
        belongs: &'static str,
    },
    /// A section or key of the other file.
    OtherFile {
        /// The section, or the key.
        name: String,
        /// The file it belongs to.
        file: ConfigFile,
    },
    /// A key that WSL does not know.
    UnknownKey {
        /// The key.
        key: String,
        /// The key that it resembles.
        like: Option<&'static str>,
    },
    /// A key that has moved from `[experimental]`; WSL still reads it there.
    Moved {
        /// The key.
        key: String,
        /// The section it belongs to now.
        to: &'static str,
    },
    /// A key that is set above; the first one applies.
    Repeated {
        /// The key.
        key: String,
        /// The line that applies.
        first: usize,
    },
    /// A value that WSL cannot read, so its default applies.
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What it must be.
        expected: Value,
    },
    /// A size so small that a unit was forgotten: `memory=8` is 8 bytes.
    TooSmall {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The bytes it means.
        bytes: u64,
    },
    /// A path whose single backslashes were read as a tab, a line end or a backspace.
    Path {
        /// The key.
        key: String,
        /// The value as WSL reads it.
        value: String,
    },
}

impl Problem {
    /// Whether part of the file has no effect because of it; otherwise it is only untidy.
    pub fn loses(&self) -> bool {
        !matches!(self, Self::Moved { .. } | Self::Repeated { .. })
    }
}

impl Document {
    /// Everything that WSL ignores or misreads, in the order of the file.
    pub fn problems(&self) -> Vec<Found> {
        let mut found = Vec::new();
        if !self.encoding.is_plain() {
            found.push(Found { line: None, problem: Problem::Encoding(self.encoding) });
        }
        let ends = self.kind == ConfigFile::WslConf;
        let mut seen: Vec<Setting<'_>> = Vec::new();
        for line in &self.lines {
            let mut add = |problem| found.push(Found { line: Some(line.number), problem });
            match &line.kind {
                LineKind::Blank => {}
                // WSL skips it as it would skip a comment, which it was meant to be.
                LineKind::Broken { why: Broken::Start, .. }
                    if !ends && self.text[line.span.clone()].trim_start().starts_with(';') => {}
                LineKind::Broken { why, key, .. } => {
                    let key = key.clone().map(|key| self.text[key].to_owned());
                    add(Problem::Broken { why: *why, key, ends });
                    if ends {
                        break;
                    }
                }
                LineKind::Section { name } => self.section_problem(name).into_iter().for_each(add),
                LineKind::Setting { .. } => {
                    let Some(setting) = line.setting() else { continue };
                    let names = (setting.section, setting.key);
                    let first =
                        seen.iter().find(|seen| keys::same(self.kind, names, (seen.section, seen.key)));
                    match first {
                        Some(first) => {
                            add(Problem::Repeated { key: setting.key.to_owned(), first: first.line })
                        }
                        None => self.setting_problem(setting).into_iter().for_each(add),
                    }
                    seen.push(setting);
                }
            }
        }
        found
    }

    fn section_problem(&self, name: &str) -> Option<Problem> {
        if section(self.kind, name) {
            return None;
        }
        let other = other(self.kind);
        if section(other, name) {
            return Some(Problem::OtherFile { name: format!("[{name}]"), file: other });
        }
        let like = resembling(name, keys::all(self.kind).iter().map(|key| key.section));
        Some(Problem::UnknownSection { name: name.to_owned(), like })
    }

    fn setting_problem(&self, setting: Setting<'_>) -> Option<Problem> {
        let Setting { section: within, key, value, .. } = setting;
        let name = || key.to_owned();
        if let Some(known) = keys::find(self.kind, within, key) {
            let wrong = wrong_value(known.value, key, value);
            let moved = !known.section.eq_ignore_ascii_case(within);
            return wrong.or_else(|| moved.then(|| Problem::Moved { key: name(), to: known.section }));
        }
        let elsewhere = keys::all(self.kind).iter().find(|known| known.name.eq_ignore_ascii_case(key));
        let belongs = elsewhere.map(|known| known.section);
        if within.is_empty() {
            return Some(Problem::NoSection { key: name(), belongs });
        }
        if let Some(belongs) = belongs {
            return Some(Problem::WrongSection { key: name(), section: within.to_owned(), belongs });
        }
        // The keys of an unknown section are lost with it, which is reported for its own line.
        if !section(self.kind, within) {
            return None;
        }
        let other = other(self.kind);
        if keys::all(other).iter().any(|known| known.name.eq_ignore_ascii_case(key)) {
            return Some(Problem::OtherFile { name: name(), file: other });
        }
        let like = resembling(key, keys::all(self.kind).iter().map(|key| key.name));
        Some(Problem::UnknownKey { key: name(), like })
    }
}

fn other(kind: ConfigFile) -> ConfigFile {
    match kind {
        ConfigFile::WslConfig => ConfigFile::WslConf,
        ConfigFile::WslConf => ConfigFile::WslConfig,
    }
}

fn section(kind: ConfigFile, name: &str) -> bool {
    keys::all(kind).iter().any(|key| key.section.eq_ignore_ascii_case(name))
}

/// The name that differs by at most two letters, for a typing error.
fn resembling(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let distance = |known: &str| strsim::osa_distance(&known.to_ascii_lowercase(), &name);
    known.map(|known| (distance(known), known)).filter(|&(away, _)| away <= 2).min().map(|(_, known)| known)
}

fn wrong_value(expected: Value, key: &str, value: &str) -> Option<Problem> {
    let wrong = || Problem::Value { key: key.to_owned(), value: value.to_owned(), expected };
    match expected {
        Value::Size => match size::parse(value) {
            None => Some(wrong()),
            // Zero memory is the default, zero swap is none.
            Some(0) => None,
            Some(bytes) if bytes < 1 << 20 => {
                Some(Problem::TooSmall { key: key.to_owned(), value: value.to_owned(), bytes })
            }
            Some(_) => None,
        },
        Value::Number => (!is_number(value)).then(wrong),
        Value::Bool => {
            let known = ["1", "0", "true", "false"].iter().any(|word| word.eq_ignore_ascii_case(value));
            (!known).then(wrong)
        }
        Value::Choice(words) => (!words.iter().any(|word| word.eq_ignore_ascii_case(value))).then(wrong),
        Value::Path => value
            .contains(['\t', '\n', '\u{8}'])
            .then(|| Problem::Path { key: key.to_owned(), value: value.to_owned() }),
        Value::Text => None,
    }
}

/// A whole number as C reads it: decimal, `0x` hexadecimal or octal after a zero, with a sign.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    digits.starts_with(|c: char| c.is_digit(base))
        && i64::from_str_radix(digits, base).is_ok_and(|number| number <= i64::from(i32::MAX))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding(encoding) => {
                write!(f, "the file is {encoding}; some releases of WSL ignore such a file entirely")
            }
            Self::Broken { why, key, ends } => {
                match key {
                    Some(key) => write!(f, "WSL ignores the line with `{key}`: {why}")?,
                    None => write!(f, "WSL ignores this line: {why}")?,
                }
                if *ends { f.write_str("; it also ignores everything after it") } else { Ok(()) }
            }
            Self::NoSection { key, belongs: Some(belongs) } => {
                write!(
                    f,
                    "`{key}` is above the first section, where WSL ignores it: it belongs in [{belongs}]"
                )
            }
            Self::NoSection { key, belongs: None } => {
                write!(f, "`{key}` is above the first section, where WSL ignores it")
            }
            Self::UnknownSection { name, like } => {
                write!(f, "WSL has no section [{name}] and ignores what is in it")?;
                like.map_or(Ok(()), |like| write!(f, "; did you mean [{like}]?"))
            }
            Self::WrongSection { key, section, belongs } => {
                write!(f, "WSL ignores `{key}` in [{section}]: it belongs in [{belongs}]")
            }
            Self::OtherFile { name, file } => write!(f, "WSL ignores {name} here: it belongs in {file}"),
            Self::UnknownKey { key, like } => {
                write!(f, "WSL has no key `{key}`")?;
                like.map_or(Ok(()), |like| write!(f, "; did you mean `{like}`?"))
            }
            Self::Moved { key, to } => write!(f, "`{key}` has moved to [{to}]; WSL still reads it here"),
            Self::Repeated { key, first } => {
                write!(f, "`{key}` is already set on line {first}, and WSL uses the first value")
            }
            Self::Value { key, value, expected } => {
                write!(f, "`{key}={value}` has no effect: the value must be {expected}")
            }
            Self::TooSmall { key, value, bytes } => {
                write!(f, "`{key}={value}` means {bytes} bytes: a unit is missing, as in `{key}={value}GB`")
            }
            Self::Path { key, .. } => {
                write!(
                    f,
                    "the backslashes in the path of `{key}` must be doubled: WSL reads single ones as control characters"
                )
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size => f.write_str(
                "a whole number followed by a unit in capitals, without a space, such as 8GB or 512MB",
            ),
            Self::Number => f.write_str("a whole number"),
            Self::Bool => f.write_str("true or false"),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::Path => f.write_str("a path with doubled backslashes"),
            Self::Text => f.write_str("text"),
        }
    }
}

impl fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WslConfig => ".wslconfig in the Windows user's folder",
            Self::WslConf => "/etc/wsl.conf",
        })
    }
}
