//! Whether a card's PCIe link is as wide and as fast as it could be, and free of errors. An idle card
//! lowers its speed to save power, so that speed counts only under load; WSL does not tell the real
//! link at all.

use std::collections::BTreeMap;

use crate::checks::{Answer, Check, count};
use crate::facts::{Gpu, Host, NvmlState, pci_address};
use crate::finding::{Finding, Status};
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

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.wsl()?.is_some() || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    let mut findings: Vec<Finding> = gpus.iter().filter_map(|gpu| narrow(host, gpu)).collect();
    findings.extend(gpus.iter().filter_map(|gpu| repeats(host, gpu)));
    if findings.iter().all(|finding| finding.id != "gpu.link-errors") && !intent.cpu {
        findings.extend(logged(host, &gpus));
    }
    Ok(findings)
}

fn narrow(host: &Host, gpu: &Gpu) -> Option<Finding> {
    let who = super::label(gpu);
    let (width, most) = width(host, gpu)?;
    let busy = gpu.text("performance_state").is_ok_and(|state| BUSY.contains(&state.as_str()));
    if width > 0 && width * 2 <= most {
        let title = format!("{who} uses {} of its {most} PCIe lanes", width);
        // Half of the lanes costs little; with a quarter the transfers of images and gradients wait.
        let status = if width * 4 <= most { Status::Warning } else { Status::Info };
        let finding = Finding::new("gpu.link-narrow", title).status(status);
        let idle = "read while the card is idle, which on some laptops lowers the width too";
        return Some(if busy { finding } else { finding.seen(idle) });
    }
    let (generation, best) = (gpu.number("pcie_generation").ok()?, gpu.number("pcie_generation_max").ok()?);
    if busy && generation + 1 < best {
        let title = format!("{who} runs its PCIe link at generation {generation} of {best} under load");
        return Some(Finding::new("gpu.link-narrow", title));
    }
    None
}

/// Lanes in use and lanes possible, from the driver or else from the kernel.
fn width(host: &Host, gpu: &Gpu) -> Option<(u64, u64)> {
    if let (Ok(width), Ok(most)) = (gpu.number("pcie_width"), gpu.number("pcie_width_max")) {
        return Some((width, most));
    }
    let device = format!("{DEVICES}/{}.0", pci_address(&gpu.pci_bus_id().ok()?)?);
    let number = |file: &str| host.text(&format!("{device}/{file}")).ok()??.trim().parse().ok();
    Some((number("current_link_width")?, number("max_link_width")?))
}

/// Packets that had to be sent again, by the driver's count or the kernel's.
fn repeats(host: &Host, gpu: &Gpu) -> Option<Finding> {
    let of_driver = gpu.number("pcie_replays").unwrap_or(0);
    let address = gpu.pci_bus_id().ok().and_then(|address| pci_address(&address));
    let of_kernel = address.and_then(|address| {
        let text = host.text(&format!("{DEVICES}/{address}.0/aer_dev_correctable")).ok()??;
        text.lines().find_map(|line| line.strip_prefix("TOTAL_ERR_COR")?.trim().parse::<u64>().ok())
    });
    let errors = of_driver.max(of_kernel.unwrap_or(0));
    let title = format!("the PCIe link of {} had {errors} errors that were corrected", super::label(gpu));
    (errors >= MANY).then(|| Finding::new("gpu.link-errors", title))
}

/// Errors in the kernel's log on the way to a card. A port that leads to another device, such as a
/// network card, is not ours; where the ports are not known, it may be.
fn logged(host: &Host, gpus: &[Gpu]) -> Option<Finding> {
    let lines = host.kernel_lines(&["AER: ", "PCIe Bus Error"]);
    let mut by_device: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines.into_iter().filter(|line| line.contains("rror")) {
        let address = line
            .split_whitespace()
            .find_map(|word| pci_address(word).filter(|_| word.matches(':').count() >= 2));
        if let Some(address) = address {
            by_device.entry(address).or_default().push(line);
        }
    }
    let ways: Vec<Option<String>> = gpus
        .iter()
        .map(|gpu| {
            let address = pci_address(&gpu.pci_bus_id().ok()?)?;
            host.link(&format!("{DEVICES}/{address}.0")).ok()?
        })
        .collect();
    let leads_here =
        |address: &str| ways.iter().any(|way| way.as_ref().is_none_or(|way| way.contains(address)));
    // A driver that does not answer may have lost its card over just such errors.
    let sick = matches!(host.nvml_state(), Ok(NvmlState::Failed(_)))
        || host.gpus().is_ok_and(|all| all.len() > gpus.len());
    let (address, lines) = by_device.into_iter().find(|(address, _)| sick || leads_here(address))?;
    let title =
        format!("the PCIe device {address} had errors: {} in the kernel's log", count(lines.len(), "line"));
    Some(lines.into_iter().take(3).fold(Finding::new("gpu.link-errors", title), Finding::seen))
}
