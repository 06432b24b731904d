//! Secrets in texts: values after words such as `--password` and `HF_TOKEN=`, credentials in URLs,
//! tokens with a known shape, and email addresses. No check needs them.

/// The replacement of a secret. It does not look like a secret itself, so redacting twice changes
/// nothing.
pub(super) const HIDDEN: &str = "hidden";

/// Words that mark a value as secret anywhere in its name.
const STRONG: [&str; 11] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "private_key",
];
/// Words that mark a value as secret if they are a whole part of its name, as in `--ssh-key`.
const PARTS: [&str; 5] = ["key", "auth", "pass", "pw", "authorization"];
/// Prefixes of tokens, with the minimum number of characters that follow.
const SHAPES: [(&str, usize); 16] = [
    ("hf_", 5),
    ("sk-", 5),
    ("sk_", 8),
    ("ghp_", 5),
    ("gho_", 8),
    ("ghu_", 8),
    ("ghs_", 8),
    ("ghr_", 8),
    ("github_pat_", 5),
    ("glpat-", 8),
    ("AKIA", 8),
    ("ASIA", 8),
    ("eyJ", 10),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("AIza", 16),
];
/// Suffixes of systemd units, which look like email addresses: `user@1000.service`.
const UNITS: [&str; 9] =
    ["service", "slice", "scope", "socket", "mount", "target", "timer", "device", "swap"];
/// The commands of `yolo`, existing and planned, and `detect` of YOLOv5's successor. They are kept in
/// the command line of a process. A test of `yolo` fails if one is missing.
pub const YOLO_COMMANDS: [&str; 14] = [
    "train",
    "rank",
    "val",
    "predict",
    "export",
    "bench",
    "compare",
    "evolve",
    "doctor",
    "setup",
    "undo",
    "completions",
    "detect",
    "weights",
];

/// Whether the name of a variable or an option marks its value as secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    STRONG.iter().any(|word| lower.contains(word))
        || lower.split(['_', '-', '.']).any(|part| PARTS.contains(&part))
}

/// Whether an environment variable holds a secret. `SSH_AUTH_SOCK` and similar ones do not.
pub(super) fn is_secret_variable(name: &str) -> bool {
    let lower = name.to_lowercase();
    STRONG.iter().any(|word| lower.contains(word)) || lower.ends_with("_key") || lower.ends_with("_auth")
}

/// The command line of a process, reduced to what identifies it: the program, the script or module,
/// and `…` for the rest. A final `<defunct>` is kept.
pub(super) fn program_of(command: &str) -> String {
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return command.to_owned() };
    let of_yolo = program.rsplit('/').next().is_some_and(|name| name.starts_with("yolo"));
    let (mut kept, mut lost, mut has_script) = (vec![program], false, false);
    while let Some(word) = words.next() {
        let is_script = word.ends_with(".py") && !word.starts_with('-') && !word.contains(['=', '@', ';']);
        let is_command = of_yolo && kept.len() == 1 && YOLO_COMMANDS.contains(&word);
        if matches!(word, "<defunct>" | "[defunct]") {
            kept.push(word);
        } else if !has_script && (is_script || is_command) {
            kept.push(word);
            has_script = true;
        } else if !has_script && word == "-m" {
            let module = words.next().unwrap_or_default();
            let is_plain = module.chars().all(|letter| letter.is_alphanumeric() || "._".contains(letter));
            kept.extend(if is_plain { [word, module] } else { [word, "…"] });
            has_script = true;
        } else {
            lost |= word != "…";
        }
    }
    // `<defunct>` stays at the end.
    if lost || command.split_whitespace().any(|word| word == "…") {
        let end = kept.iter().position(|word| word.ends_with("defunct>") || word.ends_with("defunct]"));
        kept.insert(end.unwrap_or(kept.len()), "…");
    }
    kept.join(" ")
}

/// The text without secrets. A second call changes nothing: hiding a value can complete the shape of
/// another secret, as in `://TOKEN=/@`, where it removes the slash, so the text is read until nothing
/// is left to hide.
pub(super) fn without_secrets(text: &str) -> String {
    /// Each pass hides more or is the last, so this is never reached.
    const PASSES: usize = 100;
    let mut text = text.to_owned();
    for _ in 0..PASSES {
        let hidden = hide_once(&text);
        if hidden == text {
            break;
        }
        text = hidden;
    }
    text
}

