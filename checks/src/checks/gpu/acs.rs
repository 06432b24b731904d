//! PCIe bridges whose access control (ACS) sends what GPUs exchange up to the CPU, although no IOMMU needs that: some
//! firmware turns it on. The kernel shows the setting in a bridge's configuration, whole only to root.

use std::ops::RangeInclusive;

use crate::facts::{Gpu, Host, pci_address, pci_device};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Where the list of extended capabilities begins, and how many there may be.
const FIRST: usize = 0x100;
const MOST: usize = 64;
/// Where the list of the older capabilities begins, the number of that of PCIe, and the kind of port in it.
const LIST: usize = 0x34;
const PCIE: u8 = 0x10;
const DOWNSTREAM: u8 = 6;
/// The number of the capability, and the bit of its register that redirects requests.
const ACS: u32 = 0x0D;
const REDIRECTS: u16 = 1 << 2;
/// The bit that lets requests through whose addresses were translated before (ATS).
const DIRECT: u16 = 1 << 6;

/// The addresses of such bridges between the cards of these pairs. What they exchange turns round at their switch, so that
/// only the ports of switches below the place where their ways meet count.
pub(super) fn redirecting(host: &Host, pairs: &[(&Gpu, &Gpu)]) -> Vec<String> {
    let mut bridges: Vec<String> = pairs
        .iter()
        .flat_map(|(first, second)| between(&bridges_above(host, first), &bridges_above(host, second)))
        .collect();
    bridges.sort();
    bridges.dedup();
    bridges.retain(|bridge| {
        let config = host.file(&format!("{DEVICES}/{bridge}/config")).ok().flatten();
        config.is_some_and(|config| {
            is_port_of_switch(&config) == Some(true) && redirects(&config) == Some(true)
        })
    });
    if !bridges.is_empty() {
        return bridges;
    }
    let buses: Vec<(Bus, Bus)> =
        pairs.iter().filter_map(|(first, second)| Some((bus_of(first)?, bus_of(second)?))).collect();
    let outputs = host.recorded_outputs("lspci");
    outputs.iter().flat_map(|(_, output)| of_lspci(&output.text(), &buses)).collect()
}

/// The addresses of such bridges between two devices at the same switch, such as a card and the adapter that reads its
/// memory. Empty if they are not at one switch, or nothing shows the setting.
pub(super) fn redirecting_between(host: &Host, first: &str, second: &str) -> Vec<String> {
    let (above, beside) = (bridges_above_device(host, first), bridges_above_device(host, second));
    // The root port and the port of the switch that leads up are above both.
    if above.iter().filter(|bridge| beside.contains(bridge)).count() < 2 {
        return Vec::new();
    }
    let outputs = host.recorded_outputs("lspci");
    let mut bridges = between(&above, &beside);
    bridges.retain(|bridge| {
        let config = host.file(&format!("{DEVICES}/{bridge}/config")).ok().flatten();
        match config.as_deref().and_then(redirects) {
            Some(redirects) => redirects,
            None => outputs.iter().any(|(_, output)| says_so(&output.text(), bridge)),
        }
    });
    bridges
}

/// Whether the output of `lspci -vvv` says that a bridge redirects. It leaves out the domain 0000.
fn says_so(text: &str, bridge: &str) -> bool {
    let mut is_of = false;
    text.lines().any(|line| {
        if line.starts_with(|first: char| first.is_ascii_hexdigit()) {
            let address = line.split_whitespace().next().and_then(pci_device);
            is_of = address.is_some_and(|address| address == bridge);
        }
        is_of && is_redirected(line)
    })
}

/// The bridges that are above one of two cards only.
fn between(first: &[String], second: &[String]) -> Vec<String> {
    let only = |one: &[String], other: &[String]| {
        one.iter().filter(|bridge| !other.contains(bridge)).cloned().collect::<Vec<_>>()
    };
    [only(first, second), only(second, first)].concat()
}

/// The link of a card leads through all bridges: `../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0/0000:43:00.0`.
fn bridges_above(host: &Host, gpu: &Gpu) -> Vec<String> {
    let address = gpu.pci_bus_id().ok().and_then(|id| pci_device(&id));
    address.map_or_else(Vec::new, |address| bridges_above_device(host, &address))
}

fn bridges_above_device(host: &Host, address: &str) -> Vec<String> {
    let link = host.link(&format!("{DEVICES}/{address}")).ok().flatten().unwrap_or_default();
    let is_device = |part: &&str| part.split(':').count() == 3 && *part != address;
    link.split('/').filter(is_device).map(ToOwned::to_owned).collect()
}

/// Domain and number of a bus.
type Bus = (u32, u32);

fn bus_of(gpu: &Gpu) -> Option<Bus> {
    bus(&pci_address(&gpu.pci_bus_id().ok()?)?)
}

/// That of an address in its canonical form.
fn bus(address: &str) -> Option<Bus> {
    let mut parts = address.split(':').map(|part| u32::from_str_radix(part, 16).ok());
    Some((parts.next()??, parts.next()??))
}

