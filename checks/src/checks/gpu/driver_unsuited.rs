//! Why the driver's kernel module does not support a card, according to the kernel log. The module
//! unloads itself if it finds no usable card, so loading it by hand fails in the same way.

use crate::facts::{Family, Host, Version};
use crate::finding::Finding;
use crate::libtorch_builds::BUILDS;
use crate::remedies::generation::{Generation, newest};
use crate::remedies::install_driver::{LAST_FOR_OLD_CARDS, install_for};
use crate::remedies::restart::restart;

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
    if said.contains("is not supported by the NVIDIA") && said.contains("driver release") {
        return Some(seen(
            needs_another_branch(host),
            &["The NVIDIA GPU", "not supported by", "driver release"],
        ));
    }
    if let Some(branch) = legacy_branch(&said) {
        return Some(seen(
            needs_old_branch(host, branch),
            &["GPU installed in this system", "Legacy drivers"],
        ));
    }
    let missing = host.kernel_lines(&["Direct firmware load for nvidia/", "No firmware image found"]);
    if missing.iter().any(|line| line.contains("gsp")) {
        return Some(missing.into_iter().take(2).fold(without_firmware(host), Finding::seen));
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
         do not support these cards), then restart{}",
        match host.family() {
            Some(Family::Arch) => "; on Arch it is the package nvidia-580xx-dkms of the AUR",
            _ => "",
        }
    ));
    with_commands(host, finding, of_branch(host, LAST_FOR_OLD_CARDS))
}

/// The driver does not know the card: it is older than the card, or has dropped it.
fn needs_another_branch(host: &Host) -> Finding {
    let version = installed(host).map_or("installed".to_owned(), |version| version.to_string());
    match newest(host) {
        Some(Generation::BeforeTuring) => {
            let title =
                format!("NVIDIA driver {version} does not support this card: it is too new for the card");
            let finding = Finding::new("gpu.driver-unsuited", title).remedy(format!(
                "install the proprietary kernel module from branch {LAST_FOR_OLD_CARDS}, the last that supports \
                 these cards, then restart"
            ));
            with_commands(host, finding, of_branch(host, LAST_FOR_OLD_CARDS))
        }
        generation => {
            let title =
                format!("NVIDIA driver {version} does not support this card: it is too old for the card");
            let finding = Finding::new("gpu.driver-unsuited", title).remedy(
                "install branch 570 or later (580 or later for CUDA 13) with the open kernel module, which the \
                 newest cards need, then restart",
            );
            let commands = match host.family() {
                Some(Family::Ubuntu | Family::OnUbuntu) => {
                    vec![format!("sudo apt install nvidia-driver-{LAST_FOR_OLD_CARDS}-open")]
                }
                _ => install_for(host, generation.or(Some(Generation::Blackwell))),
            };
            with_commands(host, finding, commands)
        }
    }
}

fn installed(host: &Host) -> Option<Version> {
    let library = || host.library("libnvidia-ml.so.1").ok()?.into_iter().next()?.version;
    host.driver_module_version().ok().flatten().or_else(|| Version::find(&library()?))
}

fn needs_open(host: &Host) -> Finding {
    let title = "the proprietary NVIDIA kernel module is installed, but this card needs the open one";
    let finding = Finding::new("gpu.driver-unsuited", title)
        .remedy("install the open kernel module (its packages end in -open), then restart");
    let installed = host.driver_version().or_else(|why| host.driver_module_version()?.ok_or(why));
    let branch = installed.map_or(LAST_FOR_OLD_CARDS, |version| version.major());
    let commands = match host.family() {
        // Blackwell, which these words are about, needs branch 570 at least.
        Some(Family::Ubuntu | Family::OnUbuntu) => {
            vec![format!("sudo apt install nvidia-driver-{}-open", branch.max(570))]
        }
        Some(Family::Fedora) => vec![
            "echo '%_with_kmod_nvidia_open 1' | sudo tee /etc/rpm/macros.nvidia-kmod".to_owned(),
            "sudo akmods --force --rebuild".to_owned(),
        ],
        _ => install_for(host, Some(Generation::Blackwell)),
    };
    with_commands(host, finding, commands)
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
    with_commands(host, finding, of_branch(host, branch))
}

/// The commands that install the proprietary driver of a branch, if the distribution packages it.
fn of_branch(host: &Host, branch: u32) -> Vec<String> {
    match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu) => vec![format!("sudo apt install nvidia-driver-{branch}")],
        Some(Family::Debian | Family::RedHat | Family::Amazon | Family::Leap | Family::Tumbleweed) => {
            install_for(host, Some(Generation::BeforeTuring))
        }
        _ => Vec::new(),
    }
}

/// The open module starts the card's own processor (GSP) with a file of the driver's version.
fn without_firmware(host: &Host) -> Finding {
    let title =
        "the driver's firmware (GSP) for the NVIDIA card is not installed, so the card does not start";
    let finding = Finding::new("gpu.firmware-missing", title);
    let commands = match host.family() {
        Some(Family::Debian) => vec!["sudo apt install firmware-nvidia-gsp".to_owned()],
        Some(Family::Arch) => vec!["sudo pacman -Syu nvidia-utils".to_owned()],
        _ => Vec::new(),
    };
    with_commands(host, finding, commands)
}

fn with_commands(host: &Host, finding: Finding, commands: Vec<String>) -> Finding {
    if commands.is_empty() {
        return finding;
    }
    restart(host, commands.into_iter().fold(finding, Finding::command))
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
