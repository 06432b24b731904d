//! A card that a program for laptops took off the PCI bus: envycontrol by a rule of udev, supergfxctl and the firmware of
//! ASUS by a switch, or Thunderbolt, which waits for somebody to allow an external one. The kernel log is silent then,
//! because nothing loads the driver for a card that is not there.

use crate::facts::{Family, Host};
use crate::finding::Finding;
use crate::remedies::initramfs;
use crate::remedies::restart::restart;

/// Rules that remove the card whenever it appears; the first are envycontrol's.
const RULES: [&str; 4] = [
    "/etc/udev/rules.d/50-remove-nvidia.rules",
    "/lib/udev/rules.d/50-remove-nvidia.rules",
    "/usr/lib/udev/rules.d/50-remove-nvidia.rules",
    "/etc/udev/rules.d/00-remove-nvidia.rules",
];
/// The firmware's switch on laptops of ASUS, in the old module and in the new one.
const OF_ASUS: [&str; 2] = [
    "/sys/devices/platform/asus-nb-wmi/dgpu_disable",
    "/sys/class/firmware-attributes/asus-armoury/attributes/dgpu_disable/current_value",
];
const THUNDERBOLT: &str = "/sys/bus/thunderbolt/devices";

/// The finding, if a file says who took the card away.
pub(super) fn find(host: &Host) -> Option<Finding> {
    by_rule(host).or_else(|| by_asus(host)).or_else(|| by_system76(host)).or_else(|| not_authorized(host))
}

/// bbswitch, which Bumblebee and openSUSE's suse-prime load, takes a card's power away that is still on the bus.
pub(super) fn by_bbswitch(host: &Host) -> Option<Finding> {
    const STATE: &str = "/proc/acpi/bbswitch";
    let said = host
        .kernel_lines(&["bbswitch: disabling discrete graphics", "bbswitch: enabling discrete graphics"])
        .pop();
    let state = host.text(STATE).ok().flatten().map(|text| text.trim().to_owned());
    let line = match state {
        Some(state) => state.ends_with(" OFF").then(|| format!("{STATE}: {state}")),
        None => said.filter(|line| line.contains("disabling")),
    }?;
    let finding = Finding::new("gpu.switched-off", "the NVIDIA card is switched off by bbswitch")
        .seen(line)
        .because(
            "bbswitch takes the power of a laptop's card away, for Bumblebee or suse-prime, and the card often does not come back; \
             drivers of today switch an idle card off by themselves (since Turing), without it",
        )
        .remedy("remove bbswitch and Bumblebee, whose files also forbid the driver to load, and switch the machine off and on again");
    let finding = match host.family() {
        Some(Family::Leap | Family::Tumbleweed) => finding.command("sudo prime-select nvidia"),
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) => {
            let finding = finding.command("sudo apt purge 'bbswitch*'");
            match host.exists("/etc/bumblebee") {
                Ok(true) => finding.command("sudo apt purge 'bumblebee*'"),
                _ => finding,
            }
        }
        Some(Family::Arch) => {
            finding.command("sudo pacman -Rns $(pacman -Qq | grep -E '^(bbswitch|bumblebee)')")
        }
        _ => finding,
    };
    let finding = match host.exists("/etc/modprobe.d/bumblebee.conf") {
        Ok(true) => finding.command("sudo rm -f /etc/modprobe.d/bumblebee.conf"),
        _ => finding,
    };
    Some(finding.command("sudo poweroff"))
}

fn by_rule(host: &Host) -> Option<Finding> {
    let removes = |path: &&&str| {
        let text = host.text(path).ok().flatten().unwrap_or_default();
        text.lines().any(|line| {
            !line.trim_start().starts_with('#')
                && line.contains("0x10de")
                && line.contains("ATTR{remove}=\"1\"")
        })
    };
    let file = RULES.iter().find(removes)?;
    let title = format!("the NVIDIA card is switched off: {file} removes it from the PCI bus");
    let finding = Finding::new("gpu.switched-off", title)
        .because("a program such as envycontrol wrote this rule when the laptop was set to its integrated graphics only")
        .remedy(
            "switch the card on with that program; if it is no longer installed, delete the rule and \
             /etc/modprobe.d/blacklist-nvidia.conf and rebuild the initramfs; then restart",
        );
    let with_program = ["/usr/bin/envycontrol", "/usr/local/bin/envycontrol"]
        .iter()
        .any(|path| host.exists(path) == Ok(true));
    if with_program {
        return Some(restart(host, finding.command("sudo envycontrol -s hybrid")));
    }
    let finding = finding.command(format!("sudo rm -f {file} /etc/modprobe.d/blacklist-nvidia.conf"));
    Some(restart(host, initramfs::rebuild(host).into_iter().fold(finding, Finding::command)))
}

