//! Shell quoting of paths in commands that a user copies: a space or an apostrophe in a folder name
//! must not break them.

/// Quotes a path for a POSIX shell, if needed. A leading `~/` stays outside the quotes, because the
/// shell does not expand it inside them.
pub fn quote(path: &str) -> String {
    let is_plain = |letter: char| {
        letter.is_alphanumeric()
            || matches!(letter, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '=' | '@' | '%')
    };
    let (home, rest) = path.strip_prefix("~/").map_or(("", path), |rest| ("~/", rest));
    if !rest.is_empty() && rest.chars().all(is_plain) || rest.is_empty() && !home.is_empty() {
        return path.to_owned();
    }
    format!("{home}'{}'", rest.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_arguments_that_need_it_are_quoted() {
        for (path, word) in [
            ("/home/mara/birds", "/home/mara/birds"),
            ("~/jeu de données/data.yaml", "~/'jeu de données/data.yaml'"),
            ("~/birds", "~/birds"),
            ("/données", "/données"),
            ("/mara's/$x", r"'/mara'\''s/$x'"),
            (r"D:\birds", r"'D:\birds'"),
            ("", "''"),
            ("a~/b", "'a~/b'"),
        ] {
            assert_eq!(quote(path), word);
        }
    }

    /// A word as a shell reads it; `None` if the shell would see more than one word.
    fn read(word: &str) -> Option<String> {
        let (mut text, mut inside) = (String::new(), false);
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' => inside = !inside,
                '\\' if !inside => text.push(letters.next()?),
                letter if !inside && (letter.is_whitespace() || "$`\"&;|<>()*?[#!".contains(letter)) => {
                    return None;
                }
                letter => text.push(letter),
            }
        }
        (!inside).then_some(text)
    }

    proptest! {
        #[test]
        fn a_shell_reads_back_the_path(path in "(~/|'| |\\$|\\PC){0,12}") {
            prop_assert_eq!(read(&quote(&path)), Some(path));
        }
    }
}
