//! The display devices on the PCI bus: whether an NVIDIA card is there at all, which NVML cannot
//! report without a driver.

use crate::facts::Host;

const DEVICES: &str = "/sys/bus/pci/devices";

/// The addresses of NVIDIA's display devices on the PCI bus.
pub(in crate::checks) fn cards(host: &Host) -> Vec<String> {
    let Ok(devices) = host.folder(DEVICES) else { return listed(host) };
    let devices = devices.unwrap_or_default();
    let is_card = |device: &String| {
        let file =
            |name: &str| host.text(&format!("{DEVICES}/{device}/{name}")).ok().flatten().unwrap_or_default();
        file("vendor").trim() == "0x10de" && file("class").trim().starts_with("0x03")
    };
    devices.into_iter().filter(is_card).collect()
}

/// Whether the PCI bus is known to have no NVIDIA card: a bus without any device is not visible here, as in a
/// sandbox.
pub(in crate::checks) fn has_no_card(host: &Host) -> bool {
    let Ok(Some(devices)) = host.folder(DEVICES) else { return false };
    let vendor = |device: &String| host.text(&format!("{DEVICES}/{device}/vendor")).ok().flatten();
    let known: Vec<String> = devices.iter().filter_map(vendor).collect();
    // A recording may leave out bridges.
    let is_complete = known.len() == devices.len() || host.is_recorded();
    !known.is_empty() && is_complete && known.iter().all(|vendor| vendor.trim() != "0x10de")
}

/// The vendors of the PCI display devices, if the bus could be read and has no NVIDIA card.
pub(super) fn other_vendors(host: &Host) -> Option<Vec<&'static str>> {
    const VENDORS: [(&str, &str); 3] = [("0x1002", "AMD"), ("0x8086", "Intel"), ("0x1022", "AMD")];
    let devices = host.folder(DEVICES).ok()??;
    let mut vendors = Vec::new();
    // A recording may leave out bridges, which are no display devices.
    let mut is_complete = true;
    for device in &devices {
        let file = |name: &str| host.text(&format!("{DEVICES}/{device}/{name}")).ok().flatten();
        let (Some(vendor), Some(class)) = (file("vendor"), file("class")) else {
            is_complete = false;
            continue;
        };
        if vendor.trim() == "0x10de" {
            return None;
        }
        let vendor_name = VENDORS.iter().find(|(number, _)| *number == vendor.trim());
        if let Some((_, vendor_name)) = vendor_name
            .filter(|(_, vendor_name)| class.trim().starts_with("0x03") && !vendors.contains(vendor_name))
        {
            vendors.push(*vendor_name);
        }
    }
    (!devices.is_empty() && (is_complete || host.is_recorded() && !vendors.is_empty())).then_some(vendors)
}

/// The same from a recorded `lspci`: `01:00.0 VGA compatible controller: NVIDIA …`.
fn listed(host: &Host) -> Vec<String> {
    const KINDS: [&str; 3] = ["VGA compatible controller", "3D controller", "Display controller"];
    let list = host.recorded_output("lspci").unwrap_or_default();
    let cards =
        list.lines().filter(|line| line.contains("NVIDIA") && KINDS.iter().any(|kind| line.contains(kind)));
    let address = |line: &str| {
        let word = line.split_whitespace().next()?;
        Some(if word.matches(':').count() == 1 { format!("0000:{word}") } else { word.to_owned() })
    };
    cards.filter_map(address).collect()
}

/// The driver bound to a card.
pub(super) fn driver_of(host: &Host, card: &str) -> Option<String> {
    let link = host.link(&format!("{DEVICES}/{card}/driver")).ok()??;
    link.rsplit('/').next().map(ToOwned::to_owned)
}
