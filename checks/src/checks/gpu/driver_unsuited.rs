//! Why the driver's kernel module does not support a card, according to the kernel log. The module
//! unloads itself if it finds no usable card, so loading it by hand fails in the same way.

use super::lost_remedy::is_external;
use super::pci::{cards, driver_of};
use crate::facts::{Family, Gpu, Host, Version, pci_address, pci_addresses};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::libtorch_builds::BUILDS;
use crate::remedies::generation::{
    FIRST_OF_BLACKWELL, FIRST_OF_TURING, Generation, architecture, newest, numbers, of_number,
};
use crate::remedies::install_driver::install_for;
use crate::remedies::old_card::LAST_FOR_OLD_CARDS;
use crate::remedies::power_cycle::{power_cycle, words};
use crate::remedies::restart::restart;
use crate::remedies::{address_space, grid, image, old_card, replace_driver};
use crate::status::Status;

/// The reason, if the log has one. The driver wraps its messages over several lines.
pub(super) fn find(host: &Host) -> Option<Finding> {
    let finding = found(host)?;
    let is_of_others =
        !host.is_own_machine() && super::is_native_linux(host) && finding.id == "gpu.driver-unsuited";
    let text = finding.remedy.as_ref().map(|remedy| remedy.text.clone()).filter(|_| is_of_others);
    // The driver is the machine's, and so is its restart.
    Some(match text {
        // A job is told so in other words.
        Some(text) if !text.starts_with("train ") && !text.starts_with("tell ") => finding
            .remedy("train on another GPU or on the CPU until the driver fits the card")
            .machine_remedy(text),
        _ => finding,
    })
}

