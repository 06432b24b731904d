//! The words of the shell that a way back is written for: `sh`, and on Windows `cmd`, which every
//! Windows has and which runs a script without asking for rights.

use std::path::Path;

/// The script's name.
#[cfg(not(windows))]
pub(super) const SCRIPT: &str = "undo.sh";
#[cfg(windows)]
pub(super) const SCRIPT: &str = "undo.cmd";

/// How a script begins.
#[cfg(not(windows))]
pub(super) const HEAD: &str = "#!/bin/sh\n# Puts back what `yolo doctor --fix` changed.\nset -e\n";
/// The paths in it are UTF-8. Without a console there is no code page to change, and that failure
/// must not count for the next command.
#[cfg(windows)]
pub(super) const HEAD: &str = "@echo off\r\nrem Puts back what `yolo doctor --fix` changed.\r\n\
     chcp 65001 >nul\r\ncmd /c exit 0\r\n";

/// A path as one word.
#[cfg(not(windows))]
pub(super) fn quote(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// A path as one word. No name on Windows holds a quotation mark.
#[cfg(windows)]
pub(super) fn quote(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('/', r"\").replace('%', "%%"))
}

/// What a person types so that a file of variables counts in this shell, and in every new one.
pub(super) fn sourcing(file: &Path) -> [String; 2] {
    let here = format!(". {}", yolo_checks::shell_quote::quote(&file.to_string_lossy()));
    // The line itself is one word of the second command, in the marks that it does not hold.
    let line = if here.contains('\'') && !here.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{here}\"")
    } else {
        format!("'{}'", here.replace('\'', r"'\''"))
    };
    [here, format!("echo {line} >> ~/.bashrc")]
}

/// Removes a file, if it is there.
pub(super) fn remove(file: &Path) -> String {
    let file = quote(file);
    if cfg!(windows) { format!("if exist {file} del /f {file}") } else { format!("rm -f {file}") }
}

/// Copies a file over another one.
pub(super) fn copy(from: &Path, to: &Path) -> String {
    let (from, to) = (quote(from), quote(to));
    if cfg!(windows) { format!("copy /y {from} {to} >nul") } else { format!("cp {from} {to}") }
}

/// Removes a folder that is empty. One in which something lies by now stays, and that is said: the
/// script itself may lie in it.
pub(super) fn remove_folder(folder: &Path) -> String {
    let folder = quote(folder);
    if cfg!(windows) {
        format!("rmdir {folder} 2>nul || (echo not empty by now, so it stays: {folder} & cmd /c exit 0)")
    } else {
        format!("rmdir {folder} 2>/dev/null || echo 'not empty by now, so it stays:' {folder}")
    }
}

/// The command as a line of a script, which ends where one fails.
pub(super) fn line(command: &str) -> String {
    if cfg!(windows) { format!("{command}\r\nif errorlevel 1 exit /b 1\r\n") } else { format!("{command}\n") }
}

/// What to type to run a script.
pub(super) fn call(script: &Path) -> String {
    if cfg!(windows) { format!("cmd /c \"{}\"", script.display()) } else { format!("sh {}", quote(script)) }
}

/// Runs a script, and says whether it did its work.
#[cfg(test)]
pub(super) fn run(script: &Path) -> bool {
    let mut command = if cfg!(windows) {
        let mut cmd = std::process::Command::new("cmd");
        cmd.arg("/c");
        cmd
    } else {
        std::process::Command::new("sh")
    };
    command.arg(script).status().unwrap().success()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_to_source_a_file_can_be_typed() {
        for name in ["plain", "two words", "it's", r#"a"b$c\d"#] {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join(name).join("env.sh");
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(&file, "export FOUND=yes\n").unwrap();
            let [here, everywhere] = sourcing(&file);
            assert!(!here.contains('\n') && !everywhere.contains('\n'));
            let script = format!("{here}; echo $FOUND; unset FOUND; {everywhere}; . ~/.bashrc; echo $FOUND");
            let bash = std::process::Command::new("bash")
                .args(["-c", &script])
                .env("HOME", home.path())
                .env_remove("FOUND")
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&bash.stdout), "yes\nyes\n", "{script}");
        }
        assert_eq!(
            sourcing(Path::new("/home/mara/env.sh")),
            [". /home/mara/env.sh", "echo '. /home/mara/env.sh' >> ~/.bashrc"]
        );
        assert_eq!(
            sourcing(Path::new("/my home/env.sh")),
            [". '/my home/env.sh'", r#"echo ". '/my home/env.sh'" >> ~/.bashrc"#]
        );
    }
}
