//! Splits a configuration file into lines with the position of each part, by the rules of WSL's own
//! parser. A backslash continues a setting on the next line. Each [`Line`] spans its text and line
//! ending.
//!
//! Invariant: all lines together span the whole file.

use std::fmt;
use std::ops::Range;

use super::Setting;

/// One logical line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Its range in the text, including the line ending.
    pub(super) span: Range<usize>,
    /// The number of its first physical line, from 1.
    pub(super) number: usize,
    pub(super) kind: LineKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Empty, or only a comment.
    Blank,
    /// `[name]`
    Section { name: String },
    /// `key = value`, with the section that WSL assigns it to.
    Setting { section: String, key: Range<usize>, key_text: String, raw: Range<usize>, value: String },
    /// A line that WSL cannot parse, with its key and raw value if the parser got that far.
    Broken { why: Broken, section: String, key: Option<Range<usize>>, raw: Option<Range<usize>> },
}

/// Why WSL cannot parse a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A line must begin with a letter, `[` or `#`.
    Start,
    /// A section must be `[name]`, of letters and digits, without spaces, alone on its line.
    Section,
    /// A key must be letters and digits, followed by `=`.
    Key,
    /// A backslash before a character that it does not escape.
    Escape,
    /// A quote that is not closed on its line.
    Quote,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Start => "it must begin with a letter, `[` or `#`",
            Self::Section => "a section must be `[name]`, without spaces and alone on its line",
            Self::Key => "it is not `key=value`",
            Self::Escape => "a backslash must be doubled: `\\\\`",
            Self::Quote => "a quote is not closed",
        })
    }
}

impl Line {
    /// The setting, if it is one.
    pub(super) fn setting(&self) -> Option<Setting<'_>> {
        match &self.kind {
            LineKind::Setting { section, key_text, value, .. } => {
                Some(Setting { section, key: key_text, value, line: self.number })
            }
            _ => None,
        }
    }
}

/// All lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut scanner = Scanner { text, at: 0, section: String::new() };
    let mut lines = Vec::new();
    let mut number = 1;
    while scanner.at < text.len() {
        let start = scanner.at;
        let kind = scanner.line();
        let span = start..scanner.at;
        let ends = text[span.clone()].matches('\n').count();
        lines.push(Line { span, number, kind });
        number += ends;
    }
    lines
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The section of the keys that follow.
    section: String,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// The next character; a Windows line ending counts as one.
    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        if rest.starts_with("\r\n") {
            self.at += 2;
            return Some('\n');
        }
        let next = rest.chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    fn skip_name(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            self.at += 1;
        }
    }

    /// Skips past the next line ending. A lone carriage return does not end a comment.
    fn skip_line(&mut self) {
        while !matches!(self.next(), None | Some('\n')) {}
    }

    /// Skips the rest of a line after its last significant character: a comment, a line ending, or
    /// nothing.
    fn finish(&mut self) {
        match self.peek() {
            Some('#') => self.skip_line(),
            _ => {
                self.next();
            }
        }
    }

    fn line(&mut self) -> LineKind {
        self.skip_spaces();
        match self.peek() {
            None | Some('\n' | '\r' | '#') => {
                self.finish();
                LineKind::Blank
            }
            Some('[') => self.section_line(),
            Some(c) if c.is_ascii_alphabetic() => self.setting_line(),
            Some(_) => {
                self.skip_line();
                self.broken(Broken::Start, None, None)
            }
        }
    }

    fn broken(&self, why: Broken, key: Option<Range<usize>>, raw: Option<Range<usize>>) -> LineKind {
        LineKind::Broken { why, section: self.section.clone(), key, raw }
    }

    fn section_line(&mut self) -> LineKind {
        self.at += 1;
        let start = self.at;
        if !self.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
            // The previous section continues.
            self.skip_line();
            return self.broken(Broken::Section, None, None);
        }
        self.skip_name();
        let name = self.text[start..self.at].to_owned();
        let closed = self.peek() == Some(']');
        if closed {
            self.at += 1;
            self.skip_spaces();
        }
        if closed && matches!(self.peek(), None | Some('\n' | '\r' | '#')) {
            self.section.clone_from(&name);
            self.finish();
            return LineKind::Section { name };
        }
        // WSL takes the new name but keeps the length of the old one, so the keys that follow
        // belong to the truncated name.
        let length = self.section.len();
        self.section = name.chars().chain(std::iter::repeat('\0')).take(length).collect();
        self.skip_line();
        self.broken(Broken::Section, None, None)
    }

    fn setting_line(&mut self) -> LineKind {
        let start = self.at;
        self.skip_name();
        let key = start..self.at;
        self.skip_spaces();
        if self.peek() != Some('=') {
            self.skip_line();
            return self.broken(Broken::Key, Some(key), None);
        }
        self.at += 1;
        self.skip_spaces();
        match self.value() {
            Ok((value, raw)) => {
                self.finish();
                let key_text = self.text[key.clone()].to_owned();
                LineKind::Setting { section: self.section.clone(), key_text, key, raw, value }
            }
            Err((why, raw)) => {
                self.skip_line();
                self.broken(why, Some(key), Some(raw))
            }
        }
    }

    /// Reads a value up to a comment or the end of its line: without quotes, escapes and trailing
    /// spaces, and its range in the text.
    fn value(&mut self) -> Result<(String, Range<usize>), (Broken, Range<usize>)> {
        let start = self.at;
        let mut end = start;
        let mut value = String::new();
        let mut trimmed = 0;
        let mut quoted = false;
        loop {
            match self.peek() {
                None | Some('\n' | '\r') => break,
                Some('#') if !quoted => break,
                Some('"') => {
                    quoted = !quoted;
                    self.at += 1;
                }
                Some('\\') => match self.escape() {
                    Some(text) => value.push_str(text),
                    None => return Err((Broken::Escape, self.broken_value(start, quoted))),
                },
                Some(c) => {
                    value.push(c);
                    self.at += c.len_utf8();
                    if matches!(c, ' ' | '\t') {
                        continue;
                    }
                }
            }
            trimmed = value.len();
            end = self.at;
        }
        if quoted {
            return Err((Broken::Quote, self.broken_value(start, quoted)));
        }
        value.truncate(trimmed);
        Ok((value, start..end))
    }

    /// Reads a backslash and the character that it escapes; `None` if WSL does not know the escape.
    fn escape(&mut self) -> Option<&'static str> {
        self.at += 1;
        let escaped = self.next();
        match escaped {
            Some('\\') => Some("\\"),
            Some('"') => Some("\""),
            Some('b') => Some("\u{8}"),
            Some('n') => Some("\n"),
            Some('t') => Some("\t"),
            // The value continues on the next line.
            Some('\n') => Some(""),
            other => {
                self.at -= other.map_or(0, char::len_utf8);
                None
            }
        }
    }

    /// The range of a value that WSL cannot parse: up to a comment, unless a quote is open, or the end
    /// of the broken line.
    fn broken_value(&self, start: usize, quoted: bool) -> Range<usize> {
        let rest = &self.text[self.at..];
        let ends: &[char] = if quoted { &['\n', '\r'] } else { &['\n', '\r', '#'] };
        let end = self.at + rest.find(ends).unwrap_or(rest.len());
        start..start + self.text[start..end].trim_end_matches([' ', '\t']).len()
    }
}
