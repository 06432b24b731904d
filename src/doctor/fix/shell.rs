//! Commands for the undo script: for `sh`, and on Windows for `cmd`, which every Windows has and which
//! runs scripts without an execution policy.

use std::path::Path;

/// The name of the undo script.
#[cfg(not(windows))]
pub(super) const SCRIPT: &str = "undo.sh";
#[cfg(windows)]
pub(super) const SCRIPT: &str = "undo.cmd";

/// The first lines of a script.
#[cfg(not(windows))]
pub(super) const HEAD: &str = "#!/bin/sh\n# Undoes what `yolo doctor --fix` changed.\nset -e\n";
/// Paths are UTF-8. Without a console there is no code page to change; `cmd /c exit 0` resets the error
/// level of that failure.
#[cfg(windows)]
pub(super) const HEAD: &str = "@echo off\r\nrem Undoes what `yolo doctor --fix` changed.\r\n\
     chcp 65001 >nul\r\ncmd /c exit 0\r\n";

/// A path as one argument.
#[cfg(not(windows))]
pub(super) fn quote(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// A path as one argument. File names on Windows cannot contain quotation marks.
#[cfg(windows)]
pub(super) fn quote(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('/', r"\").replace('%', "%%"))
}

/// The commands that source a file of variables in this shell, and in every new one.
pub(super) fn sourcing(file: &Path) -> [String; 2] {
    let here = format!(". {}", yolo_checks::shell_quote::quote(&file.to_string_lossy()));
    // The line is one argument of the second command, in quotation marks that it does not contain.
    let line = if here.contains('\'') && !here.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{here}\"")
    } else {
        format!("'{}'", here.replace('\'', r"'\''"))
    };
    [here, format!("echo {line} >> ~/.bashrc")]
}

/// Removes a file if it exists.
pub(super) fn remove(file: &Path) -> String {
    let file = quote(file);
    if cfg!(windows) { format!("if exist {file} del /f {file}") } else { format!("rm -f {file}") }
}

/// Copies a file over another one.
pub(super) fn copy(from: &Path, to: &Path) -> String {
    let (from, to) = (quote(from), quote(to));
    if cfg!(windows) { format!("copy /y {from} {to} >nul") } else { format!("cp {from} {to}") }
}

/// Removes an empty folder. One that is no longer empty is kept, with a message: the script itself may
/// be in it.
pub(super) fn remove_folder(folder: &Path) -> String {
    let folder = quote(folder);
    if cfg!(windows) {
        format!(
            "rmdir {folder} 2>nul || (echo kept, because it is no longer empty: {folder} & cmd /c exit 0)"
        )
    } else {
        format!("rmdir {folder} 2>/dev/null || echo 'kept, because it is no longer empty:' {folder}")
    }
}

/// The command as a line of a script that ends at the first failure.
pub(super) fn line(command: &str) -> String {
    if cfg!(windows) { format!("{command}\r\nif errorlevel 1 exit /b 1\r\n") } else { format!("{command}\n") }
}

/// The command that runs a script.
pub(super) fn call(script: &Path) -> String {
    if cfg!(windows) { format!("cmd /c \"{}\"", script.display()) } else { format!("sh {}", quote(script)) }
}

/// Runs a script and returns whether it succeeded.
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
