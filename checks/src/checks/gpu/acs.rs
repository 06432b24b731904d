//! PCIe bridges whose access control (ACS) sends what GPUs exchange up to the CPU, although no IOMMU needs that: some
//! firmware turns it on. The kernel shows the setting in a bridge's configuration, whole only to root.

use crate::facts::{Gpu, Host};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Where the list of extended capabilities begins, and how many there may be.
const FIRST: usize = 0x100;
const MOST: usize = 64;
/// The number of the capability, and the bit of its register that redirects requests.
const ACS: u32 = 0x0D;
const REDIRECTS: u16 = 1 << 2;

/// The addresses of such bridges above these cards.
pub(super) fn redirecting(host: &Host, gpus: &[Gpu]) -> Vec<String> {
    let mut bridges: Vec<String> = gpus.iter().flat_map(|gpu| bridges_above(host, gpu)).collect();
    bridges.sort();
    bridges.dedup();
    bridges.retain(|bridge| {
        let config = host.file(&format!("{DEVICES}/{bridge}/config")).ok().flatten();
        config.is_some_and(|config| redirects(&config) == Some(true))
    });
    if bridges.is_empty() {
        bridges =
            host.recorded_outputs("lspci").iter().flat_map(|(_, output)| of_lspci(&output.text())).collect();
    }
    bridges
}

/// The link of a card leads through all bridges: `../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0/0000:43:00.0`.
fn bridges_above(host: &Host, gpu: &Gpu) -> Vec<String> {
    let Ok(address) = gpu.pci_bus_id() else { return Vec::new() };
    let address = address.to_ascii_lowercase();
    // NVML writes eight digits for the domain, and the kernel four.
    let address = if address.len() > 12 { &address[address.len() - 12..] } else { &address };
    let link = host.link(&format!("{DEVICES}/{address}")).ok().flatten().unwrap_or_default();
    let is_device = |part: &&str| part.split(':').count() == 3 && *part != address;
    link.split('/').filter(is_device).map(ToOwned::to_owned).collect()
}

/// Whether a bridge redirects, by its configuration; `None` if only the first part of that is known.
fn redirects(config: &[u8]) -> Option<bool> {
    let word = |at: usize| Some(u32::from_le_bytes(config.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let mut at = FIRST;
    for _ in 0..MOST {
        let header = word(at)?;
        if header & 0xFFFF == ACS {
            let register: [u8; 2] = config.get(at + 6..at + 8)?.try_into().ok()?;
            return Some(u16::from_le_bytes(register) & REDIRECTS != 0);
        }
        at = usize::try_from(header >> 20 & 0xFFC).ok()?;
        if at < FIRST {
            break;
        }
    }
    Some(false)
}

/// The ports of switches in `lspci -vvv` that redirect. Which card is below which port is not known there.
fn of_lspci(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut bridge, mut is_port) = (None, false);
    for line in text.lines() {
        if line.starts_with(|first: char| first.is_ascii_hexdigit()) {
            bridge = line.split_whitespace().next().filter(|_| line.contains("PCI bridge"));
            is_port = false;
        }
        is_port |= line.contains("Downstream Port");
        if line.contains("ACSCtl:") && line.contains("ReqRedir+") && is_port {
            found.extend(bridge.map(ToOwned::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_register_is_found_in_the_list_of_capabilities() {
        let config = |control: u8| {
            let mut config = vec![0; 0x200];
            config[0x100..0x104].copy_from_slice(&(0x1400_0001u32 | 0x0001_0000).to_le_bytes());
            config[0x140..0x144].copy_from_slice(&0x0001_000Du32.to_le_bytes());
            config[0x146] = control;
            config
        };
        assert_eq!(redirects(&config(0x1D)), Some(true));
        assert_eq!(redirects(&config(0x01)), Some(false));
        assert_eq!(redirects(&config(0x1D)[..64]), None);
    }

    #[test]
    fn ports_of_switches_are_found_in_the_output_of_lspci() {
        let text = "41:00.0 PCI bridge: PMC-Sierra\n\tCapabilities: [c0] Express (v2) Upstream Port\n\
                    \t\tACSCtl:\tSrcValid+ ReqRedir+\n\
                    42:01.0 PCI bridge: PMC-Sierra\n\tCapabilities: [c0] Express (v2) Downstream Port (Slot+)\n\
                    \t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n";
        assert_eq!(of_lspci(text), ["42:01.0"]);
    }

    proptest! {
        #[test]
        fn any_configuration_is_read(config in proptest::collection::vec(any::<u8>(), 0..0x300), text in "(PCI bridge|ACSCtl:|[0-9a-f:. ]|\\PC|\n){0,30}") {
            let _ = (redirects(&config), of_lspci(&text));
        }
    }
}
