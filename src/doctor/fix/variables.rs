//! The file of shell variables: `env.sh` among yolo's settings, to be sourced by a shell of the
//! Bourne family. A program cannot change the shell that started it, and a person's own start-up
//! files are not ours to edit. Lines that somebody else wrote into the file stay. What the file says
//! already is mended, as soon as a shell has sourced it.

use std::path::PathBuf;

use yolo_checks::{Change, Finding};

use super::shell;
use crate::dirs::YoloDirs;

const HEAD: &str = "# Written by `yolo doctor --fix`. Source it: . env.sh\n";

/// Where it is.
pub(super) fn file(dirs: &YoloDirs) -> PathBuf {
    dirs.config().join("env.sh")
}

/// Whether a change is one of a variable that the file says already.
pub(super) fn says(dirs: &YoloDirs, change: &Change) -> bool {
    let Change::Variable { name, value } = change else { return false };
    let Ok(text) = fs_err::read_to_string(file(dirs)) else { return false };
    let line = line(name, value.as_deref());
    text.lines().rfind(|line| is_of(line, name)).is_some_and(|last| last == line.trim_end())
}

/// Says of findings about this very shell that the file mends them: to write it anew would help
/// nobody, to source it does.
pub(super) fn mark_applied(findings: &mut [Finding], dirs: &YoloDirs) {
    for finding in findings {
        let Some(remedy) = finding.remedy.as_mut().filter(|remedy| !remedy.changes.is_empty()) else {
            continue;
        };
        if remedy.changes.iter().all(|change| says(dirs, change)) {
            let [here, everywhere] = shell::sourcing(&file(dirs));
            "fixed once this shell reads the file that `yolo doctor --fix` wrote; the second command is for \
             every new shell"
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
    let line = line.trim_start();
    let export = line.strip_prefix("export ").and_then(|rest| rest.split('=').next());
    export == Some(name) || line.strip_prefix("unset ").map(str::trim) == Some(name)
}

/// The line that sets or unsets a variable.
fn line(name: &str, value: Option<&str>) -> String {
    match value {
        // `$` keeps its meaning, so that a value can begin with what the variable held before.
        Some(value) => {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`");
            format!("export {name}=\"{value}\"\n")
        }
        None => format!("unset {name}\n"),
    }
}

/// The file with one variable set or unset; what it said of this variable before is replaced.
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
    fn what_the_file_says_already_is_known() {
        let home = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(home.path());
        let change =
            |value: Option<&str>| Change::Variable { name: "A".into(), value: value.map(ToOwned::to_owned) };
        assert!(!says(&dirs, &change(None)));
        std::fs::create_dir_all(dirs.config()).unwrap();
        std::fs::write(file(&dirs), with("", "A", Some("a\"b"))).unwrap();
        assert!(says(&dirs, &change(Some("a\"b"))));
        assert!(!says(&dirs, &change(Some("a"))) && !says(&dirs, &change(None)));
    }

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_back_what_was_meant() {
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
