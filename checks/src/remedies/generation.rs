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

/// The newest generation on the PCI bus: a driver for it runs the older ones, back to Turing. `None` if
/// no card's number is known.
pub(crate) fn newest(host: &Host) -> Option<Generation> {
    let devices = host.folder(DEVICES).ok()??;
    let number = |device: &String| {
        let file = |name: &str| host.text(&format!("{DEVICES}/{device}/{name}")).ok().flatten();
        let is_card = file("vendor")?.trim() == "0x10de" && file("class")?.trim().starts_with("0x03");
        let number = file("device").filter(|_| is_card)?;
        u32::from_str_radix(number.trim().trim_start_matches("0x"), 16).ok()
    };
    devices.iter().filter_map(number).map(of_number).max()
}

/// The first numbers of each generation in the PCI ID database: 1e02 is the first of Turing, 2900 of
/// Blackwell's servers, and 2b80 of its other cards; Ada ends below 28ff, Hopper is 23xx.
fn of_number(device: u32) -> Generation {
    match device {
        0..0x1e00 => Generation::BeforeTuring,
        0x2900.. => Generation::Blackwell,
        _ => Generation::TuringToHopper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