/// Whether the configuration is that of a port of a switch that leads down; `None` if it is incomplete.
fn is_port_of_switch(config: &[u8]) -> Option<bool> {
    let mut at = usize::from(*config.get(LIST)?);
    for _ in 0..MOST {
        if at < LIST {
            break;
        }
        if *config.get(at)? == PCIE {
            return Some(*config.get(at + 2)? >> 4 == DOWNSTREAM);
        }
        at = usize::from(*config.get(at + 1)?);
    }
    Some(false)
}

/// Whether a bridge redirects, by its configuration; `None` if only the first part of that is known.
fn redirects(config: &[u8]) -> Option<bool> {
    let word = |at: usize| Some(u32::from_le_bytes(config.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let mut at = FIRST;
    for _ in 0..MOST {
        let header = word(at)?;
        if header & 0xFFFF == ACS {
            let register: [u8; 2] = config.get(at + 6..at + 8)?.try_into().ok()?;
            let register = u16::from_le_bytes(register);
            return Some(register & REDIRECTS != 0 && register & DIRECT == 0);
        }
        at = usize::try_from(header >> 20 & 0xFFC).ok()?;
        if at < FIRST {
            break;
        }
    }
    Some(false)
}

/// The ports of switches in `lspci -vvv` that redirect and have one card of a pair below them.
fn of_lspci(text: &str, pairs: &[(Bus, Bus)]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut bridge, mut is_port, mut is_between) = (None, false, false);
    for line in text.lines() {
        if line.starts_with(|first: char| first.is_ascii_hexdigit()) {
            bridge = line.split_whitespace().next().filter(|_| line.contains("PCI bridge"));
            (is_port, is_between) = (false, false);
        }
        is_port |= line.contains("Downstream Port");
        let domain = bridge.and_then(pci_address).and_then(|address| Some(bus(&address)?.0));
        if let Some((domain, buses)) = domain.zip(below(line)) {
            let has = |(of, bus): Bus| of == domain && buses.contains(&bus);
            is_between = pairs.iter().any(|(first, second)| has(*first) != has(*second));
        }
        if is_redirected(line) && is_port && is_between {
            found.extend(bridge.map(ToOwned::to_owned));
        }
    }
    found
}

/// The setting of a bridge that redirects: `ACSCtl: SrcValid+ TransBlk- ReqRedir+ …`.
fn is_redirected(line: &str) -> bool {
    line.contains("ACSCtl:") && line.contains("ReqRedir+") && !line.contains("DirectTrans+")
}

/// The buses below a bridge: `Bus: primary=42, secondary=43, subordinate=43, sec-latency=0`.
fn below(line: &str) -> Option<RangeInclusive<u32>> {
    let number = |name: &str| {
        let rest = line.split_once(name)?.1;
        u32::from_str_radix(rest.split([',', ' ']).next()?, 16).ok()
    };
    line.trim_start().strip_prefix("Bus:")?;
    Some(number("secondary=")?..=number("subordinate=")?)
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
        let text = "41:00.0 PCI bridge: PMC-Sierra\n\tBus: primary=41, secondary=42, subordinate=44, sec-latency=0\n\
                    \tCapabilities: [c0] Express (v2) Upstream Port\n\t\tACSCtl:\tSrcValid+ ReqRedir+\n\
                    42:01.0 PCI bridge: PMC-Sierra\n\tBus: primary=42, secondary=43, subordinate=43, sec-latency=0\n\
                    \tCapabilities: [c0] Express (v2) Downstream Port (Slot+)\n\
                    \t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n\
                    82:01.0 PCI bridge: PMC-Sierra\n\tBus: primary=82, secondary=83, subordinate=83, sec-latency=0\n\
                    \tCapabilities: [c0] Express (v2) Downstream Port (Slot+)\n\t\tACSCtl:\tReqRedir+\n";
        assert_eq!(of_lspci(text, &[((0, 0x43), (0, 0x44))]), ["42:01.0"]);
        assert!(of_lspci(text, &[((1, 0x43), (1, 0x44))]).is_empty());
    }

    #[test]
    fn only_ports_that_lead_down_from_a_switch_count() {
        let config = |kind: u8| {
            let mut config = vec![0; 0x100];
            config[LIST] = 0x40;
            config[0x40..0x42].copy_from_slice(&[0x01, 0xC0]);
            config[0xC0..0xC3].copy_from_slice(&[PCIE, 0, kind << 4 | 2]);
            config
        };
        assert_eq!(is_port_of_switch(&config(6)), Some(true));
        assert_eq!(is_port_of_switch(&config(4)), Some(false));
        assert_eq!(is_port_of_switch(&[0; 16]), None);
    }

    proptest! {
        #[test]
        fn any_configuration_is_read(config in proptest::collection::vec(any::<u8>(), 0..0x300), text in "(PCI bridge|ACSCtl:|[0-9a-f:. ]|\\PC|\n){0,30}") {
            let _ = (redirects(&config), is_port_of_switch(&config), of_lspci(&text, &[((0, 1), (0, 2))]));
        }
    }
}
