//! What to do about a card that is throttled because of heat. Not every card has fans that its user can clean, and a card
//! that is far from its limit is not cooled by cleaner ones.

use super::is_of_laptop;
use crate::facts::{Gpu, Guest, Host};
use crate::finding::Finding;
use crate::remedies::power_cycle::STOP_AND_START;
use crate::remedies::rented;
use crate::remedies::restart::restart;

/// The bit of a slowdown by software, which has limits below that of the hardware.
const BY_SOFTWARE: u64 = 0x20;
const BY_HARDWARE: u64 = 0x40;
/// How far below the hardware's limit the software's limits are: at most this many degrees.
const BELOW_LIMIT: u64 = 20;

/// The finding about a card with these reasons for its clocks.
pub(super) fn finding(host: &Host, gpu: &Gpu, reasons: u64) -> Finding {
    let who = super::label(gpu);
    let (degrees, limit) = (gpu.number("temperature"), gpu.number("temperature_slowdown"));
    let is_cool = reasons & BY_HARDWARE == 0
        && reasons & BY_SOFTWARE != 0
        && matches!((&degrees, &limit), (Ok(degrees), Ok(limit)) if degrees + BELOW_LIMIT <= *limit);
    if is_cool {
        let degrees = degrees.unwrap_or_default();
        let title = format!(
            "{who} is throttled because of heat (SW Thermal Slowdown), although it is only at {degrees} °C"
        );
        return cool(host, gpu, Finding::new("gpu.hot", title));
    }
    let degrees = match (degrees, limit) {
        (Ok(degrees), Ok(limit)) => format!(": it is at {degrees} °C, and slows down at {limit} °C"),
        (Ok(degrees), Err(_)) => format!(": it is at {degrees} °C"),
        (Err(_), _) => String::new(),
    };
    let finding = Finding::new("gpu.hot", format!("{who} is throttled because of heat{degrees}"));
    let finding = match host.gpus() {
        Ok(gpus) if gpus.len() == 1 => {
            finding.because("a hot card lowers its clocks until it cools down, and training gets slower")
        }
        _ => finding,
    };
    if let Some(rental) = host.rental() {
        return rented::restart(rental, finding);
    }
    if host.job().is_some() {
        return restart(host, finding);
    }
    match host.guest() {
        Some(Guest::Cloud(_)) => {
            finding.remedy(format!("{STOP_AND_START}; tell the provider, who has to cool the card"))
        }
        None if is_of_laptop(host, Some(gpu)) => finding.remedy(
            "put the laptop where air gets under it, clean its fans, and choose the power profile with the fastest fans; limit the \
             GPU's clock to try (`sudo nvidia-smi -lgc 0,1500`, and `-rgc` afterwards)",
        ),
        None if is_passive(gpu) => finding.remedy(
            "let the fans of the server run faster (its BMC or firmware), and check that no slot beside the card is open; this card has \
             no fan of its own: in an ordinary PC it needs a fan with a duct that blows through it; a lower power limit (nvidia-smi \
             -pl) helps until then",
        ),
        _ => finding,
    }
}

/// The driver's other limits: that of the card's memory, and in laptops one that their firmware chooses.
fn cool(host: &Host, gpu: &Gpu, finding: Finding) -> Finding {
    let see = "nvidia-smi -q -d TEMPERATURE,PERFORMANCE";
    if is_of_laptop(host, Some(gpu)) {
        let is_of_amd = host.system().is_ok_and(|system| system.cpu.is_some_and(|cpu| cpu.contains("AMD")));
        let thermald = match is_of_amd || host.is_windows() == Ok(true) {
            true => "",
            false => "on an Intel CPU under Linux install and start thermald, which manages these limits; ",
        };
        let finding = finding
            .because(
                "a laptop's firmware sets how warm its GPU may get (\"GPU Max Operating Temp\"), by the charger, the power profile and \
                 the heat of the whole laptop; cleaner fans do not help against it",
            )
            .remedy(format!(
                "plug in the laptop's own charger and choose the power profile for performance, also in the maker's program; \
                 {thermald}update the laptop's firmware (BIOS)"
            ))
            .command(see);
        return match super::is_native_linux(host) {
            true => finding.command("powerprofilesctl set performance"),
            false => finding,
        };
    }
    finding
        .because(
            "the driver also slows a card down whose memory is too hot, and the temperature shown is that of the GPU's chip; GDDR6X and \
             HBM get much hotter than the chip",
        )
        .remedy(
            "improve the airflow around the card, especially at its back, and let its fans run faster; if that is not enough, \
             have the \
             thermal pads between memory and cooler renewed; a lower power limit (nvidia-smi -pl) also helps",
        )
        .command(see)
}

/// Whether the card is one for servers, which has no fan.
fn is_passive(gpu: &Gpu) -> bool {
    const NAMES: [&str; 18] = [
        "A2", "A10", "A10G", "A16", "A30", "A40", "A100", "A800", "L4", "L40", "L40S", "L20", "H100", "H200",
        "H20", "H800", "T4", "P40",
    ];
    let Ok(name) = gpu.name() else { return false };
    let mut words = name.split([' ', '-']);
    // A card on the board of a server is named after its socket.
    !name.contains("RTX")
        && !name.contains("SXM")
        && !name.contains("HBM3")
        && (name.contains("Tesla") || words.any(|word| NAMES.contains(&word)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cards_for_servers_have_no_fan() {
        let is = |name: &str| {
            let nvml = json!({ "driver_version": "580.95.05", "devices": [{ "name": name }] });
            let host = Host::from_value(json!({ "version": 1, "os": "linux", "nvml": nvml })).unwrap().0;
            is_passive(&host.gpus().unwrap()[0])
        };
        for name in [
            "Tesla P40",
            "NVIDIA A10",
            "NVIDIA A100-PCIE-40GB",
            "NVIDIA L40S",
            "NVIDIA H100 PCIe",
            "NVIDIA A100 80GB PCIe",
        ] {
            assert!(is(name), "{name}");
        }
        for name in [
            "NVIDIA RTX A4000",
            "NVIDIA GeForce RTX 4090",
            "NVIDIA TITAN V",
            "NVIDIA A100-SXM4-80GB",
            "NVIDIA H100 80GB HBM3",
        ] {
            assert!(!is(name), "{name}");
        }
    }
}
