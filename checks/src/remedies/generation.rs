//! The generation of the NVIDIA cards of this host, as far as drivers treat them differently: from the
//! PCI device numbers, which are known without a driver.

use crate::facts::Host;

const DEVICES: &str = "/sys/bus/pci/devices";

/// Cards that need the same kind of driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Generation {
    /// Maxwell, Pascal and Volta: the proprietary module, up to branch 580.
    BeforeTuring,
    /// Turing to Hopper: either module.
    TuringToHopper,
    /// Blackwell: the open module, from branch 570.
    Blackwell,
}

/// The first PCI device number of Turing.
pub(crate) const FIRST_OF_TURING: u32 = 0x1e00;

/// The first PCI device number of Blackwell.
pub(crate) const FIRST_OF_BLACKWELL: u32 = 0x2900;

/// The newest generation on the PCI bus: a driver for it runs the older ones, back to Turing. `None` if
/// no card's number is known.
pub(crate) fn newest(host: &Host) -> Option<Generation> {
    numbers(host).into_iter().map(of_number).max()
}

/// The PCI device numbers of the NVIDIA cards on the bus.
pub(crate) fn numbers(host: &Host) -> Vec<u32> {
    let Ok(Some(devices)) = host.folder(DEVICES) else { return Vec::new() };
    let number = |device: &String| {
        let file = |name: &str| host.text(&format!("{DEVICES}/{device}/{name}")).ok().flatten();
        let is_card = file("vendor")?.trim() == "0x10de" && file("class")?.trim().starts_with("0x03");
        let number = file("device").filter(|_| is_card)?;
        u32::from_str_radix(number.trim().trim_start_matches("0x"), 16).ok()
    };
    devices.iter().filter_map(number).collect()
}

/// The architecture of a card, by its PCI device number; `None` for what the drivers do not tell apart. Source: the PCI
/// ID database.
pub(crate) fn architecture(device: u32) -> Option<&'static str> {
    Some(match device {
        0x1340..=0x13ff | 0x1401..=0x1436 | 0x1617..=0x1667 | 0x174d..=0x179c | 0x17c2..=0x17fd => "Maxwell",
        0x15f0..=0x15ff | 0x1725..=0x172f | 0x1b00..=0x1d7f => "Pascal",
        0x1d81..=0x1dff => "Volta",
        0x0fc0..=0x12ff => "Kepler",
        0x1e00..=0x1fff | 0x2180..=0x21ff => "Turing",
        0x2900.. => "Blackwell",
        _ => return None,
    })
}

/// The first numbers of each generation in the PCI ID database: 1e02 is the first of Turing, 2900 of
/// Blackwell's servers, and 2b80 of its other cards; Ada ends below 28ff, Hopper is 23xx.
pub(crate) fn of_number(device: u32) -> Generation {
    match device {
        0..FIRST_OF_TURING => Generation::BeforeTuring,
        FIRST_OF_BLACKWELL.. => Generation::Blackwell,
        _ => Generation::TuringToHopper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_of_known_cards() {
        // GTX 680, GTX 970, GTX 1070, P100, V100, RTX 2080 Ti, RTX 3090, RTX 5090.
        let numbers = [0x1180, 0x13c2, 0x1b81, 0x15f8, 0x1db4, 0x1e04, 0x2204, 0x2b85];
        assert_eq!(
            numbers.map(architecture),
            [
                Some("Kepler"),
                Some("Maxwell"),
                Some("Pascal"),
                Some("Pascal"),
                Some("Volta"),
                Some("Turing"),
                None,
                Some("Blackwell")
            ]
        );
    }

    #[test]
    fn numbers_of_known_cards() {
        // GTX 1080 Ti, V100, RTX 2080 Ti, A100, H100, RTX 4090, B200, RTX 5090.
        let numbers = [0x1b06, 0x1db4, 0x1e04, 0x20b0, 0x2330, 0x2684, 0x2901, 0x2b85];
        use Generation::{BeforeTuring, Blackwell, TuringToHopper};
        assert_eq!(
            numbers.map(of_number),
            [
                BeforeTuring,
                BeforeTuring,
                TuringToHopper,
                TuringToHopper,
                TuringToHopper,
                TuringToHopper,
                Blackwell,
                Blackwell
            ]
        );
    }
}
