//! What to do about a lost card on the machine that it is in: seats and cables are for desktops and servers. Laptops lose
//! a card that does not wake up, external GPUs one whose cable failed, and clouds one that only another host replaces.

use crate::facts::{Family, Guest, Host, pci_address};
use crate::finding::Finding;
use crate::remedies::initramfs;
use crate::remedies::power_cycle::words;
use crate::remedies::restart::restart;

/// A card that does not come back from the state in which it has no power.
const ASLEEP: [&str; 2] = ["change power state from D3cold to D0", "change power state from D3hot to D0"];
/// The switch that keeps the driver from taking the card's power away while it is idle.
const AWAKE: &str =
    "echo 'options nvidia NVreg_DynamicPowerManagement=0x00' | sudo tee /etc/modprobe.d/nvidia-awake.conf";

/// The finding about a lost card, by its address if it is known, with a remedy for this machine.
pub(super) fn lost(host: &Host, finding: Finding, card: Option<&str>) -> Finding {
    if !host.is_own_machine() {
        return restart(host, finding);
    }
    if is_external(host, card) {
        return restart(
            host,
            finding
                .because("the card is in an external enclosure, whose cable, power supply or power saving interrupted its link")
                .remedy(
                    "check the enclosure's cable and power supply, connect it before the machine starts, and restart; if it \
                     happens again, add `pcie_port_pm=off` to the kernel command line, so that the link is not put to sleep",
                ),
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
        _ => restart(host, finding),
    }
}

/// Whether the card is behind a port for external devices, as Thunderbolt and USB4 have.
pub(super) fn is_external(host: &Host, card: Option<&str>) -> bool {
    let Some(card) = card else { return false };
    let file = |name: &str| host.text(&format!("/sys/bus/pci/devices/{card}.0/{name}")).ok().flatten();
    file("removable").is_some_and(|text| text.trim() == "removable")
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
