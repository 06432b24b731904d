//! A folder of dkms that lost the source of an old driver. dkms stops at it, and builds nothing for new kernels.

use super::install_driver::install;
use super::restart::restart;
use crate::facts::Host;
use crate::finding::Finding;

/// The finding that the module is missing, if such a folder is why.
pub(super) fn repair(host: &Host, finding: Finding) -> Option<Finding> {
    let said = host.command(&["dkms", "status"]).ok().flatten()?.all_text();
    let (line, version) = said.lines().find_map(|line| Some((line.trim(), broken(line)?)))?;
    let others: Vec<&str> = said.lines().filter_map(installed).filter(|other| *other != version).collect();
    let finding = finding
        .seen(format!("dkms status: {line}"))
        .because(format!(
            "dkms has a folder of {version} without its source, and stops there before it builds the driver"
        ))
        .remedy(match others.is_empty() {
            true => "remove that folder, install the driver again, build its module, and restart",
            false => "remove that folder, then build and load the module",
        })
        .command(format!("sudo rm -r /var/lib/dkms/{version}"));
    Some(match others.is_empty() {
        true => {
            let finding = install(host).into_iter().fold(finding, Finding::command);
            restart(host, finding.command("sudo dkms autoinstall"))
        }
        false => finding.command("sudo dkms autoinstall").command("sudo modprobe nvidia"),
    })
}

/// The driver of a line about a folder without source: `nvidia/550.54: broken`, or in older versions `File:
/// /var/lib/dkms/nvidia/390.48/source/dkms.conf does not exist.`
fn broken(line: &str) -> Option<&str> {
    let name = match line.split_once("/var/lib/dkms/") {
        Some((_, rest)) => {
            let end = rest.find("/source").filter(|_| line.contains("dkms.conf does not exist"))?;
            &rest[..end]
        }
        None => line.trim().split_once(": broken")?.0.split(',').next()?.trim(),
    };
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter));
    (is_name && name.starts_with("nvidia") && name.matches('/').count() == 1 && !name.contains(".."))
        .then_some(name)
}

/// The driver of an ordinary line: `nvidia/580.95.05: added`, or before dkms 3 `nvidia, 580.95.05: added`.
fn installed(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_ordinary = [": added", ": built", ": installed"].iter().any(|state| line.contains(state));
    (line.starts_with("nvidia") && is_ordinary).then(|| line.split([',', ':']).next().unwrap_or(line).trim())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_folder_without_source_is_named() {
        assert_eq!(broken("nvidia/550.54: broken"), Some("nvidia/550.54"));
        assert_eq!(broken("nvidia/550.54, 6.8.0-45-generic, x86_64: broken"), Some("nvidia/550.54"));
        assert_eq!(
            broken("File: /var/lib/dkms/nvidia/390.48/source/dkms.conf does not exist."),
            Some("nvidia/390.48")
        );
        for other in [
            "vboxhost/7.0: broken",
            "File: /var/lib/dkms/v4l2loopback/0.12/source/dkms.conf does not exist.",
            "nvidia/550.54: added",
            "nvidia/../etc/x: broken",
        ] {
            assert_eq!(broken(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(nvidia|/|, |: broken|: added|/var/lib/dkms/|/source|dkms.conf does not exist|\\PC){0,12}") {
            let _ = (broken(&line), installed(&line));
        }
    }
}