fn found(host: &Host) -> Option<Finding> {
    let lines = host.kernel_lines(&["NVRM"]);
    let said = lines.iter().flat_map(|line| line.split_once("NVRM:")).map(|(_, words)| words.trim());
    let said = said.collect::<Vec<_>>().join(" ");
    let card = Unsuited::of(&said);
    let seen = |finding: Finding, words: &[&str]| {
        let named = lines.iter().filter(|line| words.iter().any(|word| line.contains(word)));
        named.take(3).cloned().fold(finding, Finding::seen)
    };
    // A log that was searched for `nvidia` lacks the lines between.
    if said.contains(OPEN_WITHOUT_GSP[0]) || said.contains(OPEN_WITHOUT_GSP[1]) {
        let words = ["The NVIDIA GPU", "not supported by open", OPEN_WITHOUT_GSP[1]];
        let finding = if card.has_gsp() { unreadable(host, &card) } else { needs_proprietary(host, &card) };
        return Some(seen(finding, &words));
    }
    if said.contains("requires use of the NVIDIA open kernel modules") {
        return Some(seen(needs_open(host, &card), &["The NVIDIA GPU", "open kernel modules"]));
    }
    let names_both = card.address.is_some() && card.driver.is_some();
    if (said.contains("is not supported by the NVIDIA") || names_both) && said.contains("driver release") {
        return Some(seen(
            needs_another_branch(host, &card),
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
    let refused = host.kernel_lines(&["Guest driver is incompatible with host driver"]);
    if !refused.is_empty() {
        return Some(refused.into_iter().take(2).fold(of_another_host(host), Finding::seen));
    }
    if said.contains("PCI I/O region assigned to your NVIDIA device is invalid") {
        let title = "the firmware assigned no address space to the NVIDIA card, so the driver cannot use \
                     it";
        let finding = Finding::new("gpu.no-address-space", title);
        let finding = match card.address.as_deref().and_then(pci_address).or_else(|| first_card(host)) {
            Some(card) if is_external(host, Some(&card)) => finding.remedy(
                "connect the external card before the machine starts, enable \"Above 4G Decoding\" and \"Resizable BAR\" in the \
                 firmware settings, and boot Linux with `pci=realloc` (if that is not enough, with `pci=realloc,hpmmioprefsize=64G`)",
            ),
            _ => finding.remedy(address_space::words(host)),
        };
        return Some(seen(finding, &["PCI I/O region", "BAR"]));
    }
    without_log(host)
}

/// The address of the first card on the bus, without its function.
fn first_card(host: &Host) -> Option<String> {
    cards(host).first().and_then(|card| pci_address(card))
}

/// What the open module says about a card that has no GSP, or whose registers it cannot read.
const OPEN_WITHOUT_GSP: [&str; 2] =
    ["is not supported by open nvidia.ko", "because it does not include the required GPU"];

/// A card before Turing for which the installed module is known to be wrong: the open one, or a newer branch than the
/// last that supports it. Not every user may read the kernel log.
fn without_log(host: &Host) -> Option<Finding> {
    let cards = numbers(host);
    let is_old = |number: &u32| {
        *number < FIRST_OF_TURING && architecture(*number).is_some_and(|name| name != "Kepler")
    };
    if cards.is_empty() || !cards.iter().all(is_old) || host.is_container() {
        return None;
    }
    let of_module = |field: &str| {
        let output = host.command(&["modinfo", "-F", field, "nvidia"]).ok().flatten()?;
        Some(output.text()).filter(|_| output.succeeded())
    };
    let name = cards.first().and_then(|number| architecture(*number));
    let card = Unsuited { address: None, number: cards.first().copied(), architecture: name, driver: None };
    let license = of_module("license").unwrap_or_default();
    if license.contains("GPL") {
        let finding = needs_proprietary(host, &card);
        return Some(finding.seen(format!("modinfo -F license nvidia: {}", license.trim())));
    }
    let version = Version::find(&of_module("version")?)?;
    if version.major() <= LAST_FOR_OLD_CARDS {
        return None;
    }
    let finding = needs_old_branch(host, LAST_FOR_OLD_CARDS);
    Some(finding.seen(format!("the installed module has version {version}")))
}

/// A card that has a GSP, and that the open module takes for one without: it reads zeros from the card's registers.
fn unreadable(host: &Host, card: &Unsuited) -> Finding {
    let place = card.address.clone().unwrap_or_else(|| "an unknown address".to_owned());
    let title = format!("the NVIDIA card at {place} does not answer the driver, which cannot see what it is");
    let finding = Finding::new("gpu.driver-silent", title)
        .because(
            "the open kernel module supports this card, and says that it does not only because it reads nothing from the card's \
             registers; another driver does not help, and neither does a restart that leaves the power on",
        )
        .remedy(format!("{}; if the card stays silent, check its seat and power cables", words(host)));
    power_cycle(host, finding)
}

/// A card that the driver ignores while it runs others, according to the log. One driver has to support all of them.
pub(super) fn of_another_card(host: &Host, intent: &Intent) -> Option<Finding> {
    let listed = host.gpus().ok()?;
    // Those of another driver are not for CUDA: they are for a virtual machine, or for the screen.
    let is_free = |card: &String| driver_of(host, card).is_none_or(|driver| driver == "nvidia");
    let on_bus = cards(host).into_iter().filter(is_free);
    if on_bus.count() <= listed.len() || host.is_container() || host.job().is_some() {
        return None;
    }
    let is_wanted = intent.devices.iter().any(|&index| index >= listed.len());
    let status = if is_wanted { Status::Error } else { Status::Warning };
    let finding = find(host)?;
    if finding.id == "gpu.no-address-space" {
        return without_space(host, &listed).map(|finding| finding.status(status));
    }
    if finding.id != "gpu.driver-unsuited" {
        return None;
    }
    let numbers = numbers(host);
    let has = |range: std::ops::Range<u32>| numbers.iter().any(|number| range.contains(number));
    if !(has(0..FIRST_OF_TURING) && has(FIRST_OF_BLACKWELL..u32::MAX)) {
        return Some(finding.status(status));
    }
    let alone = Finding::new("gpu.driver-unsuited", finding.title).status(status).remedy(format!(
        "train without the ignored card, or take one of the two out: no driver supports both, because cards before Turing need \
         the proprietary module of branch {LAST_FOR_OLD_CARDS}, and Blackwell needs the open one"
    ));
    Some(finding.evidence.into_iter().fold(alone, Finding::seen))
}

/// Cards that got no range of addresses, while the driver runs others: `NVRM: BAR0 is 0M @ 0x0 (PCI:0000:07:00.0)`.
fn without_space(host: &Host, listed: &[Gpu]) -> Option<Finding> {
    let runs: Vec<String> = listed.iter().filter_map(|gpu| pci_address(&gpu.pci_bus_id().ok()?)).collect();
    let mut lines = host.kernel_lines(&["NVRM: BAR"]);
    lines.retain(|line| {
        line.contains(" is 0M @ 0x0 ") && pci_addresses(line).any(|card| !runs.contains(&card))
    });
    let mut without: Vec<String> = lines.iter().flat_map(|line| pci_addresses(line)).collect();
    without.sort();
    without.dedup();
    let which = match &without[..] {
        [] => return None,
        [one] => format!("NVIDIA card at {one}"),
        several => format!("NVIDIA cards at {}", several.join(", ")),
    };
    let title =
        format!("the firmware assigned no address space to the {which}, so the driver runs only the others");
    let finding = Finding::new("gpu.no-address-space", title).remedy(format!(
        "{}; until then, train on the GPUs that `nvidia-smi -L` lists",
        address_space::words(host)
    ));
    Some(lines.into_iter().take(3).fold(finding, Finding::seen))
}

/// A virtual GPU, whose driver has to be of a branch that the driver of its host accepts.
fn of_another_host(host: &Host) -> Finding {
    let version = installed(host).map_or(String::new(), |version| format!(" {version}"));
    let title =
        format!("the driver{version} of this virtual GPU does not fit the driver of its host (Xid 78)");
    Finding::new("gpu.driver-unsuited", title)
        .because(
            "a vGPU host accepts guest drivers of its own branch, the previous one, and the previous long-term branch; this one is \
             not among them, perhaps because the host was updated",
        )
        .remedy(
            "install the vGPU guest driver (GRID driver) that the provider or administrator of the host offers, not one from \
             NVIDIA's public pages or the distribution, then restart; on Azure, the NVIDIA GPU Driver Extension installs it",
        )
}

/// The card that the driver speaks of: `The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b81)`.
struct Unsuited {
    address: Option<String>,
    /// Its PCI device number.
    number: Option<u32>,
    architecture: Option<&'static str>,
    /// The driver that says so: `NVIDIA 590.48.01 driver release`.
    driver: Option<Version>,
}

impl Unsuited {
    fn of(said: &str) -> Self {
        let rest = said.split_once("The NVIDIA GPU ").map(|(_, rest)| rest);
        let address = rest.and_then(|rest| rest.split_whitespace().next()).map(ToOwned::to_owned);
        let number = rest.and_then(|rest| rest.split_once("10de:"));
        let number = number.and_then(|(_, rest)| u32::from_str_radix(rest.get(..4)?, 16).ok());
        let before = said.split_once(" driver release").map(|(before, _)| before);
        let driver = before.and_then(|before| Version::find(before.rsplit(' ').next()?));
        Self { address, number, architecture: number.and_then(architecture), driver }
    }

    /// Whether the card is known to have its own processor, as all have since Turing.
    fn has_gsp(&self) -> bool {
        self.number.is_some_and(|number| number >= FIRST_OF_TURING)
    }

    /// `the card at 0000:01:00.0 (Pascal)`
    fn label(&self) -> String {
        let place =
            self.address.as_ref().map_or("this card".to_owned(), |place| format!("the card at {place}"));
        self.architecture.map_or(place.clone(), |name| format!("{place} ({name})"))
    }
}

/// `supported through the NVIDIA 470.xx Legacy drivers`
fn legacy_branch(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once("supported through the NVIDIA ")?;
    let (branch, rest) = rest.split_once(".xx")?;
    rest.trim_start().starts_with("Legacy").then(|| branch.trim().parse().ok())?
}

fn needs_proprietary(host: &Host, card: &Unsuited) -> Finding {
    let title =
        format!("the open NVIDIA kernel module is installed, which does not support {}", card.label());
    let finding = Finding::new("gpu.driver-unsuited", title).because(
        "the open module needs the card's own processor (GSP), which cards before Turing do not have",
    );
    if card.architecture == Some("Kepler") {
        return on_old_branch(finding, KEPLER);
    }
    let finding = finding.remedy(format!(
        "install the proprietary kernel module from branch {LAST_FOR_OLD_CARDS} or older (newer branches \
         do not support these cards), then restart"
    ));
    with_old_driver(host, finding, LAST_FOR_OLD_CARDS)
}

/// The driver does not know the card: it is older than the card, or has dropped it.
fn needs_another_branch(host: &Host, card: &Unsuited) -> Finding {
    let who = card.label();
    let version = card
        .driver
        .clone()
        .or_else(|| installed(host))
        .map_or("installed".to_owned(), |version| version.to_string());
    if grid::is_of_azure(host) {
        let title = format!("NVIDIA driver {version} does not support {who}, which is a part of one (vGPU)");
        let finding = Finding::new("gpu.driver-unsuited", title).remedy(grid::AZURE);
        return finding.command(grid::AZURE_COMMAND);
    }
    // The message names one card, and a driver has to run all of them.
    match newest(host).or_else(|| card.number.map(of_number)) {
        Some(Generation::BeforeTuring) => {
            let title = format!("NVIDIA driver {version} does not support {who}: it is too new for the card");
            let finding = Finding::new("gpu.driver-unsuited", title).remedy(format!(
                "install the proprietary kernel module from branch {LAST_FOR_OLD_CARDS}, the last that supports \
                 these cards, then restart"
            ));
            with_old_driver(host, finding, LAST_FOR_OLD_CARDS)
        }
        generation => {
            let title = format!("NVIDIA driver {version} does not support {who}: it is too old for the card");
            let finding = Finding::new("gpu.driver-unsuited", title).remedy(match host.family() {
                Some(Family::NixOs) => {
                    "set `hardware.nvidia.open = true;` and `hardware.nvidia.package = \
                     config.boot.kernelPackages.nvidiaPackages.latest;` in configuration.nix, apply it, and restart: this card \
                     needs the open kernel module of branch 570 or later"
                }
                _ => {
                    "install branch 570 or later (580 or later for CUDA 13) with the open kernel module, which the \
                     newest cards need, then restart"
                }
            });
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

fn needs_open(host: &Host, card: &Unsuited) -> Finding {
    let title =
        format!("the proprietary NVIDIA kernel module is installed, but {} needs the open one", card.label());
    let finding = Finding::new("gpu.driver-unsuited", title)
        .remedy("install the open kernel module (its packages end in -open), then restart");
    let installed = host.driver_version().or_else(|why| host.driver_module_version()?.ok_or(why));
    let branch = installed.map_or(LAST_FOR_OLD_CARDS, |version| version.major());
    let commands = match host.family() {
        // Blackwell, which these words are about, needs branch 570 at least.
        Some(Family::Ubuntu | Family::OnUbuntu) => {
            vec![format!("sudo apt install nvidia-driver-{}-open", branch.max(570))]
        }
        Some(Family::Fedora) if image::of(host).is_some() => {
            image::of(host).map_or(Vec::new(), |image| image.commands_with_driver())
        }
        // Its build does not see settings in /etc, so that another package is layered.
        Some(Family::Fedora) if host.is_image() => vec![
            "sudo rpm-ostree install --apply-live rpmfusion-nonfree-release-tainted".to_owned(),
            "sudo rpm-ostree uninstall akmod-nvidia --install=akmod-nvidia-open".to_owned(),
        ],
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
        return on_old_branch(finding, branch);
    }
    with_old_driver(host, finding.remedy(format!("install driver branch {branch}, then restart")), branch)
}

/// The last branch for cards of the generation Kepler.
const KEPLER: u32 = 470;

fn on_old_branch(finding: Finding, branch: u32) -> Finding {
    finding
        .remedy(format!(
            "train on the CPU or on a newer card: no build of libtorch runs on driver branch {branch}, the last for this card"
        ))
        .command("yolo train --device cpu …")
}

/// The finding with the way to the proprietary driver of a branch.
fn with_old_driver(host: &Host, finding: Finding, branch: u32) -> Finding {
    let finding = match old_card::advice(host) {
        // The advice for an image says so itself.
        Some(advice) if image::of(host).is_some() => finding.remedy(advice),
        Some(advice) => finding.remedy(format!(
            "install the proprietary kernel module from branch {branch}, the last for this card: {advice}"
        )),
        None => finding,
    };
    with_commands(host, finding, replace_driver::by_old_branch(host))
}

/// The open module starts the card's own processor (GSP) with a file of the driver's version.
fn without_firmware(host: &Host) -> Finding {
    let title =
        "the driver's firmware (GSP) for the NVIDIA card is not installed, so the card does not start";
    let finding = Finding::new("gpu.firmware-missing", title);
    if image::of(host).is_some() {
        let finding = finding.remedy(
            "go back to the image before the last update, which has the firmware of its driver, and restart",
        );
        return with_commands(host, finding, vec![image::ROLL_BACK.to_owned()]);
    }
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
