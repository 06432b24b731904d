//! Undoing a change of the file of shell variables, in which each line stands alone: the lines of a change are taken
//! out or put back wherever they are, whatever was changed around them since. So changes of different variables are
//! undone in any order.

use crate::variable_lines::{is_head, variable};

/// What is left to do about a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Nothing: its lines are as before.
    AsBefore,
    /// The file without the change; `None` if nothing remains in it.
    Without(Option<Vec<u8>>),
    /// Lines about the same variables were written since.
    Changed,
}

/// Compares a file with what it was before and after a change.
pub(super) fn without(before: &[u8], after: &[u8], present: &[u8]) -> Lines {
    let (before, after, present) = (split(before), split(after), split(present));
    let only_in = |these: &[&[u8]], others: &[&[u8]]| -> Vec<Vec<u8>> {
        let own = these.iter().filter(|line| !is_head(line) && !others.contains(line));
        own.map(|line| line.to_vec()).collect()
    };
    let (added, removed) = (only_in(&after, &before), only_in(&before, &after));
    let is_there = |line: &Vec<u8>| present.contains(&line.as_slice());
    let is_about = |line: &[u8], others: &[Vec<u8>]| {
        variable(line).is_some_and(|name| others.iter().any(|other| variable(other) == Some(name)))
    };
    // Lines about the variables of the change that the change did not write, and that were not there before it.
    let is_foreign = |line: &&[u8]| {
        let known = added.iter().chain(&removed).any(|own| own == line);
        !known && (is_about(line, &added) || is_about(line, &removed))
    };
    if present.iter().any(is_foreign) {
        return Lines::Changed;
    }
    if !added.iter().any(is_there) && removed.iter().all(is_there) {
        return Lines::AsBefore;
    }
    if !added.iter().all(is_there) {
        return Lines::Changed;
    }
    let has_head = before.iter().any(|line| is_head(line)) || !after.iter().any(|line| is_head(line));
    let kept =
        present.iter().filter(|line| !added.iter().any(|own| own == *line) && (has_head || !is_head(line)));
    let mut lines: Vec<&[u8]> = kept.copied().collect();
    lines.extend(removed.iter().filter(|line| !is_there(line)).map(Vec::as_slice));
    if lines.iter().all(|line| line.is_empty() || is_head(line)) {
        return Lines::Without(None);
    }
    Lines::Without(Some(lines.iter().flat_map(|line| [line, b"\n".as_slice()].concat()).collect()))
}

/// The lines of a text, without their ends.
fn split(text: &[u8]) -> Vec<&[u8]> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::variable_lines::HEAD as HEADED;

    fn undo(before: &str, after: &str, present: &str) -> Option<Option<String>> {
        match without(before.as_bytes(), after.as_bytes(), present.as_bytes()) {
            Lines::AsBefore => Some(Some(present.to_owned())),
            Lines::Without(rest) => Some(rest.map(|rest| String::from_utf8(rest).unwrap())),
            Lines::Changed => None,
        }
    }

    #[test]
    fn lines_about_other_variables_are_nothing_to_a_change() {
        let (one, two) = ("export A=\"1\"\n", "unset B\n");
        let (first, both) = (format!("{HEADED}{one}"), format!("{HEADED}{one}{two}"));
        // The earlier one first, and then the later one, of which nothing else is left.
        assert_eq!(undo("", &first, &both), Some(Some(two.to_owned())));
        assert_eq!(undo(&first, &both, two), Some(None));
        // The usual order.
        assert_eq!(undo(&first, &both, &both), Some(Some(first.clone())));
        assert_eq!(undo("", &first, &first), Some(None));
        // A replaced line comes back.
        let later = format!("{HEADED}{two}export A=\"2\"\n");
        assert_eq!(undo(&both, &later, &later), Some(Some(format!("{HEADED}{two}{one}"))));
    }

    #[test]
    fn a_line_about_the_same_variable_keeps_a_change() {
        let first = format!("{HEADED}export A=\"1\"\n");
        assert_eq!(undo("", &first, &format!("{HEADED}export A=\"2\"\n")), None);
        assert_eq!(undo("", &first, &format!("{first}  export A=3 # mine\n")), None);
        assert_eq!(
            undo("", &first, &format!("{first}export AB=3\n")),
            Some(Some("export AB=3\n".to_owned()))
        );
    }

    #[test]
    fn a_change_whose_lines_are_gone_is_undone() {
        let first = format!("{HEADED}export A=\"1\"\n");
        assert_eq!(without(b"", first.as_bytes(), b"unset B\n"), Lines::AsBefore);
    }

    proptest! {
        #[test]
        fn changes_of_different_variables_can_be_undone_in_any_order(
            mine in proptest::collection::vec("(alias [a-z]=[0-9]|# [a-z]+)", 0..4),
            order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
        ) {
            let mine: String = mine.iter().map(|line| format!("{line}\n")).collect();
            let mut texts = vec![mine.clone()];
            for name in ["A", "B", "C", "D"] {
                let text = texts.last().cloned().unwrap_or_default();
                let head = if text.is_empty() { HEADED } else { "" };
                texts.push(format!("{head}{text}export {name}=\"1\"\n"));
            }
            let mut present = texts[4].clone();
            for number in order {
                let rest = undo(&texts[number], &texts[number + 1], &present);
                prop_assert!(rest.is_some(), "{number} of {present}");
                present = rest.flatten().unwrap_or_default();
            }
            prop_assert_eq!(present, mine);
        }
    }
}
