//! Where the user's shells read the file of variables, which an undo may remove: the lines that somebody added to a
//! profile, as `yolo doctor --fix` advises, are the user's, and are named, not removed.

use std::path::{Path, PathBuf};

use yolo_base::env::HOME;

/// What POSIX shells read when they start.
const PROFILES: [&str; 7] =
    [".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", ".kshrc"];

/// What to say about a file of variables that was removed.
pub(super) fn advice(file: &Path) -> String {
    let home = std::env::var_os(HOME).map(PathBuf::from).unwrap_or_default();
    advice_at(&home, file)
}

fn advice_at(home: &Path, file: &Path) -> String {
    let reads = |name: &&&str| {
        let profile = std::fs::read(home.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&profile).lines().any(|line| {
            let line = line.trim_start();
            !line.starts_with('#') && line.contains(&*file.to_string_lossy())
        })
    };
    let reading: Vec<String> =
        PROFILES.iter().filter(reads).map(|name| home.join(name).display().to_string()).collect();
    let name = if reading.len() == 1 { "still names" } else { "still name" };
    if reading.is_empty() {
        return String::new();
    }
    format!(
        "; {} {name} it, in a line that you may remove: each new shell looks for the file",
        yolo_base::format::list(&reading)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_names_the_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config/env.sh");
        assert_eq!(advice_at(home.path(), &file), "");
        std::fs::write(home.path().join(".zshrc"), format!("# . {}\n", file.display())).unwrap();
        assert_eq!(advice_at(home.path(), &file), "");
        std::fs::write(home.path().join(".bashrc"), format!("alias x=y\n. '{}'\n", file.display())).unwrap();
        let said = advice_at(home.path(), &file);
        assert!(said.contains(".bashrc still names it, in a line that you may remove"), "{said}");
    }
}