fn hide_once(text: &str) -> String {
    let text = without_credentials(text);
    let is_between = |letter: char| letter.is_whitespace() || "\"'`()<>,;&|[]{}".contains(letter);
    let mut result = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // Whether the previous word announces a secret.
    let mut next_is_secret = false;
    while !rest.is_empty() {
        let start = rest.find(|letter| !is_between(letter)).unwrap_or(rest.len());
        next_is_secret &= !rest[..start].contains('\n');
        result.push_str(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(is_between).unwrap_or(word.len());
        let word = &word[..end];
        if next_is_secret && !word.is_empty() && !word.starts_with('-') {
            result.push_str(HIDDEN);
            next_is_secret = false;
        } else {
            result.push_str(&hide_in_word(word));
            next_is_secret = announces(word);
        }
        rest = &rest[start + end..];
    }
    result
}

/// Whether the next word is the value: after `--password`, and after `password:`.
fn announces(word: &str) -> bool {
    if let Some(name) = word.strip_suffix(':') {
        let lower = name.to_lowercase();
        return STRONG.iter().any(|word| lower.ends_with(word)) || lower == "authorization";
    }
    word.strip_prefix('-').is_some_and(|name| !name.contains('=') && is_secret_name(name))
        // `Authorization: Bearer …`
        || matches!(word, "Bearer" | "Basic")
}

fn hide_in_word(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && is_secret_name(name.rsplit(['?', '/']).next().unwrap_or(name))
    {
        return format!("{name}={HIDDEN}");
    }
    without_mail(&without_tokens(word))
}

/// Hides the parts of a word that have the shape of a token.
fn without_tokens(word: &str) -> String {
    let is_edge = |letter: char| "=:/@?#".contains(letter);
    let parts = word.split_inclusive(is_edge).map(|part| {
        let body = part.trim_end_matches(is_edge);
        let is_token = SHAPES.iter().any(|(begin, least)| {
            body.strip_prefix(begin).is_some_and(|rest| {
                let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
                // `hf_models` may be the name of a folder.
                let is_random =
                    rest.chars().any(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
                rest.len() >= *least && is_random && rest.chars().all(plain)
            })
        });
        if is_token { format!("{HIDDEN}{}", &part[body.len()..]) } else { part.to_owned() }
    });
    parts.collect()
}

/// Masks an email address in a word.
fn without_mail(word: &str) -> String {
    let Some(at) = word.find('@') else { return word.to_owned() };
    let is_name = |letter: char| letter.is_alphanumeric() || "._%+-".contains(letter);
    let is_domain = |letter: char| letter.is_alphanumeric() || ".-".contains(letter);
    let before = &word[..at];
    let start = before.char_indices().rev().take_while(|(_, letter)| is_name(*letter)).last();
    let start = start.map_or(at, |(place, _)| place);
    let after = &word[at + 1..];
    let domain = &after[..after.find(|letter| !is_domain(letter)).unwrap_or(after.len())];
    let domain = domain.trim_end_matches('.');
    let ending = domain.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_mail = start < at
        && &word[start..at] != HIDDEN
        && ending.len() > 1
        && ending.chars().all(char::is_alphabetic)
        && !UNITS.contains(&ending);
    if !is_mail {
        return word.to_owned();
    }
    let (name, rest) = (super::names::mask(&word[start..at]), &after[domain.len()..]);
    format!("{}{name}@{}{rest}", &word[..start], super::names::mask(domain))
}

/// Hides what precedes the `@` in `https://name:password@host`.
fn without_credentials(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        result.push_str(head);
        let end = tail.find(['/', ' ', '\n', '"']).unwrap_or(tail.len());
        rest = match tail[..end].rfind('@') {
            Some(mark) => {
                result.push_str(HIDDEN);
                &tail[mark..]
            }
            None => tail,
        };
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_after_secret_words_are_hidden() {
        for (text, hidden) in [
            ("x --password hunter2 y", "x --password hidden y"),
            ("x --token=abc123tok y", "x --token=hidden y"),
            ("HF_TOKEN=hf_xyzzy", "HF_TOKEN=hidden"),
            ("--api-key sk-live-1", "--api-key hidden"),
            ("--api-key \"a b\"", "--api-key \"hidden b\""),
            ("password: hunter2\nnc: 2", "password: hidden\nnc: 2"),
            ("https://x.org/a?token=abc", "https://x.org/a?token=hidden"),
            ("://TOKEN=/`@", "://hidden@"),
            ("Authorization: Bearer abc", "Authorization: hidden abc"),
        ] {
            assert_eq!(without_secrets(text), hidden, "{text}");
        }
    }

    #[test]
    fn tokens_are_recognized_by_their_shape() {
        for token in [
            "hf_AbCdEfGhIjKl",
            "sk-live-1234567",
            "ghp_abcdefgh12345678",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.e30.abc",
        ] {
            assert_eq!(without_secrets(&format!("with {token}, so")), "with hidden, so");
        }
    }

    #[test]
    fn email_addresses_are_masked_and_systemd_units_are_not() {
        assert_eq!(without_secrets("-e mail@kowalska.org."), "-e xxxx@xxxxxxxx.xxx.");
        for text in ["user@1000.service", "oe-user@oe-host", "root@box", "@", "a@b", "disk-sk-a"] {
            assert_eq!(without_secrets(text), text);
        }
    }

    #[test]
    fn settings_that_only_resemble_secrets_are_kept() {
        for text in [
            "keypoints: [17, 3]\nkpt_shape: [17, 3]",
            "key was rejected by service",
            "monkey=1",
            "rw,path=C:\\;uid=1000;symlinkroot=/mnt/",
        ] {
            assert_eq!(without_secrets(text), text);
        }
    }

    #[test]
    fn a_command_line_is_reduced_to_program_and_script() {
        for (command, expected) in [
            ("python3 -c import time;time.sleep(9) train.py --password hunter2", "python3 train.py …"),
            (
                "/usr/bin/python3 -u -m torch.distributed.run --x y",
                "/usr/bin/python3 -m torch.distributed.run …",
            ),
            ("torchrun --token abc train.py", "torchrun train.py …"),
            ("/opt/yolo train --data a", "/opt/yolo train …"),
            ("yolo-trainer", "yolo-trainer"),
            ("python3 --key a <defunct>", "python3 … <defunct>"),
            ("[python3] <defunct>", "[python3] <defunct>"),
            ("", ""),
        ] {
            assert_eq!(program_of(command), expected);
            assert_eq!(program_of(expected), expected);
        }
    }

    proptest! {
        #[test]
        fn hiding_twice_changes_nothing(text in "(--password |TOKEN=|hf_|eyJ|@|a\\.b|://|\\PC){0,30}") {
            let once = without_secrets(&text);
            prop_assert_eq!(without_secrets(&once), once.clone());
        }
    }
}
