//! Text in lines of limited width. Paths in it become those of Explorer before it is broken or cut, because the parts
//! of a path would not be found afterwards.

use crate::in_wsl::{SPACE_OF_PATH, for_explorer, for_explorer_to_wrap};

/// The width of the doctor's text, which fits any window and an e-mail.
pub(crate) const COLUMNS: usize = 80;

/// Wraps text at [`COLUMNS`]: the first line starts with `first`, the others are indented as far. A
/// word longer than a line, such as a path, stays whole.
pub(crate) fn wrap(first: &str, text: &str) -> String {
    broken(first, &for_explorer_to_wrap(text))
}

fn broken(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let mut wrapped = first.to_owned();
    let mut column = indent.len();
    let mut is_line_start = true;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if !is_line_start && column + 1 + width > COLUMNS {
            wrapped.push('\n');
            wrapped.push_str(&indent);
            column = indent.len();
            is_line_start = true;
        }
        if !is_line_start {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += width;
        is_line_start = false;
    }
    wrapped.replace(SPACE_OF_PATH, " ")
}

/// The text on one line of at most `columns`, truncated with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let one_line: String =
        for_explorer(text).chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if one_line.chars().count() <= columns {
        return one_line;
    }
    let kept: String = one_line.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_indented_to_the_first_word() {
        let text = "word ".repeat(30);
        let wrapped = wrap("  why: ", &text);
        assert!(wrapped.starts_with("  why: word word"));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("       word")));
    }

    #[test]
    fn no_line_ends_in_a_path_with_spaces() {
        let text = format!(
            "correct `val`, the folder of the images for validation, in C:\\Zoë{SPACE_OF_PATH}data\\x.yaml"
        );
        let wrapped = broken("  do:   ", &text);
        assert!(wrapped.ends_with("\n        C:\\Zoë data\\x.yaml"), "{wrapped}");
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!(cut("four words on line", 10), "four word…");
        assert_eq!(cut("two\nlines", 10), "two lines");
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_lost(words in proptest::collection::vec("[a-zäß.]{1,30}", 0..40)) {
            let wrapped = wrap("   ", &words.join(" "));
            prop_assert!(wrapped.lines().all(|line| line.chars().count() <= COLUMNS));
            prop_assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
