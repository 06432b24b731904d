//! Writes commands in the language of the user's shell. Checks write those that set variables for sh and bash;
//! fish and csh have other words for them, and so has PowerShell on Windows.

use crate::facts::Host;
use crate::finding::Finding;

/// A language of shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// sh, bash, zsh and their relatives.
    Posix,
    Fish,
    /// csh and tcsh, which some clusters give their users.
    Csh,
    PowerShell,
}

/// The finding with commands that this user's shell understands.
pub(crate) fn translate(host: &Host, mut finding: Finding) -> Finding {
    let commands = finding.remedy.iter_mut().flat_map(|remedy| remedy.commands.iter_mut());
    let of_variables =
        commands.filter(|command| command.starts_with("export ") || command.starts_with("unset "));
    let mut of_variables = of_variables.peekable();
    if of_variables.peek().is_some() {
        let shell = of_user(host);
        of_variables.for_each(|command| *command = in_language(shell, command));
    }
    finding
}

/// The variable that a command sets, and its value, in whichever language it is.
pub(crate) fn assignment(command: &str) -> Option<(&str, &str)> {
    let posix = command.strip_prefix("export ").and_then(|rest| rest.split_once('='));
    let others =
        ["set -gx ", "setenv "].iter().find_map(|start| command.strip_prefix(start)?.split_once(' '));
    posix.or(others)
}

/// Whether the user's shell is sh or a relative of it.
pub(super) fn is_posix(host: &Host) -> bool {
    of_user(host) == Language::Posix
}

fn of_user(host: &Host) -> Language {
    if host.is_windows().unwrap_or(false) {
        return Language::PowerShell;
    }
    let shell = host.env("SHELL").ok().flatten().unwrap_or_default();
    match shell.rsplit('/').next() {
        Some("fish") => Language::Fish,
        Some("csh" | "tcsh") => Language::Csh,
        _ => Language::Posix,
    }
}

fn in_language(shell: Language, command: &str) -> String {
    if let Some(name) = command.strip_prefix("unset ") {
        return match shell {
            Language::Posix => command.to_owned(),
            Language::Fish => format!("set -e {name}"),
            Language::Csh => format!("unsetenv {name}"),
            Language::PowerShell => format!("Remove-Item Env:{name}"),
        };
    }
    let Some((name, value)) = command.strip_prefix("export ").and_then(|rest| rest.split_once('=')) else {
        return command.to_owned();
    };
    match shell {
        Language::Posix => command.to_owned(),
        // Both have no `${A:+:$A}`, which adds to a list.
        Language::Fish => format!("set -gx {name} {}", plain(value)),
        Language::Csh => format!("setenv {name} {}", plain(value)),
        Language::PowerShell => {
            format!("$env:{name} = '{}'", value.trim_matches(['\'', '"']).replace('\'', "''"))
        }
    }
}

/// A value in which bash's `${A:+:$A}` is `:$A`.
fn plain(value: &str) -> String {
    match value.split_once("${") {
        Some((start, rest)) => match rest.split_once(":+") {
            Some((_, added)) => format!("{start}{}", added.trim_end_matches('}')),
            None => value.to_owned(),
        },
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_has_its_words() {
        let all = |command| {
            [Language::Posix, Language::Fish, Language::Csh, Language::PowerShell]
                .map(|shell| in_language(shell, command))
        };
        assert_eq!(
            all("export NCCL_P2P_DISABLE=1"),
            [
                "export NCCL_P2P_DISABLE=1",
                "set -gx NCCL_P2P_DISABLE 1",
                "setenv NCCL_P2P_DISABLE 1",
                "$env:NCCL_P2P_DISABLE = '1'"
            ]
        );
        assert_eq!(
            all("unset LIBTORCH"),
            ["unset LIBTORCH", "set -e LIBTORCH", "unsetenv LIBTORCH", "Remove-Item Env:LIBTORCH"]
        );
        for command in &all("export NCCL_P2P_DISABLE=1")[..3] {
            assert_eq!(assignment(command), Some(("NCCL_P2P_DISABLE", "1")));
        }
        let list = "export LD_LIBRARY_PATH=/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}";
        assert_eq!(all(list)[1], "set -gx LD_LIBRARY_PATH /a:$LD_LIBRARY_PATH");
    }
}
