//! Changes of single values. Everything else stays as it was, to the byte: comments, also after the
//! changed value, spaces, order and line ends. Only an encoding that some releases of WSL ignore
//! becomes UTF-8.

use std::ops::Range;

use super::scan::{self, LineKind};
use super::{ConfigFile, Document, Encoding, keys};

/// Why a value cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// WSL could not read the name.
    #[error("WSL cannot read the name `{0}`: it must be a letter followed by letters and digits")]
    Name(String),
    /// WSL could not read the value.
    #[error("WSL cannot read the value `{0}`: it must be a single line of ASCII characters")]
    Value(String),
    /// In `wsl.conf`, WSL reads nothing after a broken line.
    #[error("WSL ignores this file from line {line} on: {why}")]
    Unread {
        /// The broken line.
        line: usize,
        /// What is wrong with it.
        why: scan::Broken,
    },
}

impl Document {
    /// Sets a key. The value in effect is replaced in place; a new key goes below the last one of its
    /// section, spaced like it, and a missing section goes to the end of the file.
    pub fn set(&mut self, section: &str, key: &str, value: &str) -> Result<(), EditError> {
        for name in [section, key] {
            if !name.starts_with(|c: char| c.is_ascii_alphabetic())
                || !name.chars().all(|c| c.is_ascii_alphanumeric())
            {
                return Err(EditError::Name(name.to_owned()));
            }
        }
        if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            return Err(EditError::Value(value.to_owned()));
        }
        self.refuse_unread()?;
        if self.value(section, key) == Some(value) {
            return Ok(());
        }
        let written = escaped(value);
        let (place, text) = match self.written_value(section, key) {
            Some(raw) => (raw, written),
            None => self.new_line(section, key, &written),
        };
        self.replace(place, &text);
        Ok(())
    }

    /// Removes a key wherever it is set, but keeps a comment after its value. True if it was set.
    pub fn remove(&mut self, section: &str, key: &str) -> Result<bool, EditError> {
        self.refuse_unread()?;
        let mut removed = false;
        while let Some((line, raw)) = self.lines.iter().find_map(|line| match &line.kind {
            LineKind::Setting { section: within, key_text, raw, .. }
                if keys::same(self.kind, (section, key), (within, key_text)) =>
            {
                Some((line.span.clone(), raw.clone()))
            }
            _ => None,
        }) {
            let rest = &self.text[raw.end..line.end];
            let comment = rest.trim_start_matches([' ', '\t']);
            let place = if comment.starts_with('#') { line.start..line.end - comment.len() } else { line };
            self.replace(place, "");
            removed = true;
        }
        Ok(removed)
    }

    /// Writes the file as UTF-8 without a mark, which every WSL reads. True if that changes it.
    pub fn make_plain(&mut self) -> bool {
        let changes = !self.encoding.is_plain();
        if changes {
            self.encoding = Encoding::Utf8;
            self.original = None;
        }
        changes
    }

    fn refuse_unread(&self) -> Result<(), EditError> {
        let broken = self.lines.iter().find_map(|line| match &line.kind {
            LineKind::Broken { why, .. } => Some((line.number, *why)),
            _ => None,
        });
        match (self.kind, broken) {
            (ConfigFile::WslConf, Some((line, why))) => Err(EditError::Unread { line, why }),
            _ => Ok(()),
        }
    }

    /// Where the value of a key is written: the one in effect, else one on a broken line.
    fn written_value(&self, section: &str, key: &str) -> Option<Range<usize>> {
        let same = |within: &str, name: &str| keys::same(self.kind, (section, key), (within, name));
        let counts = self.lines.iter().find_map(|line| match &line.kind {
            LineKind::Setting { section, key_text, raw, .. } if same(section, key_text) => Some(raw.clone()),
            _ => None,
        });
        counts.or_else(|| {
            self.lines.iter().find_map(|line| match &line.kind {
                LineKind::Broken { section, key: Some(key), raw: Some(raw), .. }
                    if same(section, &self.text[key.clone()]) =>
                {
                    Some(raw.clone())
                }
                _ => None,
            })
        })
    }

    /// Where a new key goes, and the text of its line.
    fn new_line(&self, section: &str, key: &str, value: &str) -> (Range<usize>, String) {
        let end = self.line_end();
        let header = self.lines.iter().position(
            |line| matches!(&line.kind, LineKind::Section { name } if name.eq_ignore_ascii_case(section)),
        );
        let Some(header) = header else {
            let above = self.text.trim_end_matches(['\r', '\n']);
            let blank = self.text[above.len()..].matches('\n').count() > 1;
            let gap = if above.is_empty() || blank { "" } else { end };
            let start = self.at_line_start(self.text.len());
            let last = if self.text.is_empty() || self.text.ends_with('\n') { end } else { "" };
            let text = format!("{start}{gap}[{section}]{end}{key}={value}{last}");
            return (self.text.len()..self.text.len(), text);
        };
        let last_setting = self.lines[header + 1..]
            .iter()
            .take_while(|line| !changes_section(&line.kind))
            .filter_map(|line| match &line.kind {
                LineKind::Setting { key, raw, .. } => Some((line, key, raw)),
                _ => None,
            })
            .last();
        let (after, indent, equals) = match last_setting {
            Some((line, key, raw)) => {
                (line, &self.text[line.span.start..key.start], &self.text[key.end..raw.start])
            }
            None => (&self.lines[header], "", "="),
        };
        let at = after.span.end;
        let start = self.at_line_start(at);
        // A file that ended without a line end still does.
        let last = if at == self.text.len() && !start.is_empty() { "" } else { end };
        (at..at, format!("{start}{indent}{key}{equals}{value}{last}"))
    }

    /// What must come before a new line at this position.
    fn at_line_start(&self, at: usize) -> String {
        let before = &self.text[..at];
        if before.is_empty() || before.ends_with('\n') {
            return String::new();
        }
        // A backslash at the end of the file must not reach into the new line; before a space it
        // leaves its line as broken as it was.
        let last = self.lines.last().map(|line| &line.kind);
        let open = before.ends_with('\\')
            && matches!(last, Some(LineKind::Broken { why: scan::Broken::Escape, .. }));
        format!("{}{}", if open { " " } else { "" }, self.line_end())
    }

    /// The line end of the file; for a new file, that of the system that reads it.
    fn line_end(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            Some(_) => "\n",
            None if self.kind == ConfigFile::WslConfig => "\r\n",
            None => "\n",
        }
    }

    fn replace(&mut self, place: Range<usize>, text: &str) {
        self.text.replace_range(place, text);
        self.lines = scan::lines(&self.text);
        self.original = None;
        self.make_plain();
    }
}

/// Whether the keys after a line belong to another section than those before it.
fn changes_section(kind: &LineKind) -> bool {
    matches!(kind, LineKind::Section { .. } | LineKind::Broken { why: scan::Broken::Section, .. })
}

/// The value as it must be written for WSL to read it back.
fn escaped(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    if value.contains('#') || value.trim() != value { format!("\"{escaped}\"") } else { escaped }
}
