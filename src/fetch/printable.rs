//! Text from outside, made safe for a terminal.

/// The text with line breaks, control characters and bidirectional overrides escaped, so that it can
/// neither forge a line nor move the cursor.
pub(crate) fn printable(name: &str) -> String {
    let moves = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    let mut shown = String::with_capacity(name.len());
    for letter in name.chars() {
        if moves(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line() {
        assert_eq!(printable("a\nERROR: b\u{1b}[31m\u{202e}ü b"), "a\\nERROR: b\\u{1b}[31m\\u{202e}ü b");
    }
}
