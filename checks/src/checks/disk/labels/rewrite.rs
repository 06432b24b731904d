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
    let root = labels_above(&folder);
    let is_of_labels = root.is_some();
    let labels = root.unwrap_or(folder);
    if !labels.starts_with('/') {
        return finding.remedy(text);
    }
    let at = quote(&labels);
    // Beside images, only the labels are kept: a copy of the images could be too large.
    let (copy, keep) = if is_of_labels {
        let copy = format!("{labels}-{copy}");
        let keep = format!("cp -rnT {at} {}", quote(&copy));
        (copy, keep)
    } else {
        let copy = format!("{labels}-{copy}.tar");
        let keep = format!("find {at} -name '*.txt' -print0 | tar -cPf {} --null -T -", quote(&copy));
        (copy, keep)
    };
    // mawk, the awk of Debian and Ubuntu, would read and write decimal commas in some languages.
    let change = match line {
        Line::Sed(expression) => format!("find {at} {LABELS} -exec sed -i -E '{expression}' {{}} +"),
        Line::Awk(program) => format!(
            "find {at} {LABELS} -exec sh -c 'for file; do LC_ALL=C awk \"$0\" \"$file\" > \"$file.new\" && mv \"$file.new\" \"$file\"; \
             done' '{program}' {{}} +"
        ),
    };
    finding
        .remedy(format!("{text}: this changes all label files in {labels}; {copy} keeps the old ones"))
        .command(format!("{keep} && {change}"))
}

/// The folder named `labels` that a folder is, or is in: `/d/labels` for `/d/labels/train`.
pub(super) fn labels_above(folder: &str) -> Option<String> {
    let at = format!("{folder}/").rfind("/labels/")?;
    Some(format!("{}/labels", &folder[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_of_that_name_is_the_one_of_labels() {
        assert_eq!(labels_above("/d/labels/train").as_deref(), Some("/d/labels"));
        assert_eq!(labels_above("/d/labels").as_deref(), Some("/d/labels"));
        assert_eq!(labels_above("/home/ada/labelstudio/train"), None);
        assert_eq!(labels_above("/d/labels-v2/train"), None);
    }
}
