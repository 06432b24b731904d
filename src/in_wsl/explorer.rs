//! Messages for a person at a Windows prompt: paths of this Linux in them become paths that Explorer and the prompt
//! open. This is done where everything is printed, so that no message is forgotten. A path is found by a folder that it
//! starts with, and ends before the first space, unless a file of a longer name exists.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use yolo_base::windows_paths::Drives;

use super::prompt::{Prompt, named};

/// Folders below which messages name files, apart from the drives, the working folder and the home folder.
const FOLDERS: [&str; 5] = ["/home", "/root", "/tmp", "/opt/yolo", "/mnt"];

/// What [`for_explorer_to_wrap`] writes for a space in a path: a letter of no language, and of no file name that we know.
pub(crate) const SPACE_OF_PATH: char = '\u{f8ff}';

/// The text with its paths as Windows writes them, if this command was typed at a Windows prompt.
pub(crate) fn for_explorer(text: &str) -> Cow<'_, str> {
    shown(text, ' ')
}

/// The same for text that is broken into lines next: afterwards a path with a space could be in two lines, and
/// would not be found. Its spaces are [`SPACE_OF_PATH`], so that no line ends there.
pub(crate) fn for_explorer_to_wrap(text: &str) -> Cow<'_, str> {
    shown(text, SPACE_OF_PATH)
}

fn shown(text: &str, space: char) -> Cow<'_, str> {
    static ROOTS: LazyLock<Option<Vec<String>>> = LazyLock::new(|| {
        Prompt::of_this_process()?;
        let here = std::env::current_dir().ok().and_then(|folder| folder.to_str().map(str::to_owned));
        let home = std::env::var(yolo_base::env::YOLO_HOME).ok();
        // WSL mounts the drives below /mnt unless a setting says otherwise.
        let drives = Drives::of_this_system().points();
        let known = FOLDERS.into_iter().chain(drives).map(str::to_owned);
        // Results are below a folder that the command names, such as that of --project.
        let roots = known.chain(here).chain(home).chain(named());
        Some(roots.filter(|root| root.len() > 1 && root.starts_with('/')).collect())
    });
    match &*ROOTS {
        Some(roots) => rewritten(
            text,
            roots,
            &named(),
            Drives::of_this_system(),
            &|path| Path::new(path).exists(),
            space,
        ),
        None => text.into(),
    }
}

/// The text with its paths as these drives have them, with this letter for their spaces. `named` are whole paths that
/// it may have.
fn rewritten<'a>(
    text: &'a str,
    roots: &[String],
    named: &[String],
    drives: &Drives,
    exists: &dyn Fn(&str) -> bool,
    space: char,
) -> Cow<'a, str> {
    let mut result = String::new();
    let mut rest = text;
    let mut before = '\n';
    while let Some(at) = rest.find('/') {
        let (head, tail) = rest.split_at(at);
        result.push_str(head);
        let before_path = head.chars().next_back().unwrap_or(before);
        let length = if starts_word(before_path) { length(tail, roots, named, exists) } else { None };
        let written = length.and_then(|length| Some((length, drives.write(Path::new(&tail[..length]))?)));
        match written {
            Some((length, windows)) => {
                let after = &tail[length..];
                // The quotation marks of a shell are none in cmd.
                let unquoted = result.strip_suffix('\'').filter(|text| follows_option(text)).map(str::len);
                let unquoted = unquoted.filter(|_| after.starts_with('\''));
                if let Some(text) = unquoted {
                    result.truncate(text);
                }
                let is_argument = unquoted.is_some() || needs_quotes(&windows) && follows_option(&result);
                // cmd takes single quotes for letters, so what it would split stays in double ones.
                let is_simple = !needs_quotes(&windows.replace(['$', '`'], ""));
                let quote = if windows.contains(['$', '`']) && is_simple { '\'' } else { '"' };
                let windows = windows.replace(' ', space.encode_utf8(&mut [0; 4]));
                result.push_str(&if is_argument { format!("{quote}{windows}{quote}") } else { windows });
                (rest, before) = (&after[usize::from(unquoted.is_some())..], 'x');
            }
            None => {
                result.push('/');
                (rest, before) = (&tail[1..], '/');
            }
        }
    }
    if result.is_empty() {
        return text.into();
    }
    result.push_str(rest);
    result.into()
}

