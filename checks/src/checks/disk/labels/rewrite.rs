//! Commands that change all label files of a data set, with a copy of the old ones. They are for shells of Linux; whoever
//! reads them elsewhere gets the words alone.

use crate::facts::view::data_set::parent;
use crate::finding::Finding;
use crate::shell_quote::quote;

/// Which files are labels: lists of names have the same extension.
const LABELS: &str = "-name '*.txt' ! -name classes.txt ! -name labels.txt ! -name notes.txt";

/// How each line is changed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line {
    /// By an expression of `sed -E`.
    Sed(&'static str),
    /// By a program of awk.
    Awk(&'static str),
}

/// The finding with what to do and its commands. `label` is one of the label files; `copy` ends the name of the copy.
pub(super) fn all(finding: Finding, label: &str, text: &str, copy: &str, line: Line) -> Finding {
    let folder = parent(label).unwrap_or_default();
    let labels = folder.rfind("/labels").map_or(folder.clone(), |at| format!("{}/labels", &folder[..at]));
    if !labels.starts_with('/') {
        return finding.remedy(text);
    }
    let copy = format!("{labels}-{copy}");
    let at = quote(&labels);
    let command = match line {
        Line::Sed(expression) => format!("find {at} {LABELS} -exec sed -i -E '{expression}' {{}} +"),
        Line::Awk(program) => format!(
            "find {at} {LABELS} -exec sh -c 'for file; do awk \"$0\" \"$file\" > \"$file.new\" && mv \"$file.new\" \"$file\"; done' \
             '{program}' {{}} +"
        ),
    };
    finding
        .remedy(format!(
            "{text}: this changes all label files in {labels}; the copy {copy} keeps the old ones"
        ))
        .command(format!("cp -rnT {at} {}", quote(&copy)))
        .command(command)
}
