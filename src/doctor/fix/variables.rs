//! The file of shell variables: `env.sh` in yolo's config folder, for POSIX shells to source. A program
//! cannot change the shell that started it, and the user's own startup files are not ours to edit.
//! Lines that others added to the file are kept.

use std::path::PathBuf;

use yolo_checks::{Change, Finding};

use super::shell;
use crate::dirs::YoloDirs;
use crate::variable_lines::{HEAD, variable};

/// Its path.
pub(super) fn file(dirs: &YoloDirs) -> PathBuf {
    dirs.variables()
}

/// Whether the file already contains this change of a variable.
pub(super) fn contains(dirs: &YoloDirs, change: &Change) -> bool {
    let Change::Variable { name, value } = change else { return false };
    let Ok(text) = fs_err::read_to_string(file(dirs)) else { return false };
    let line = line(name, value.as_deref());
    text.lines().rfind(|line| is_of(line, name)).is_some_and(|last| last == line.trim_end())
}

/// Marks findings that the file already fixes: the user only has to source it.
pub(super) fn mark_applied(findings: &mut [Finding], profile: &str, dirs: &YoloDirs) {
    for finding in findings {
        let Some(remedy) = finding.remedy.as_mut().filter(|remedy| !remedy.changes.is_empty()) else {
            continue;
        };
        if remedy.changes.iter().all(|change| contains(dirs, change)) {
            let [here, everywhere] = shell::sourcing(&file(dirs), profile);
            "`yolo doctor --fix` has written a file that fixes this once the shell sources it; the second \
             command does so in every new shell"
                .clone_into(&mut remedy.text);
            remedy.commands = vec![here, everywhere];
            remedy.fixable = false;
            remedy.changes.clear();
            remedy.undo = None;
        }
    }
}

/// Whether a line of the file sets or unsets a variable.
fn is_of(line: &str, name: &str) -> bool {
    variable(line.as_bytes()) == Some(name.as_bytes())
}

/// The line that sets or unsets a variable.
fn line(name: &str, value: Option<&str>) -> String {
    match value {
        // `$` is not escaped, so that a value can include the variable's previous value.
        Some(value) => {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`");
            format!("export {name}=\"{value}\"\n")
        }
        None => format!("unset {name}\n"),
    }
}

/// The file with one variable set or unset. Its previous lines about this variable are replaced.
pub(super) fn with(text: &str, name: &str, value: Option<&str>) -> String {
    let mut new = String::new();
    if text.is_empty() {
        new.push_str(HEAD);
    }
    text.lines().filter(|line| !is_of(line, name)).for_each(|line| {
        new.push_str(line);
        new.push('\n');
    });
    new.push_str(&line(name, value));
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_once_and_the_rest_stays() {
        let first = with("", "NCCL_SOCKET_IFNAME", Some("eth0"));
        let second = with(&format!("{first}alias ll='ls -l'\n"), "CUDA_VISIBLE_DEVICES", None);
        let third = with(&second, "NCCL_SOCKET_IFNAME", Some("eth1"));
        assert_eq!(
            third,
            format!(
                "{HEAD}alias ll='ls -l'\nunset CUDA_VISIBLE_DEVICES\nexport NCCL_SOCKET_IFNAME=\"eth1\"\n"
            )
        );
    }

    #[test]
    fn a_change_in_the_file_is_recognized() {
        let home = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(home.path());
        let change =
            |value: Option<&str>| Change::Variable { name: "A".into(), value: value.map(ToOwned::to_owned) };
        assert!(!contains(&dirs, &change(None)));
        std::fs::create_dir_all(dirs.config()).unwrap();
        std::fs::write(file(&dirs), with("", "A", Some("a\"b"))).unwrap();
        assert!(contains(&dirs, &change(Some("a\"b"))));
        assert!(!contains(&dirs, &change(Some("a"))) && !contains(&dirs, &change(None)));
    }

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_the_values_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("env.sh");
        let text = with("", "A", Some(r#"a "quoted" `word` \ here"#));
        std::fs::write(&file, with(&text, "B", Some("/usr/lib/wsl/lib${B:+:$B}"))).unwrap();
        let shell = std::process::Command::new("sh")
            .args(["-c", ". \"$0\"; printf '%s|%s' \"$A\" \"$B\""])
            .arg(&file)
            .env("B", "/before")
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(shell.stdout).unwrap(),
            r#"a "quoted" `word` \ here|/usr/lib/wsl/lib:/before"#
        );
    }
}
