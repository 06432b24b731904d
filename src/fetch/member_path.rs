//! Validates and normalizes the paths of an archive's members. Backslashes count as separators, since
//! some Windows programs write them.
//!
//! Invariant: an accepted path stays inside the directory that the archive is unpacked into.

/// The bytes that Linux file systems allow for one component of a path.
const LONGEST: usize = 255;

/// Device names on Windows, which are reserved in every folder and with every extension.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The normalized path with `/` as the separator, or why it is rejected. Folders keep their `/` at the
/// end.
pub(super) fn safe_name(raw: &str) -> Result<String, String> {
    safe(raw, cfg!(windows))
}

fn safe(raw: &str, windows: bool) -> Result<String, String> {
    let refused = |why: &str| Err(format!("it contains {raw:?}, {why}"));
    if raw.contains('\0') {
        return refused("a name with a zero byte");
    }
    let slashes = raw.replace('\\', "/");
    if slashes.starts_with('/') {
        return refused("an absolute path");
    }
    let mut letters = slashes.chars();
    if letters.next().is_some_and(|first| first.is_ascii_alphabetic()) && letters.next() == Some(':') {
        return refused("a path with a drive letter");
    }
    let mut name = String::with_capacity(slashes.len());
    for part in slashes.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            return refused("which leaves the folder that it is unpacked into");
        }
        if part.len() > LONGEST {
            let start: String = part.chars().take(40).collect();
            return Err(format!(
                "it contains {start:?}…, a name of {} bytes; the limit is {LONGEST}",
                part.len()
            ));
        }
        if windows && !fits_windows(part) {
            return refused("a name that Windows does not allow");
        }
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(part);
    }
    if slashes.ends_with('/') || name.is_empty() {
        name.push('/');
    }
    Ok(name)
}

/// Whether Windows allows this as the name of a regular file.
fn fits_windows(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let numbered =
        |start: &str| stem.strip_prefix(start).is_some_and(|rest| matches!(rest.as_bytes(), [b'1'..=b'9']));
    !(part.contains(['<', '>', ':', '"', '|', '?', '*'])
        || part.chars().any(char::is_control)
        || part.ends_with(['.', ' '])
        || DEVICES.contains(&stem.as_str())
        || numbered("com")
        || numbered("lpt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["../x", "/etc/passwd", "a/../b", "a/..", "C:\\x", "c:x", "..\\x", "\\\\host\\x", "a\0b"]
        {
            assert!(safe(name, false).is_err(), "{name:?}");
        }
    }

    #[test]
    fn odd_but_harmless_names_are_normalized() {
        let cases = [("a\\b.jpg", "a/b.jpg"), ("./a//b", "a/b"), ("a/", "a/"), ("a\\", "a/"), ("./", "/")];
        for (raw, name) in cases {
            assert_eq!(safe(raw, false).as_deref(), Ok(name));
        }
        assert_eq!(safe("at 12:30.jpg", false).as_deref(), Ok("at 12:30.jpg"));
    }

    #[test]
    fn a_name_that_is_too_long_is_refused() {
        let why = safe(&format!("ds/{}.txt", "a".repeat(300)), false).unwrap_err();
        assert!(why.contains("aaa\"…") && why.contains("304 bytes"), "{why}");
        assert!(safe(&format!("ds/{}", "a".repeat(255)), false).is_ok());
    }

    #[test]
    fn on_windows_device_names_and_forbidden_letters_are_refused() {
        for name in ["con", "a/NUL.txt", "com1", "LPT9.jpg", "x.", "x ", "12:30", "a?b"] {
            assert!(safe(name, true).is_err() && safe(name, false).is_ok(), "{name:?}");
        }
        assert!(safe("console/com0/auxiliary.txt", true).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn a_safe_name_stays_below_its_folder(raw: String) {
            if let Ok(name) = safe_name(&raw) {
                let path = std::path::Path::new(&name);
                let below = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
                proptest::prop_assert!(below || name == "/", "{name:?}");
            }
        }
    }
}
