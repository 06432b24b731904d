//! Whether a card's PCIe link is as wide and as fast as it could be, and free of errors. An idle card
//! lowers its speed to save power, so that speed counts only under load; WSL does not tell the real
//! link at all.

use std::collections::BTreeMap;

use crate::checks::{Answer, Check, count};
use crate::facts::{Gpu, Host, NvmlState, pci_address};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are the PCIe links of the GPUs sound?",
    reports: &["gpu.link-narrow", "gpu.link-errors"],
    preflight: false,
    run,
};

const DEVICES: &str = "/sys/bus/pci/devices";
/// States of performance in which a card works; its link then runs at full speed.
const BUSY: [&str; 4] = ["Zero", "One", "Two", "Three"];
/// A sound link repeats a packet now and then.
const MANY: u64 = 50;

/// A card in its slot: as the driver tells of it, or where that is not known as the kernel does.
struct Slot {
    who: String,
    /// In the form of the kernel, `0000:01:00.0`.
    address: Option<String>,
    gpu: Option<Gpu>,
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::is_native_linux(host) {
        return Ok(Vec::new());
    }
    let slots: Vec<Slot> = match super::of_run(host, intent) {
        Ok(gpus) => gpus.into_iter().map(of_driver).collect(),
        Err(why) => {
            let cards = super::cards(host);
            if cards.is_empty() {
                // The kernel's log may still tell of a device that NVIDIA's driver runs.
                return of_log_alone(host).map(|finding| vec![finding]).ok_or(why);
            }
            cards.into_iter().map(of_kernel).collect()
        }
    };
    let mut findings: Vec<Finding> = slots.iter().filter_map(|slot| narrow(host, slot)).collect();
    let errors: Vec<Finding> = slots.iter().filter_map(|slot| repeats(host, slot)).collect();
    if errors.is_empty() && !intent.cpu {
        findings.extend(logged(host, &slots));
    }
    findings.extend(errors);
    Ok(super::together(findings))
}

fn of_driver(gpu: Gpu) -> Slot {
    let address = gpu.pci_bus_id().ok().and_then(|address| pci_address(&address));
    Slot { who: super::label(&gpu), address: address.map(|address| format!("{address}.0")), gpu: Some(gpu) }
}

fn of_kernel(address: String) -> Slot {
    Slot { who: format!("the NVIDIA card at {address}"), address: Some(address), gpu: None }
}

impl Slot {
    fn number(&self, call: &str) -> Option<u64> {
        self.gpu.as_ref()?.number(call).ok()
    }

    fn text(&self, host: &Host, file: &str) -> Option<String> {
        host.text(&format!("{DEVICES}/{}/{file}", self.address.as_ref()?)).ok()?
    }

    /// Lanes in use and lanes possible.
    fn width(&self, host: &Host) -> Option<(u64, u64)> {
        if let (Some(width), Some(most)) = (self.number("pcie_width"), self.number("pcie_width_max")) {
            return Some((width, most));
        }
        let lanes = |file: &str| self.text(host, file)?.trim().parse().ok();
        Some((lanes("current_link_width")?, lanes("max_link_width")?))
    }

    /// Whether the card works, so that its link runs at full speed.
    fn is_busy(&self) -> bool {
        let state = self.gpu.as_ref().and_then(|gpu| gpu.text("performance_state").ok());
        state.is_some_and(|state| BUSY.contains(&state.as_str()))
    }
}

fn narrow(host: &Host, slot: &Slot) -> Option<Finding> {
    let who = &slot.who;
    // A laptop's card is wired with the lanes that it has, and lowers their number to save power.
    if super::is_of_laptop(host, slot.gpu.as_ref()) {
        return None;
    }
    // Half of the lanes costs little, and many boards share them so; with a quarter the transfers of
    // images and gradients wait.
    if let Some((width, most)) = slot.width(host).filter(|(width, most)| *width > 0 && *width <= *most / 4) {
        let finding = Finding::new("gpu.link-narrow", format!("{who} uses {width} of its {most} PCIe lanes"));
        let idle = "read while the card is idle, which may lower the width too";
        return Some(if slot.is_busy() { finding } else { finding.seen(idle) });
    }
    let (generation, best) = (slot.number("pcie_generation")?, slot.number("pcie_generation_max")?);
    if slot.is_busy() && generation + 1 < best {
        let title = format!("{who} runs its PCIe link at generation {generation} of {best} under load");
        return Some(Finding::new("gpu.link-narrow", title));
    }
    None
}

/// Packets that had to be sent again, by the driver's count or the kernel's.
fn repeats(host: &Host, slot: &Slot) -> Option<Finding> {
    let text = slot.text(host, "aer_dev_correctable").unwrap_or_default();
    let of_kernel = text.lines().find_map(|line| line.strip_prefix("TOTAL_ERR_COR")?.trim().parse().ok());
    let errors = slot.number("pcie_replays").unwrap_or(0).max(of_kernel.unwrap_or(0));
    let title = format!("the PCIe link of {} had {errors} errors that were corrected", slot.who);
    (errors >= MANY).then(|| Finding::new("gpu.link-errors", title))
}

/// Errors in the kernel's log on the way to a card. A port that leads to another device, such as a
/// network card, is not ours; where the ports are not known, it may be.
fn logged(host: &Host, slots: &[Slot]) -> Option<Finding> {
    let way = |slot: &Slot| host.link(&format!("{DEVICES}/{}", slot.address.as_ref()?)).ok()?;
    let ways: Vec<Option<String>> = slots.iter().map(way).collect();
    let leads_here =
        |address: &str| ways.iter().any(|way| way.as_ref().is_none_or(|way| way.contains(address)));
    // A driver that does not answer may have lost its card over just such errors.
    let sick = matches!(host.nvml_state(), Ok(NvmlState::Failed(_)))
        || host.gpus().is_ok_and(|gpus| gpus.iter().any(|gpu| gpu.lost().is_some()));
    let (address, lines) = errors_by_device(host).into_iter().find(|(at, _)| sick || leads_here(at))?;
    Some(in_log(&address, lines))
}

/// Where neither driver nor bus is known: errors of a device that the kernel names by NVIDIA's driver
/// or by NVIDIA's number, 10de.
fn of_log_alone(host: &Host) -> Option<Finding> {
    let is_nvidia = |line: &String| line.contains("nvidia ") || line.contains("[10de:");
    let found = errors_by_device(host).into_iter().find(|(_, lines)| lines.iter().any(is_nvidia));
    found.map(|(address, lines)| in_log(&address, lines))
}

/// The lines of PCIe errors in the kernel's log, by the device that reports them.
fn errors_by_device(host: &Host) -> BTreeMap<String, Vec<String>> {
    let mut by_device: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in host.kernel_lines(&["AER: ", "PCIe Bus Error"]) {
        // With its function, `0000:02:00.0:`, so that the journal's time of day is none.
        let is_address = |word: &&str| {
            let function = word.trim_end_matches(':').rsplit_once('.').map(|(_, function)| function.len());
            word.matches(':').count() >= 2 && function == Some(1)
        };
        let address = line.split_whitespace().filter(is_address).find_map(pci_address);
        if let Some(address) = address.filter(|_| line.contains("rror")) {
            by_device.entry(address).or_default().push(line);
        }
    }
    by_device
}

fn in_log(address: &str, lines: Vec<String>) -> Finding {
    let title =
        format!("the PCIe device {address} had errors: {} in the kernel's log", count(lines.len(), "line"));
    lines.into_iter().take(3).fold(Finding::new("gpu.link-errors", title), Finding::seen)
}
