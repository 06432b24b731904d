//! Writes commands in the language of the user's shell. Checks write those that set variables and limits for sh and bash;
//! fish, csh, nushell and PowerShell have other words for them, and a cell of a notebook starts a shell that ends at once.

use super::shell_language::Language;
use super::shell_limits;
use crate::facts::{Host, Place};
use crate::finding::Finding;

/// What only sh and its relatives understand, in commands that are not about variables and limits.
const OF_POSIX: [&str; 4] = ["$(", "2>", "<<", "; do "];
/// What csh understands too.
const OF_CSH: [&str; 2] = ["&&", "$USER"];
/// A shell for lines that another shell does not understand.
const BASH: &str = "bash  # the next lines are for this shell";

/// The finding with commands that this user's shell understands.
pub(crate) fn translate(host: &Host, mut finding: Finding) -> Finding {
    let Some(remedy) = finding.remedy.as_mut().filter(|remedy| !remedy.commands.is_empty()) else {
        return finding;
    };
    let shell = of_user(host);
    if shell == Language::Posix {
        return finding;
    }
    let is_here = |command: &&String| !command.contains("  # on the ") && !is_of_shell(command);
    let has = |words: &[&str], command: &str| words.iter().any(|word| command.contains(word));
    let needs_posix =
        |command: &String| has(&OF_POSIX, command) || shell != Language::Csh && has(&OF_CSH, command);
    if matches!(shell, Language::Csh | Language::Nushell)
        && remedy.commands.iter().filter(is_here).any(needs_posix)
    {
        remedy.commands.insert(0, BASH.to_owned());
        return finding;
    }
    for command in remedy.commands.iter_mut().filter(|command| is_of_shell(command)) {
        *command = in_language(shell, &without_unset(host, command));
    }
    finding
}

/// Whether a command changes the shell that it is typed in.
fn is_of_shell(command: &str) -> bool {
    ["export ", "unset ", "ulimit "].iter().any(|start| command.starts_with(start))
}

/// The command that adds to a list, as one that sets it if the list is unset or empty here: fish and csh need its value, and
/// others would end the new one with a colon, which stands for the current folder.
fn without_unset(host: &Host, command: &str) -> String {
    let is_unset = |name: &str| host.env(name).is_ok_and(|set| set.is_none_or(|set| set.is_empty()));
    let (code, comment) = match command.split_once("  # ") {
        Some((code, comment)) => (code, format!("  # {comment}")),
        None => (command, String::new()),
    };
    let parts = code.strip_prefix("export ").and_then(|rest| rest.split_once('='));
    match parts.and_then(|(name, value)| Some((name, list(value)?))) {
        Some((name, (first, of))) if is_unset(of) => format!("export {name}={first}{comment}"),
        _ => command.to_owned(),
    }
}

/// The variable that a command sets, and its value, in whichever language it is.
pub(crate) fn assignment(command: &str) -> Option<(&str, &str)> {
    let with_sign = |start: &str, sign: &str| command.strip_prefix(start)?.split_once(sign);
    with_sign("export ", "=")
        .or_else(|| with_sign("%env ", "="))
        .or_else(|| with_sign("set -gx ", " "))
        .or_else(|| with_sign("setenv ", " "))
        .or_else(|| {
            let (name, value) = with_sign("$env.", " = ").or_else(|| with_sign("$env:", " = "))?;
            Some((name, value.trim_matches('\'')))
        })
}

/// Whether the user's shell is sh or a relative of it.
pub(super) fn is_posix(host: &Host) -> bool {
    of_user(host) == Language::Posix
}

fn of_user(host: &Host) -> Language {
    if host.is_windows().unwrap_or(false) {
        return Language::PowerShell;
    }
    let variable = |name: &str| host.env(name).ok().flatten();
    // Jupyter sets it for the cells of a notebook, and not in its terminals.
    if matches!(host.place(), Place::Colab | Place::Kaggle) || variable("JPY_PARENT_PID").is_some() {
        return Language::Notebook;
    }
    match variable("SHELL").unwrap_or_default().rsplit('/').next() {
        Some("fish") => Language::Fish,
        Some("csh" | "tcsh") => Language::Csh,
        Some("nu") => Language::Nushell,
        Some("pwsh") => Language::PowerShell,
        _ => Language::Posix,
    }
}

