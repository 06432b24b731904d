//! WSL starts, and the distribution has no shell: `execvpe(/bin/bash) failed: No such file or directory`. These messages are of
//! Linux, so they have no code, and are not translated.

use super::disk::{self, Disk};
use super::said::Said;
use crate::facts::Host;
use crate::finding::Finding;
use crate::wsl::start_failure::{Failure, Fault};

/// Why a shell could not be started.
#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// Its file or the disk cannot be read.
    Damaged,
    /// It does not exist.
    Missing,
}

/// The finding, if a shell could not be started.
pub(super) fn failed(host: &Host, said: &[Said]) -> Option<Finding> {
    let (said, line, path, why) = said.iter().find_map(|said| {
        let (line, path, why) = said.text.lines().find_map(shell)?;
        Some((said, line, path, why))
    })?;
    let none = Failure { fault: Fault::DiskDamaged, code: "", file: None };
    let disk = Disk::of(host, said, &none);
    // Docker's distribution has no bash, and is not meant for users.
    if disk.is_of_helper() {
        return None;
    }
    let name = disk.name.clone().unwrap_or_else(|| "<distribution>".to_owned());
    let finding = match why {
        Why::Damaged => disk::finding(Fault::DiskDamaged, &disk),
        // Otherwise the user asked for a program that this distribution does not have.
        Why::Missing if !said.is_plain_start() => return None,
        Why::Missing if !is_of_system(path) => Finding::new(
            "wsl.disk-broken",
            format!("{name} cannot start a terminal: the user's shell, {path}, does not exist"),
        )
        .because("the shell was removed, or was set without being installed; the disk is not at fault")
        .remedy("set another shell for the user (write their name in place of USER), or install that one again")
        .command(format!("wsl.exe -d {name} -u root --exec usermod -s /bin/bash USER")),
        Why::Missing => Finding::new(
            "wsl.disk-broken",
            format!("{name} cannot start: {path} does not exist, so files of its system are lost"),
        )
        .because(
            "files of the system were deleted, moved or not copied (often the link from /bin to usr/bin), or an upgrade was not \
             completed; WSL itself and other distributions are not at fault",
        )
        .remedy(format!(
            "first copy what you need from \\\\wsl.localhost\\{name} in Windows' Explorer; if /usr/bin/bash is there, repair the link \
             with the first command; otherwise install another distribution under another name (`wsl.exe --install -d Ubuntu-24.04 --name NEW`), attach this disk to it \
             (`wsl.exe --mount --vhd FILE --bare`), and copy the home folder; do not remove the old distribution before that: removing it deletes \
             its disk"
        ))
        .command(format!("wsl.exe -d {name} -u root --exec /usr/bin/ln -sT usr/bin /bin")),
    };
    Some(finding.seen(line.trim().to_owned()))
}

/// Whether each system has it.
fn is_of_system(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("bash" | "sh" | "login"))
}

/// The line, the shell and why it did not start: `execvpe /bin/bash failed 2`, or in newer releases
/// `execvpe(/bin/bash) failed: No such file or directory`.
fn shell(line: &str) -> Option<(&str, &str, Why)> {
    const SHELLS: [&str; 8] = ["bash", "sh", "login", "zsh", "fish", "dash", "ksh", "tcsh"];
    let (_, rest) = line.split_once("execvpe")?;
    let (path, why) = rest.split_once(" failed")?;
    let path = path.trim_matches([' ', '(', ')']);
    let is_shell = path.starts_with('/') && SHELLS.contains(&path.rsplit('/').next()?);
    let why = why.trim_start_matches([':', ' ']).trim_end();
    let why = match why {
        "5" | "74" | "117" | "Input/output error" | "Bad message" | "Structure needs cleaning" => {
            Why::Damaged
        }
        "2" | "No such file or directory" => Why::Missing,
        _ => return None,
    };
    is_shell.then_some((line, path, why))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_shells_count() {
        for (line, expected) in [
            (
                "<3>WSL (14 - Relay) ERROR: CreateProcessCommon:639: execvpe(/bin/bash) failed: No such file or directory",
                Some(("/bin/bash", Why::Missing)),
            ),
            (
                "<3>init: (9) ERROR: CreateProcessEntryCommon:502: execvpe /bin/sh failed 117",
                Some(("/bin/sh", Why::Damaged)),
            ),
            ("execvpe(/usr/bin/zsh) failed: No such file or directory", Some(("/usr/bin/zsh", Why::Missing))),
            ("execvpe(/opt/yolo/yolo) failed: No such file or directory", None),
            ("execvpe(bash) failed: No such file or directory", None),
            ("execvpe(/bin/bash) failed: Permission denied", None),
        ] {
            assert_eq!(shell(line).map(|(_, path, why)| (path, why)), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in ".{0,20}(execvpe)?.{0,20}( failed)?.{0,20}") {
            let _ = shell(&line);
        }
    }
}
