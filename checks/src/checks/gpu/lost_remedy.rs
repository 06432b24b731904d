//! What to do about a lost card on the machine that it is in: seats and cables are for desktops and servers. Laptops lose
//! a card that does not wake up, external GPUs one whose cable failed, and clouds one that only another host replaces.

use super::{lost_in_sleep, power_profile};
use crate::facts::{Family, Guest, Host, pci_address};
use crate::finding::Finding;
use crate::remedies::generation::numbers;
use crate::remedies::initramfs;
use crate::remedies::kernel_option::{options, way};
use crate::remedies::power_cycle::words;
use crate::remedies::restart::restart;

/// A card that does not come back from the state in which it has no power.
const ASLEEP: [&str; 2] = ["change power state from D3cold to D0", "change power state from D3hot to D0"];
/// The switch that keeps the driver from taking the card's power away while it is idle. The last option counts, so that
/// the file's name has to come after those of others, as the nvidia.conf of CachyOS.
const AWAKE: &str =
    "echo 'options nvidia NVreg_DynamicPowerManagement=0x00' | sudo tee /etc/modprobe.d/zz-nvidia-awake.conf";

/// The finding about a lost card, by its address if it is known, with a remedy for this machine.
pub(super) fn lost(host: &Host, finding: Finding, card: Option<&str>) -> Finding {
    if !host.is_own_machine() {
        return restart(host, finding);
    }
    if let Some(of_bbswitch) = power_profile::by_bbswitch(host) {
        return of_bbswitch;
    }
    if let Some(lines) = lost_in_sleep::lines(host, card) {
        return lost_in_sleep::explained(host, finding, lines);
    }
    if is_external(host, card) {
        return restart(
            host,
            finding
                .because("the card is in an external enclosure, whose cable, power supply or power saving interrupted its link")
                .remedy(format!(
                    "check the enclosure's cable and power supply, connect it before the machine starts, and restart; if it \
                     happens again, add `pcie_port_pm=off` to the kernel command line{}, so that the link is not put to sleep",
                    way(host, "pcie_port_pm=off")
                )),
        );
    }
    if host.is_laptop()
        && let Some(line) = asleep(host, card)
    {
        let finding = finding
            .seen(line)
            .because("the driver had switched the idle card off to save power, and the card did not wake up again")
            .remedy(
                "keep the driver from switching the card off while it is idle (no other file in /etc/modprobe.d may set \
                 NVreg_DynamicPowerManagement), and restart; a newer firmware (BIOS) of the laptop may repair it as well",
            )
            .command(AWAKE);
        let finding = match host.family() {
            Some(Family::NixOs) => finding.remedy(
                "set `hardware.nvidia.powerManagement.finegrained = false;`, so that the driver does not switch the card off while \
                 it is idle, and restart; a newer firmware (BIOS) of the laptop may repair it as well",
            ),
            _ => finding,
        };
        return restart(host, initramfs::rebuild(host).into_iter().fold(finding, Finding::command));
    }
    if !host.is_laptop()
        && !matches!(host.guest(), Some(Guest::Cloud(_)))
        && let Some(setting) = switched_off_idle(host)
    {
        let finding = asleep(host, card).into_iter().fold(finding.seen(setting), Finding::seen);
        let finding = finding
            .because(
                "the driver is set to switch an idle card off, which is made for laptops; on other machines the card often does not \
                 come back",
            )
            .remedy(
                "keep the driver from switching the card off while it is idle, and restart; if the card is lost again, reseat it and \
                 check its power cables and cooling",
            )
            .command(AWAKE);
        return restart(host, initramfs::rebuild(host).into_iter().fold(finding, Finding::command));
    }
    match host.guest() {
        Some(Guest::Cloud(_)) => finding.remedy(words(host)),
        None if host.is_laptop() => restart(
            host,
            finding
                .because("the card no longer responds on the PCI bus; in a laptop usual causes are heat, the driver's power saving, and its firmware; programs that used it have failed")
                .remedy(
                    "restart the laptop; if it happens again, update its firmware (BIOS) and the driver, check its cooling and charger, \
                     and keep the driver from switching the card off while it is idle (`options nvidia \
                     NVreg_DynamicPowerManagement=0x00` in a file of /etc/modprobe.d)",
                ),
        ),
        None => restart(host, with_awake_link(host, finding)),
        _ => restart(host, finding),
    }
}

