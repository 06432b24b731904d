//! The commands that source the file of variables, for the user to type.

use std::path::Path;

/// The commands that source a file of variables in this shell, and in every new one, which reads `profile`. The line
/// there tests for the file first, because `yolo undo` may remove it.
pub(super) fn sourcing(file: &Path, profile: &str) -> [String; 2] {
    let file = yolo_checks::shell_quote::quote(&file.to_string_lossy());
    let (here, line) = (format!(". {file}"), format!("if [ -f {file} ]; then . {file}; fi"));
    // The line is one argument of the second command, in quotation marks that it does not contain.
    let line = if line.contains('\'') && !line.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{line}\"")
    } else {
        format!("'{}'", line.replace('\'', r"'\''"))
    };
    [here, format!("echo {line} >> {profile}")]
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_commands_work_for_any_path() {
        for name in ["plain", "two words", "it's", r#"a"b$c\d"#] {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join(name).join("env.sh");
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(&file, "export FOUND=yes\n").unwrap();
            let [here, everywhere] = sourcing(&file, "~/.bashrc");
            assert!(!here.contains('\n') && !everywhere.contains('\n'));
            let script = format!("{here}; echo $FOUND; unset FOUND; {everywhere}; . ~/.bashrc; echo $FOUND");
            let bash = std::process::Command::new("bash")
                .args(["-c", &script])
                .env("HOME", home.path())
                .env_remove("FOUND")
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&bash.stdout), "yes\nyes\n", "{script}");
            // After an undo, new shells do not complain.
            fs_err::remove_file(&file).unwrap();
            let bash = std::process::Command::new("bash")
                .args(["-c", "set -e; . ~/.bashrc; echo fine"])
                .env("HOME", home.path())
                .output()
                .unwrap();
            assert_eq!(
                (String::from_utf8_lossy(&bash.stdout).trim(), bash.stderr.len()),
                ("fine", 0),
                "{name}"
            );
        }
        assert_eq!(
            sourcing(Path::new("/home/mara/env.sh"), "~/.bashrc"),
            [
                ". /home/mara/env.sh",
                "echo 'if [ -f /home/mara/env.sh ]; then . /home/mara/env.sh; fi' >> ~/.bashrc"
            ]
        );
        assert_eq!(
            sourcing(Path::new("/my home/env.sh"), "~/.bashrc"),
            [
                ". '/my home/env.sh'",
                r#"echo "if [ -f '/my home/env.sh' ]; then . '/my home/env.sh'; fi" >> ~/.bashrc"#
            ]
        );
    }
}