fn by_asus(host: &Host) -> Option<Finding> {
    let is_on = |path: &&&str| host.text(path).ok().flatten().is_some_and(|text| text.trim() == "1");
    let switch = OF_ASUS.iter().find(is_on);
    let daemon = "/etc/supergfxd.conf";
    let text = host.text(daemon).ok().flatten().unwrap_or_default();
    let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let is_integrated = text.contains("\"mode\":\"Integrated\"");
    let place = match (switch, is_integrated) {
        (Some(switch), _) => (*switch).to_owned(),
        (None, true) => daemon.to_owned(),
        (None, false) => return None,
    };
    let title = format!("the NVIDIA card is switched off: {place} says so");
    let finding = Finding::new("gpu.switched-off", title)
        .seen(format!("{place}: {}", if switch.is_some() { "1" } else { "Integrated" }));
    let finding = finding
        .because("the laptop is set to its integrated graphics only (Eco mode)")
        .remedy(
            "switch the card on and restart; if supergfxctl is installed and works, `supergfxctl -m Hybrid` does it, otherwise the \
             firmware's own switch (dgpu_disable)",
        );
    let finding = if is_integrated { finding.command("supergfxctl -m Hybrid") } else { finding };
    let finding = switch
        .into_iter()
        .fold(finding, |finding, switch| finding.command(format!("echo 0 | sudo tee {switch}")));
    Some(restart(host, finding))
}

fn by_system76(host: &Host) -> Option<Finding> {
    let file = "/etc/modprobe.d/system76-power.conf";
    let text = host.text(file).ok().flatten()?;
    let is_off = text.lines().any(|line| matches!(line.trim(), "blacklist nvidia" | "alias nvidia off"));
    let title = format!("the NVIDIA card is switched off: {file} is for integrated graphics only");
    let finding = Finding::new("gpu.switched-off", title)
        .remedy("switch the card on with the program that wrote this file (`system76-power graphics hybrid`), and restart");
    let is_pop = host.distribution().is_ok_and(|distribution| distribution.id == "pop");
    let command = is_pop.then_some("sudo system76-power graphics hybrid");
    is_off.then(|| restart(host, command.into_iter().fold(finding, Finding::command)))
}

/// An external card that nobody has allowed yet: `authorized` is 0 until the user or a rule allows the enclosure.
fn not_authorized(host: &Host) -> Option<Finding> {
    let devices = host.folder(THUNDERBOLT).ok().flatten()?;
    let file = |device: &str, name: &str| host.text(&format!("{THUNDERBOLT}/{device}/{name}")).ok().flatten();
    // `0-0` is the port of the machine itself.
    let is_waiting = |device: &&String| {
        device.contains('-')
            && !device.ends_with("-0")
            && file(device, "authorized").is_some_and(|text| text.trim() == "0")
    };
    let device = devices.iter().find(is_waiting)?;
    let name = file(device, "device_name").map_or(device.clone(), |name| name.trim().to_owned());
    let title = format!(
        "the Thunderbolt device `{name}` is connected, but not allowed to be used, and no NVIDIA card is on the PCI bus"
    );
    Some(
        Finding::new("gpu.switched-off", title)
            .seen(format!("{THUNDERBOLT}/{device}/authorized: 0"))
            .because("if the card is in this enclosure, it appears on the PCI bus only after the enclosure is authorized")
            .remedy("authorize the enclosure, for good with `boltctl enroll` and the UUID that `boltctl list` shows, then load the driver")
            .command("boltctl list")
            .command(format!("echo 1 | sudo tee {THUNDERBOLT}/{device}/authorized"))
            .command("sudo modprobe nvidia"),
    )
}