fn in_language(shell: Language, command: &str) -> String {
    // A comment is no part of the value, and `%env` would take it for one.
    if let Some((command, comment)) = command.split_once("  # ") {
        return match shell {
            Language::Notebook => in_language(shell, command),
            _ => format!("{}  # {comment}", in_language(shell, command)),
        };
    }
    if let Some(limit) = command.strip_prefix("ulimit ") {
        return shell_limits::in_language(shell, limit).unwrap_or_else(|| command.to_owned());
    }
    if let Some(name) = command.strip_prefix("unset ") {
        return match shell {
            Language::Posix => command.to_owned(),
            Language::Fish => format!("set -e {name}"),
            Language::Csh => format!("unsetenv {name}"),
            Language::Nushell => format!("hide-env {name}"),
            Language::PowerShell => format!("Remove-Item Env:{name}"),
            Language::Notebook => format!("import os; os.environ.pop('{name}', None)"),
        };
    }
    let Some((name, value)) = command.strip_prefix("export ").and_then(|rest| rest.split_once('=')) else {
        return command.to_owned();
    };
    let bare = || value.trim_matches(['\'', '"']);
    // `/a${A:+:$A}` adds to a list in sh, and no other language has these words.
    let added = list(value);
    match (shell, added) {
        (Language::Posix, _) => command.to_owned(),
        // These are lists in fish, which writes the colons for others.
        (Language::Fish, Some((first, of))) if name.ends_with("PATH") => {
            format!("set -gx {name} {first} ${of}")
        }
        (Language::Fish, Some((first, of))) => format!("set -gx {name} {first}:${of}"),
        (Language::Fish, None) => format!("set -gx {name} {value}"),
        (Language::Csh, Some((first, of))) => format!("setenv {name} {first}:${of}"),
        (Language::Csh, None) => format!("setenv {name} {value}"),
        (Language::Nushell, Some((first, of))) => {
            format!("$env.{name} = $\"{first}:($env.{of}? | default '')\"")
        }
        (Language::Nushell, None) => format!("$env.{name} = '{}'", bare()),
        (Language::PowerShell, Some((first, of))) => format!("$env:{name} = \"{first}:$env:{of}\""),
        (Language::PowerShell, None) => format!("$env:{name} = '{}'", bare().replace('\'', "''")),
        (Language::Notebook, Some((first, of))) => {
            format!("import os; os.environ['{name}'] = '{first}:' + os.environ.get('{of}', '')")
        }
        (Language::Notebook, None) => format!("%env {name}={}", bare()),
    }
}

