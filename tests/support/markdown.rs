//! The parts of a Markdown page that its tests look at: headings, links, code blocks and code
//! spans. It reads what this repository's pages use, not all of Markdown.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A page, taken apart.
pub struct Page {
    /// Relative to the repository.
    pub path: PathBuf,
    /// Its lines.
    pub text: String,
    /// Text of all headings, as written.
    pub headings: Vec<String>,
    /// Targets of links and images.
    pub links: Vec<String>,
    /// Language and text of fenced blocks.
    pub blocks: Vec<(String, String)>,
    /// Text between single backticks.
    pub spans: Vec<String>,
}

impl Page {
    /// Reads the page at `path`, which is relative to `root`.
    pub fn read(root: &Path, path: &Path) -> Self {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| {
            panic!("{}: {error}", path.display());
        });
        let (prose, blocks) = split(&text);
        let headings = prose
            .lines()
            .filter_map(|line| {
                line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
            })
            .map(|heading| heading.trim().to_owned())
            .collect();
        let (prose, spans) = without_spans(&prose);
        Self { path: path.to_owned(), headings, links: links(&prose), blocks, spans, text }
    }

    /// The anchors that GitHub gives its headings.
    pub fn anchors(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        self.headings
            .iter()
            .map(|heading| {
                let slug = slug(heading);
                let count = seen.entry(slug.clone()).or_default();
                *count += 1;
                if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
            })
            .collect()
    }

    /// The commands in `sh` blocks, one a line, without comments; those joined by `&&` apart.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let shell = self.blocks.iter().filter(|(language, _)| language == "sh");
        let lines = shell.flat_map(|(_, text)| text.lines());
        lines.flat_map(commands).collect()
    }
}

/// Prose with empty lines in place of fenced blocks, and the blocks.
fn split(text: &str) -> (String, Vec<(String, String)>) {
    let (mut prose, mut blocks) = (String::new(), Vec::new());
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        let fence = line.trim_start().strip_prefix("```");
        open = match (open, fence) {
            (None, None) => {
                prose.push_str(line);
                None
            }
            (None, Some(language)) => Some((language.trim().to_owned(), String::new())),
            (Some(block), Some(_)) => {
                blocks.push(block);
                None
            }
            (Some((language, text)), None) => Some((language, text + line + "\n")),
        };
        prose.push('\n');
    }
    (prose, blocks)
}

/// Prose with empty code spans, and the spans.
fn without_spans(prose: &str) -> (String, Vec<String>) {
    let (mut rest, mut spans) = (String::new(), Vec::new());
    for paragraph in prose.split("\n\n") {
        for (index, part) in paragraph.split('`').enumerate() {
            if index % 2 == 0 {
                rest.push_str(part);
            } else {
                spans.push(part.split_whitespace().collect::<Vec<_>>().join(" "));
                rest.push_str("code");
            }
        }
        rest.push_str("\n\n");
    }
    (rest, spans)
}

fn links(prose: &str) -> Vec<String> {
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// A heading as GitHub writes it in an address.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The commands of a shell line. Knows quotes, comments, `&&` and variables in front.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut command, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, _) if c.is_whitespace() => match word.take() {
                Some(and) if and == "&&" => all.push(std::mem::take(&mut command)),
                Some(word) => command.push(word),
                None => {}
            },
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    all.push(command);
    for command in &mut all {
        let is_variable = |word: &String| {
            word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            })
        };
        let variables = command.iter().take_while(|word| is_variable(word)).count();
        command.drain(..variables);
    }
    all.retain(|command| !command.is_empty());
    all
}