/// The first PCI device number of the RTX 50 series.
const RTX_50: u32 = 0x2b80;

/// A card that is lost while it is idle may have lost the link itself, which saves power then (ASPM). Errors of the link
/// have another finding.
fn with_awake_link(host: &Host, finding: Finding) -> Finding {
    let policy = host.text("/sys/module/pcie_aspm/parameters/policy").ok().flatten().unwrap_or_default();
    let saves = policy.split('[').nth(1).is_some_and(|word| word.starts_with("powers"));
    let forced = !options(host, |word| word == "pcie_aspm=force").is_empty();
    let is_suspected = numbers(host).iter().any(|&number| number >= RTX_50);
    if !(saves || forced || is_suspected && host.kernel_lines(&["AER: "]).is_empty()) {
        return finding;
    }
    // On this one, the option itself makes links fail.
    let is_strix_halo =
        host.system().is_ok_and(|system| system.cpu.is_some_and(|cpu| cpu.contains("AI MAX")));
    let option = if is_strix_halo { "pcie_aspm.policy=performance" } else { "pcie_aspm=off" };
    let finding = match (forced, saves) {
        (true, _) => finding.seen("kernel command line: pcie_aspm=force"),
        (_, true) => finding.seen(format!("/sys/module/pcie_aspm/parameters/policy: {}", policy.trim())),
        _ => finding,
    };
    let instead = if forced { " in place of `pcie_aspm=force`" } else { "" };
    let way = way(host, option);
    let others = match numbers(host).len() {
        1 => "",
        _ => "; until then, exclude it from --device",
    };
    finding.remedy(format!(
        "restart the machine; if it happens again while the card is idle, keep its link from saving power: `{option}` on the \
         kernel command line{way}{instead}, and in the firmware settings PCIe generation 4 for its slot; otherwise reseat the \
         card, check its power \
         cables and cooling, and try another slot{others}"
    ))
}

/// Whether the card is behind a port for external devices, as Thunderbolt and USB4 have.
pub(super) fn is_external(host: &Host, card: Option<&str>) -> bool {
    let Some(card) = card else { return false };
    let file = |name: &str| host.text(&format!("/sys/bus/pci/devices/{card}.0/{name}")).ok().flatten();
    file("removable").is_some_and(|text| text.trim() == "removable")
}

/// Where the driver is set to switch an idle card off: 1 and 2 do so, 0 and the usual 3 do not on a desktop.
fn switched_off_idle(host: &Host) -> Option<String> {
    const PARAMS: &str = "/proc/driver/nvidia/params";
    const FILES: [&str; 3] = [
        "/etc/modprobe.d/nvidia.conf",
        "/usr/lib/modprobe.d/nvidia.conf",
        "/etc/modprobe.d/system76-power.conf",
    ];
    let file = |path: &str| host.text(path).ok().flatten().unwrap_or_default();
    if let Some(value) = file(PARAMS).lines().find_map(|line| line.strip_prefix("DynamicPowerManagement:")) {
        return matches!(value.trim(), "1" | "2")
            .then(|| format!("{PARAMS}: DynamicPowerManagement: {}", value.trim()));
    }
    FILES.iter().find_map(|path| {
        let text = file(path);
        let set = |line: &&str| {
            let value = line.split_once("NVreg_DynamicPowerManagement=").map(|(_, rest)| rest);
            let first =
                |value: &str| value.trim_start_matches("0x").trim_start_matches('0').starts_with(['1', '2']);
            line.trim_start().starts_with("options nvidia ") && value.is_some_and(first)
        };
        text.lines().find(set).map(|line| format!("{path}: {}", line.trim()))
    })
}

/// `nvidia 0000:01:00.0: can't change power state from D3cold to D0 (config space inaccessible)`
fn asleep(host: &Host, card: Option<&str>) -> Option<String> {
    let is_own = |line: &String| {
        line.contains("nvidia")
            || line.split_whitespace().any(|word| {
                card.is_some_and(|card| pci_address(word.trim_end_matches(':')).as_deref() == Some(card))
            })
    };
    host.kernel_lines(&ASLEEP).into_iter().find(is_own)
}
