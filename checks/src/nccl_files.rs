//! What a variable of NCCL says, whether the environment sets it or a file that NCCL reads when it starts: the user's
//! `~/.nccl.conf`, or instead of it the file in NCCL_CONF_FILE, and then `/etc/nccl.conf`. The environment takes precedence
//! over files, and the first line over those after it.

use yolo_base::env::HOME;

use crate::change::Change;
use crate::facts::Host;
use crate::finding::Finding;

const OF_SYSTEM: &str = "/etc/nccl.conf";
const NAMES_FILE: &str = "NCCL_CONF_FILE";

/// The value of a variable, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The file; `None` if the environment sets it.
    pub(crate) file: Option<String>,
}

impl Setting {
    /// `NCCL_P2P_DISABLE`, or `NCCL_P2P_DISABLE in /etc/nccl.conf`.
    pub(crate) fn place(&self) -> String {
        match &self.file {
            Some(file) => format!("{} in {file}", self.name),
            None => self.name.clone(),
        }
    }

    /// A finding about it. Ranks inherit a variable of the shell, and read a file themselves.
    pub(crate) fn finding(&self, id: &'static str, title: String) -> Finding {
        let finding = Finding::new(id, title);
        match &self.file {
            Some(_) => finding.because("NCCL reads this file when it starts, in every rank"),
            None => finding,
        }
    }

    /// The finding with the way to remove it: the variable, or the line of the file.
    pub(crate) fn removed(&self, finding: Finding) -> Finding {
        match &self.file {
            Some(_) => self.command(self.text(finding)),
            None => self.command(finding).change(Change::Variable { name: self.name.clone(), value: None }),
        }
    }

    /// The command alone, for a variable whose right value only the user knows.
    pub(crate) fn command(&self, finding: Finding) -> Finding {
        let name = &self.name;
        match self.file.as_deref() {
            Some(OF_SYSTEM) => finding.command(format!("sudo sed -i '/^{name}=/d' {OF_SYSTEM}")),
            Some(file) => {
                finding.command(format!("sed -i '/^{name}=/d' {}", crate::shell_quote::quote(file)))
            }
            None => finding.command(format!("unset {name}")),
        }
    }

    /// What to do about a line of a file, which no `unset` removes.
    pub(crate) fn text(&self, finding: Finding) -> Finding {
        match &self.file {
            Some(file) => finding.remedy(format!("remove the line {}={} from {file}", self.name, self.value)),
            None => finding,
        }
    }
}

/// What sets a variable of NCCL, if anything does.
pub(crate) fn setting(host: &Host, name: &str) -> Option<Setting> {
    let of = |value: String, file: Option<String>| Setting { name: name.to_owned(), value, file };
    if let Some(value) = host.env_of_run(name).ok().flatten().filter(|value| !value.is_empty()) {
        return Some(of(value, None));
    }
    if !name.starts_with("NCCL_") {
        return None;
    }
    files(host).into_iter().find_map(|file| {
        let text = host.text(&file).ok().flatten()?;
        Some(of(value_in(&text, name)?, Some(file)))
    })
}

/// The files in the order in which NCCL reads them.
fn files(host: &Host) -> Vec<String> {
    let named = host.env_of_run(NAMES_FILE).ok().flatten().filter(|file| !file.is_empty());
    let of_home = || host.env(HOME).ok().flatten().map(|home| format!("{home}/.nccl.conf"));
    named.or_else(of_home).into_iter().chain([OF_SYSTEM.to_owned()]).collect()
}

/// The value of the first line with this name.
fn value_in(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut values = lines.filter_map(|line| {
        let (found, value) = line.split_once('=')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    });
    values.next().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_environment_comes_first_and_then_the_files_in_their_order() {
        let found = |env: serde_json::Value| {
            let files = json!({ "/home/ada/.nccl.conf": null, "/opt/nccl.conf": "#NCCL_ALGO=Tree\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\n",
                "/etc/nccl.conf": "NCCL_DEBUG=INFO\nNCCL_ALGO=NVLS\n" });
            let recording = json!({ "version": 1, "os": "linux", "env": env, "files": files });
            setting(&Host::from_value(recording).unwrap().0, "NCCL_ALGO")
                .map(|found| (found.value, found.file))
        };
        let of = |value: &str, file: Option<&str>| Some((value.to_owned(), file.map(ToOwned::to_owned)));
        assert_eq!(found(json!({ "HOME": "/home/ada" })), of("NVLS", Some("/etc/nccl.conf")));
        assert_eq!(found(json!({ "NCCL_CONF_FILE": "/opt/nccl.conf" })), of("Ring", Some("/opt/nccl.conf")));
        assert_eq!(
            found(json!({ "NCCL_ALGO": "Tree", "NCCL_CONF_FILE": "/opt/nccl.conf" })),
            of("Tree", None)
        );
    }

    proptest! {
        #[test]
        fn any_file_is_read(text in "(NCCL_ALGO|=|#| |\\PC|\n){0,20}") {
            let _ = value_in(&text, "NCCL_ALGO");
        }
    }
}
