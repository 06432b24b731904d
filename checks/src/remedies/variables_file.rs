//! The file of variables that `--fix` writes, which is for POSIX shells: whether the user's shell can source it, and
//! which profile of that shell should.

use super::user_shell::is_posix;
use crate::change::Change;
use crate::facts::Host;
use crate::finding::Finding;

/// The finding without the changes that its user's shell could not read: there, the commands set the variables.
pub(crate) fn only_if_sourced(host: &Host, mut finding: Finding) -> Finding {
    let Some(remedy) = finding.remedy.as_mut().filter(|remedy| !remedy.changes.is_empty()) else {
        return finding;
    };
    if is_posix(host) {
        return finding;
    }
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    remedy.changes.retain(|change| match change {
        Change::Variable { .. } => false,
        // Only root can change the loader's list.
        Change::LoaderFolder { .. } => is_root,
        _ => true,
    });
    if remedy.changes.is_empty() {
        remedy.fixable = false;
        remedy.undo = None;
    }
    finding
}

/// What the user's shell reads when it starts, if the shell is a POSIX one.
pub fn shell_profile(host: &Host) -> &'static str {
    let shell = host.env("SHELL").ok().flatten();
    match shell.as_deref().and_then(|shell| shell.rsplit('/').next()) {
        Some("zsh") => "~/.zshrc",
        Some("bash" | "") | None => "~/.bashrc",
        // ksh, dash and sh read this one, when somebody logs in.
        _ => "~/.profile",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host_with(shell: Option<&str>) -> Host {
        let recording = json!({ "version": 1, "os": "linux", "env": { "SHELL": shell } });
        Host::from_value(recording).unwrap().0
    }

    #[test]
    fn no_file_is_offered_to_a_shell_that_cannot_source_it() {
        let is_fixable = |shell: &str| {
            let change = Change::Variable { name: "CUDA_VISIBLE_DEVICES".to_owned(), value: None };
            let finding = Finding::new("gpu.visible-unreadable", "invalid")
                .command("unset CUDA_VISIBLE_DEVICES")
                .change(change);
            only_if_sourced(&host_with(Some(shell)), finding).remedy.unwrap().fixable
        };
        assert!(is_fixable("/bin/bash") && is_fixable("/usr/bin/zsh"));
        assert!(!is_fixable("/usr/bin/fish") && !is_fixable("/bin/tcsh"));
    }

    #[test]
    fn each_shell_has_its_profile() {
        for (shell, profile) in [
            (Some("/usr/bin/zsh"), "~/.zshrc"),
            (Some("/bin/bash"), "~/.bashrc"),
            (Some(""), "~/.bashrc"),
            (None, "~/.bashrc"),
            (Some("/usr/bin/ksh"), "~/.profile"),
            (Some("/bin/dash"), "~/.profile"),
            (Some("/bin/sh"), "~/.profile"),
        ] {
            assert_eq!(shell_profile(&host_with(shell)), profile, "{shell:?}");
        }
    }
}