/// Whether a path may begin after this letter.
fn starts_word(before: char) -> bool {
    before.is_whitespace() || matches!(before, '`' | '\'' | '"' | '(' | '=' | '[' | 'm')
}

/// How long the path is with which the text begins, if it is a named one or below a root.
fn length(text: &str, roots: &[String], named: &[String], exists: &dyn Fn(&str) -> bool) -> Option<usize> {
    let below = |root: &&String| {
        text.strip_prefix(root.as_str())
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_'))
    };
    let whole = |path: &&String| {
        text.strip_prefix(path.as_str())
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/'))
    };
    if let Some(length) = named.iter().filter(whole).map(String::len).max() {
        return Some(length);
    }
    let root = roots.iter().filter(below).map(String::len).max()?;
    // The root itself may have such letters: a user's name with an apostrophe.
    let end = text[root..].find(['\n', '`', '"', '\'', '\u{1b}']).map_or(text.len(), |at| root + at);
    let line = &text[..end];
    let end_of_word = |from: usize| {
        let end = line[from..].find(|c: char| c.is_whitespace()).map_or(line.len(), |at| from + at);
        from + line[from..end].trim_end_matches([',', ';', ':', '.', ')', ']']).len()
    };
    let first = end_of_word(root);
    let mut longest = None;
    let mut at = first;
    for _ in 0..12 {
        if exists(&line[..at]) {
            longest = Some(at);
        }
        match line[at..].find(|c: char| !c.is_whitespace()) {
            Some(more) if at + more < line.len() => {
                let next = end_of_word(at + more);
                if next <= at {
                    break;
                }
                at = next;
            }
            _ => break,
        }
    }
    Some(longest.unwrap_or(first))
}

/// Whether cmd or PowerShell would read the path as more than one word: at `&`, `;`, `,` and parentheses. In double quotes,
/// PowerShell still reads `$` and a backtick, and in single quotes it does not; cmd takes these for letters, and
/// [`Prompt`] removes them.
fn needs_quotes(path: &str) -> bool {
    path.contains(|c: char| !c.is_alphanumeric() && !matches!(c, '\\' | ':' | '.' | '_' | '-'))
}

