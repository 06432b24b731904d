//! The lines of the file of shell variables, which `yolo doctor --fix` writes and `yolo undo` takes back. It is text that the
//! user may change, so a line is compared byte by byte.

/// The first line of a file that `yolo` has created.
pub(crate) const HEAD: &str = "# Written by `yolo doctor --fix`. Source it: . env.sh\n";
/// What such a line begins with, in every version.
const HEAD_BEGINS: &[u8] = b"# Written by `yolo doctor --fix`";

/// Whether a line is the first one of a file that `yolo` has created.
pub(crate) fn is_head(line: &[u8]) -> bool {
    line.starts_with(HEAD_BEGINS)
}

/// The variable that a line sets or unsets.
pub(crate) fn variable(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    match line.strip_prefix(b"export ") {
        Some(rest) => rest.split(|byte| *byte == b'=').next(),
        None => line.strip_prefix(b"unset ").map(<[u8]>::trim_ascii),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_one_variable() {
        for (line, name) in [
            ("export A=\"1\"", Some("A")),
            ("  export AB=3 # mine", Some("AB")),
            ("unset B ", Some("B")),
            ("alias ll='ls -l'", None),
            (HEAD, None),
            ("", None),
        ] {
            assert_eq!(variable(line.as_bytes()), name.map(str::as_bytes), "{line}");
        }
        assert!(is_head(HEAD.as_bytes()) && !is_head(b"# mine"));
    }
}