/// What is put before the value of which variable, in `/a${A:+:$A}` and `/a:$A`.
fn list(value: &str) -> Option<(&str, &str)> {
    if let Some((first, rest)) = value.split_once("${") {
        return Some((first.trim_end_matches(':'), rest.split_once(":+")?.0));
    }
    let (first, of) = value.split_once(":$")?;
    Some((first, of))
        .filter(|(_, of)| of.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const OTHERS: [Language; 5] =
        [Language::Fish, Language::Csh, Language::Nushell, Language::PowerShell, Language::Notebook];

    fn all(command: &str) -> [String; 5] {
        OTHERS.map(|shell| in_language(shell, command))
    }

    #[test]
    fn each_shell_has_its_words() {
        let command = "export NCCL_P2P_DISABLE=1";
        assert_eq!(in_language(Language::Posix, command), command);
        assert_eq!(
            all(command),
            [
                "set -gx NCCL_P2P_DISABLE 1",
                "setenv NCCL_P2P_DISABLE 1",
                "$env.NCCL_P2P_DISABLE = '1'",
                "$env:NCCL_P2P_DISABLE = '1'",
                "%env NCCL_P2P_DISABLE=1",
            ]
        );
        assert_eq!(
            all("unset LIBTORCH"),
            [
                "set -e LIBTORCH",
                "unsetenv LIBTORCH",
                "hide-env LIBTORCH",
                "Remove-Item Env:LIBTORCH",
                "import os; os.environ.pop('LIBTORCH', None)",
            ]
        );
        for command in all(command).iter().map(String::as_str).chain([command]) {
            assert_eq!(assignment(command), Some(("NCCL_P2P_DISABLE", "1")), "{command}");
        }
    }

    #[test]
    fn a_comment_is_no_part_of_the_value() {
        assert_eq!(
            all("export NCCL_IB_DISABLE=1  # on all machines"),
            [
                "set -gx NCCL_IB_DISABLE 1  # on all machines",
                "setenv NCCL_IB_DISABLE 1  # on all machines",
                "$env.NCCL_IB_DISABLE = '1'  # on all machines",
                "$env:NCCL_IB_DISABLE = '1'  # on all machines",
                "%env NCCL_IB_DISABLE=1",
            ]
        );
    }

    #[test]
    fn a_list_is_added_to_in_each_shell() {
        let expected = [
            "set -gx LD_LIBRARY_PATH /a $LD_LIBRARY_PATH",
            "setenv LD_LIBRARY_PATH /a:$LD_LIBRARY_PATH",
            "$env.LD_LIBRARY_PATH = $\"/a:($env.LD_LIBRARY_PATH? | default '')\"",
            "$env:LD_LIBRARY_PATH = \"/a:$env:LD_LIBRARY_PATH\"",
            "import os; os.environ['LD_LIBRARY_PATH'] = '/a:' + os.environ.get('LD_LIBRARY_PATH', '')",
        ];
        assert_eq!(all("export LD_LIBRARY_PATH=/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"), expected);
        assert_eq!(all("export LD_LIBRARY_PATH=/a:$LD_LIBRARY_PATH"), expected);
    }

    fn commands(env: serde_json::Value, commands: &[&str]) -> Vec<String> {
        let host = Host::from_value(json!({ "version": 1, "os": "linux", "env": env })).unwrap().0;
        let finding = Finding::new("gpu.visible-unreadable", "…");
        let finding = commands.iter().fold(finding, |finding, command| finding.command(*command));
        translate(&host, finding).remedy.unwrap().commands
    }

    #[test]
    fn the_shell_is_the_one_that_the_user_types_in() {
        let unset = ["unset A"];
        for (env, expected) in [
            (json!({ "SHELL": "/bin/zsh" }), "unset A"),
            (json!({ "SHELL": "/usr/bin/nu" }), "hide-env A"),
            (json!({ "SHELL": "/usr/bin/pwsh" }), "Remove-Item Env:A"),
            (json!({ "SHELL": "/bin/bash", "JPY_PARENT_PID": "7" }), "import os; os.environ.pop('A', None)"),
            (json!({ "KAGGLE_KERNEL_RUN_TYPE": "Interactive" }), "import os; os.environ.pop('A', None)"),
        ] {
            assert_eq!(commands(env, &unset), [expected]);
        }
    }

    #[test]
    fn a_list_that_is_unset_is_set() {
        let added = ["export LD_LIBRARY_PATH=/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"];
        for (env, expected) in [
            (json!({ "SHELL": "/usr/bin/fish" }), "set -gx LD_LIBRARY_PATH /a"),
            (json!({ "SHELL": "/bin/tcsh", "LD_LIBRARY_PATH": "" }), "setenv LD_LIBRARY_PATH /a"),
            (json!({ "SHELL": "/usr/bin/nu" }), "$env.LD_LIBRARY_PATH = '/a'"),
            (
                json!({ "SHELL": "/bin/tcsh", "LD_LIBRARY_PATH": "/b" }),
                "setenv LD_LIBRARY_PATH /a:$LD_LIBRARY_PATH",
            ),
            (json!({ "SHELL": "/bin/bash" }), added[0]),
        ] {
            assert_eq!(commands(env, &added), [expected]);
        }
    }

    #[test]
    fn lines_for_sh_alone_are_typed_in_bash() {
        let lines = ["sudo dnf install kernel-devel-$(uname -r)", "export A=1"];
        assert_eq!(commands(json!({ "SHELL": "/bin/tcsh" }), &lines), [BASH, lines[0], lines[1]]);
        assert_eq!(commands(json!({ "SHELL": "/usr/bin/nu" }), &lines), [BASH, lines[0], lines[1]]);
        assert_eq!(commands(json!({ "SHELL": "/usr/bin/fish" }), &lines), [lines[0], "set -gx A 1"]);
        let both = "sudo apt update && sudo apt full-upgrade";
        assert_eq!(commands(json!({ "SHELL": "/bin/tcsh" }), &[both]), [both]);
        assert_eq!(commands(json!({ "SHELL": "/usr/bin/nu" }), &[both]), [BASH, both]);
        let elsewhere = "docker restart $(hostname)  # on the host";
        assert_eq!(commands(json!({ "SHELL": "/bin/tcsh" }), &[elsewhere]), [elsewhere]);
    }

    proptest! {
        #[test]
        fn any_command_is_translated(command in "(export |unset |ulimit |A|=|\\$\\{A:\\+:\\$A\\}|:\\$A|'|-n 7|\\PC){0,8}") {
            for shell in OTHERS {
                let _ = assignment(&in_language(shell, &command));
            }
        }
    }
}
