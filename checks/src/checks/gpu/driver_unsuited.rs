//! Why the driver's kernel module does not support a card, according to the kernel log. The module
//! unloads itself if it finds no usable card, so loading it by hand fails in the same way.

use super::install_driver::install;
use crate::facts::{Host, Packages};
use crate::finding::Finding;
use crate::libtorch_builds::BUILDS;

/// The last driver branch for cards before the RTX 20 and GTX 16 series.
const LAST_FOR_OLD_CARDS: u32 = 580;

/// The reason, if the log has one. The driver wraps its messages over several lines.
pub(super) fn find(host: &Host) -> Option<Finding> {
    let lines = host.kernel_lines(&["NVRM"]);
    let said = lines.iter().flat_map(|line| line.split_once("NVRM:")).map(|(_, words)| words.trim());
    let said = said.collect::<Vec<_>>().join(" ");
    let seen = |finding: Finding, words: &[&str]| {
        let named = lines.iter().filter(|line| words.iter().any(|word| line.contains(word)));
        named.take(3).cloned().fold(finding, Finding::seen)
    };
    if said.contains("is not supported by open nvidia.ko") {
        return Some(seen(needs_proprietary(host), &["The NVIDIA GPU", "not supported by open"]));
    }
    if said.contains("requires use of the NVIDIA open kernel modules") {
        return Some(seen(needs_open(host), &["The NVIDIA GPU", "open kernel modules"]));
    }
    if let Some(branch) = legacy_branch(&said) {
        return Some(seen(
            needs_old_branch(host, branch),
            &["GPU installed in this system", "Legacy drivers"],
        ));
    }
    if said.contains("PCI I/O region assigned to your NVIDIA device is invalid") {
        let title = "the firmware assigned no address space to the NVIDIA card, so the driver cannot use \
                     it";
        return Some(seen(Finding::new("gpu.no-address-space", title), &["PCI I/O region", "BAR"]));
    }
    None
}

/// `supported through the NVIDIA 470.xx Legacy drivers`
fn legacy_branch(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once("supported through the NVIDIA ")?;
    let (branch, rest) = rest.split_once(".xx")?;
    rest.trim_start().starts_with("Legacy").then(|| branch.trim().parse().ok())?
}

fn needs_proprietary(host: &Host) -> Finding {
    let title = "the open NVIDIA kernel module is installed, which does not support this card";
    let finding = Finding::new("gpu.driver-unsuited", title).remedy(format!(
        "install the proprietary kernel module from branch {LAST_FOR_OLD_CARDS} or older (newer branches \
         do not support these cards), then restart"
    ));
    with_commands(finding, of_branch(host, LAST_FOR_OLD_CARDS))
}

fn needs_open(host: &Host) -> Finding {
    let title = "the proprietary NVIDIA kernel module is installed, but this card needs the open one";
    let finding = Finding::new("gpu.driver-unsuited", title)
        .remedy("install the open kernel module (its packages end in -open), then restart");
    let installed = host.driver_version().or_else(|why| host.driver_module_version()?.ok_or(why));
    let branch = installed.map_or(LAST_FOR_OLD_CARDS, |version| version.major());
    let commands = match distribution(host).as_deref() {
        Some("ubuntu") => vec![format!("sudo apt install nvidia-driver-{branch}-open")],
        Some("debian") => vec!["sudo apt install nvidia-open-kernel-dkms".to_owned()],
        Some("arch") => vec!["sudo pacman -S nvidia-open".to_owned()],
        _ => Vec::new(),
    };
    with_commands(finding, commands)
}

/// A branch on which no build of libtorch runs does not help.
fn needs_old_branch(host: &Host, branch: u32) -> Finding {
    let title = format!(
        "this card is too old for the installed NVIDIA driver: branch {branch} is the \
                         last that supports it"
    );
    let finding = Finding::new("gpu.driver-unsuited", title);
    if !BUILDS.iter().any(|build| build.runs_on(branch)) {
        return finding
            .remedy(format!(
                "train on the CPU or on a newer card: no build of libtorch runs on driver branch {branch}"
            ))
            .command("yolo train --device cpu …");
    }
    let finding = finding.remedy(format!("install driver branch {branch}, then restart"));
    with_commands(finding, of_branch(host, branch))
}

/// The commands that install the proprietary driver of a branch, if the distribution packages it.
fn of_branch(host: &Host, branch: u32) -> Vec<String> {
    match distribution(host).as_deref() {
        Some("ubuntu") => vec![format!("sudo apt install nvidia-driver-{branch}")],
        Some("debian") => install(host),
        _ => Vec::new(),
    }
}

fn with_commands(finding: Finding, commands: Vec<String>) -> Finding {
    if commands.is_empty() {
        return finding;
    }
    commands.into_iter().fold(finding, Finding::command).command("sudo reboot")
}

fn distribution(host: &Host) -> Option<String> {
    let distribution = host.distribution().ok()?;
    let is_apt = matches!(distribution.packages(), Some(Packages::Apt));
    Some(if is_apt && distribution.id != "debian" { "ubuntu".to_owned() } else { distribution.id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_of_an_old_card_is_read_from_the_drivers_message() {
        let said = "The NVIDIA Tesla K80 GPU installed in this system is supported through the NVIDIA 470.xx \
                    Legacy drivers. Please visit http://www.nvidia.com/object/unix.html for more";
        assert_eq!(legacy_branch(said), Some(470));
        assert_eq!(legacy_branch("is supported through the NVIDIA 470.xx drivers"), None);
        assert_eq!(legacy_branch("NVIDIA 470.xx"), None);
    }
}
