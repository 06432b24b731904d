//! `wsl.exe` itself does not start: C:\\Windows\\System32\\wsl.exe starts the one of the app or of C:\\Program Files\\WSL, which is
//! damaged, or which Windows cannot start for another reason. Every command then prints one line of Windows, translated and
//! without a code (microsoft/WSL#10923, #13170, #12177).

use super::setup::msi;
use crate::facts::Host;
use crate::finding::Finding;

/// What Windows says of a damaged program, in some languages.
const DAMAGED: [&str; 6] = [
    "is not a valid win32 application",
    "ist keine zulässige win32-anwendung",
    "the file cannot be accessed by the system",
    "das system kann auf die datei nicht zugreifen",
    "доступ к этому файлу из системы отсутствует",
    "the file or directory is corrupted and unreadable",
];
/// It says so of one that it does not let start, too.
const DENIED: &str = "access is denied.";

fn is_damaged(line: &str) -> bool {
    let line = line.to_lowercase();
    DAMAGED.iter().any(|words| line.contains(words))
}

/// The line, if that is all that `wsl.exe` answers. WSL's own messages name Linux, an option, a link or a code.
pub(in crate::checks::wsl) fn no_program<'a>(host: &Host, status: &str, list: &'a str) -> Option<&'a str> {
    let line = only_line(list)?;
    let is_same = status.trim().is_empty() || only_line(status) == Some(line);
    let is_known = is_damaged(line) || line.to_lowercase().contains(DENIED);
    (is_same && (is_known || !status.trim().is_empty() && host.wsl_list_fails())).then_some(line)
}

/// The only line of an answer, unless it is one of WSL's own.
fn only_line(answer: &str) -> Option<&str> {
    const OWN: [&str; 8] = ["linux", "wsl", "http", "aka.ms", "--", "0x", "subsystem", "/"];
    let mut lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next()?;
    let lower = line.to_lowercase();
    (lines.next().is_none() && !OWN.iter().any(|own| lower.contains(own))).then_some(line)
}

/// The finding about it.
pub(in crate::checks::wsl) fn without_program(host: &Host, line: &str) -> Finding {
    let finding = Finding::new("wsl.damaged", format!("wsl.exe does not start: {line}"));
    // Invariant: the package is removed only if Windows says that it is damaged.
    if !is_damaged(line) {
        return finding
            .because(
                "this is a message of Windows, not of WSL: Windows may forbid the program, have no memory for it, or find its file \
                 damaged",
            )
            .remedy(
                "follow that message: ask the administrator of this PC if it speaks of a policy, of rights or of being blocked; \
                 restart Windows if it speaks of memory, resources or the paging file; then start WSL's own program with the first \
                 command; if that works, or the second lists a wsl.exe outside C:\\Windows\\System32, C:\\Program Files\\WSL and \
                 WindowsApps, another wsl.exe is in the way",
            )
            .command(r#"cmd.exe /c "C:\Program Files\WSL\wsl.exe" --status"#)
            .command("where.exe wsl");
    }
    finding
        .because(
            "C:\\Windows\\System32\\wsl.exe starts the program of WSL's app, which is broken, as after an interrupted update or \
             after a user's folder was moved to another drive; an empty or foreign wsl.exe in PATH does the same",
        )
        .remedy(format!(
            "remove the remains of the app, run the installer ({}) of https://github.com/microsoft/WSL/releases as administrator, and \
             restart Windows; distributions are kept; if the first command lists a wsl.exe outside C:\\Windows\\System32, C:\\Program \
             Files\\WSL and WindowsApps, delete that file; until then, `\"C:\\Program Files\\WSL\\wsl.exe\"` may work, also over SSH",
            msi(host)
        ))
        .command("where.exe wsl")
        .command("powershell.exe -Command \"Get-AppxPackage *WindowsSubsystemForLinux* | Remove-AppxPackage\"")
        .command(format!(r"msiexec.exe /i <folder of the download>\{}", msi(host)))
        .command("shutdown /r /t 0")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde_json::json;

    use super::*;

    #[test]
    fn messages_of_wsl_are_its_own() {
        for line in ["%1 is not a valid Win32 application.", "Доступ к этому файлу из системы отсутствует."]
        {
            assert_eq!(only_line(&format!("{line}\r\n\r\n")), Some(line));
        }
        for text in [
            "Das Windows-Subsystem für Linux verfügt über keine installierten Distributionen.",
            "Class not registered\nError code: Wsl/REGDB_E_CLASSNOTREG",
            "Error: 0x80040326",
            "",
        ] {
            assert_eq!(only_line(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_damaged_package_is_removed() {
        let host = Host::from_value(json!({ "version": 1, "os": "windows" })).unwrap().0;
        for (line, removes) in [
            ("%1 is not a valid Win32 application.", true),
            ("Das System kann auf die Datei nicht zugreifen.", true),
            ("Access is denied.", false),
            ("The paging file is too small for this operation to complete.", false),
            ("The requested operation requires elevation.", false),
            ("Le fichier de pagination est insuffisant.", false),
        ] {
            let commands = without_program(&host, line).remedy.unwrap().commands;
            assert_eq!(
                commands.iter().any(|command| command.contains("Remove-AppxPackage")),
                removes,
                "{line}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read(text in "(\\PC|\r?\n){0,60}") {
            let _ = only_line(&text);
        }
    }
}