/// Whether the text ends with an option whose value comes next.
fn follows_option(text: &str) -> bool {
    let word = text.trim_end_matches(' ').rsplit([' ', '\n', '`']).next().unwrap_or("");
    text.ends_with(' ') && word.len() > 2 && word.starts_with("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        written_with(text, ' ')
    }

    #[test]
    fn a_folder_with_an_apostrophe_is_written_whole() {
        let told = |name: &str| (name == "YOLO_DRIVE_C").then(|| "/mnt/c".to_owned());
        let drives = Drives::found(told, "", Some("Ubuntu".to_owned()));
        let root = "/mnt/c/Users/O'Brien/my work".to_owned();
        let exp = format!("{root}/runs/exp");
        let written = |text: &str| {
            rewritten(text, std::slice::from_ref(&root), &[], &drives, &|path| path == exp, ' ').into_owned()
        };
        assert_eq!(written(&format!("saved in {exp}")), r"saved in C:\Users\O'Brien\my work\runs\exp");
        assert_eq!(written(&format!("{root} is full")), r"C:\Users\O'Brien\my work is full");
    }

    fn written_with(text: &str, space: char) -> String {
        let told = |name: &str| (name == "YOLO_DRIVE_C").then(|| "/mnt/c".to_owned());
        let drives = Drives::found(told, "", Some("Ubuntu".to_owned()));
        let roots = ["/mnt/c/my work", "/home", "/mnt"].map(str::to_owned);
        let files = ["/mnt/c/my work/runs/my exp/last.pt", "/mnt/c/my work/runs/exp", "/home/ada/x.yaml"];
        rewritten(
            text,
            &roots,
            &["/mnt/c/no such/x.yaml".to_owned()],
            &drives,
            &|path| files.contains(&path),
            space,
        )
        .into_owned()
    }

    #[test]
    fn paths_in_messages_are_those_of_explorer() {
        for (said, shown) in [
            ("run folder /mnt/c/my work/runs/exp", r"run folder C:\my work\runs\exp"),
            ("best: /home/ada/runs/best.pt", r"best: \\wsl.localhost\Ubuntu\home\ada\runs\best.pt"),
            (
                "resume with\n  yolo train --resume /mnt/c/my work/runs/my exp/last.pt",
                "resume with\n  yolo train --resume \"C:\\my work\\runs\\my exp\\last.pt\"",
            ),
            (
                "resume the run with `yolo train --resume /mnt/c/x/last.pt`, or",
                r"resume the run with `yolo train --resume C:\x\last.pt`, or",
            ),
            (
                "neither /mnt/c/a/x.yaml nor /home/ada/x.yaml exists",
                r"neither C:\a\x.yaml nor \\wsl.localhost\Ubuntu\home\ada\x.yaml exists",
            ),
            ("cannot read /mnt/c/x.yaml: no such file", r"cannot read C:\x.yaml: no such file"),
            ("/mnt/c/no such/x.yaml does not exist", r"C:\no such\x.yaml does not exist"),
            ("--project /mnt/c/x is a file", r"--project C:\x is a file"),
            (
                "yolo train --data '/mnt/c/my work/runs/my exp/last.pt' --data-to-linux",
                "yolo train --data \"C:\\my work\\runs\\my exp\\last.pt\" --data-to-linux",
            ),
            ("yolo train --resume /mnt/c/R&D/runs/last.pt", "yolo train --resume \"C:\\R&D\\runs\\last.pt\""),
            ("yolo train --resume /mnt/c/x(1)/last.pt", "yolo train --resume \"C:\\x(1)\\last.pt\""),
            ("yolo train --resume /mnt/c/a;b,c/last.pt", "yolo train --resume \"C:\\a;b,c\\last.pt\""),
            ("yolo train --resume /mnt/c/$env/last.pt", "yolo train --resume 'C:\\$env\\last.pt'"),
            ("yolo train --resume /mnt/c/数/last.pt", "yolo train --resume C:\\数\\last.pt"),
            ("see /mnt/c/R&D/runs", r"see C:\R&D\runs"),
            ("'/mnt/c/x' is a file", r"'C:\x' is a file"),
            ("the logs (/home/ada/logs)", r"the logs (\\wsl.localhost\Ubuntu\home\ada\logs)"),
            ("\u{1b}[1m/home/ada/x\u{1b}[0m", "\u{1b}[1m\\\\wsl.localhost\\Ubuntu\\home\\ada\\x\u{1b}[0m"),
        ] {
            assert_eq!(written(said), shown);
        }
    }

    #[test]
    fn a_path_that_is_wrapped_next_has_no_space_at_which_a_line_could_end() {
        let said = "correct `val` in /mnt/c/no such/x.yaml, or see /mnt/c/my work/runs/exp";
        let shown = written_with(said, '_');
        assert_eq!(shown, r"correct `val` in C:\no_such\x.yaml, or see C:\my_work\runs\exp");
    }

    #[test]
    fn what_is_no_path_of_this_linux_stays() {
        for text in [
            "12.3 images/s",
            "https://host/home/ada",
            "runs/train/exp",
            "8/10",
            "/homes/x",
            "/usr/bin/cc",
            "and/or",
        ] {
            assert_eq!(written(text), text);
        }
    }
}
