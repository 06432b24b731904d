//! What the IOMMU of this machine does with the addresses that devices send each other.

use crate::facts::Host;

/// What the IOMMU does with traffic between devices.
pub(super) enum Iommu {
    Off,
    /// It leaves addresses as they are.
    Passes,
    /// It translates addresses, by this evidence.
    Translates(String),
    Unknown,
}

pub(super) fn iommu(host: &Host) -> Iommu {
    let Some(line) = host.text("/proc/cmdline").ok().flatten() else { return Iommu::Unknown };
    let has = |options: &[&str]| line.split_whitespace().any(|word| options.contains(&word));
    if has(&["iommu=off", "amd_iommu=off", "intel_iommu=off"]) {
        return Iommu::Off;
    }
    if has(&["iommu=pt", "iommu.passthrough=1"]) {
        return Iommu::Passes;
    }
    let units = host.folder("/sys/class/iommu").ok().flatten();
    let is_asked = line
        .split_whitespace()
        .any(|word| word.starts_with("intel_iommu=on") || word.starts_with("amd_iommu=on"));
    match units {
        // The kernel lists its IOMMUs there. Only in a virtual machine may there be one that it does not see.
        Some(units) if units.is_empty() && !is_asked && !host.is_virtual_machine() => Iommu::Off,
        Some(units) if units.is_empty() && !is_asked => Iommu::Unknown,
        None if !is_asked => Iommu::Unknown,
        _ => Iommu::Translates(format!("the IOMMU translates addresses; /proc/cmdline: {}", line.trim())),
    }
}
