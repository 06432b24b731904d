//! Whether a card stopped working before the machine was restarted. A restart usually clears the fault and its log, so
//! that all looks well until the next run ends in the same way; the journal of the previous boot still tells.

use super::lost::{LOCKED, meaning};
use super::run_gpus::of_others;
use super::{is_native_linux, is_of_laptop, label};
use crate::checks::system::unclean_restart::{is_recent, is_suspected, sparing_commands};
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, pci_address};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::power_cycle;

pub(super) static CHECK: Check = Check {
    question: "Did a GPU fail before the last restart?",
    reports: &["gpu.xid-before-restart"],
    preflight: false,
    run,
};

/// A card works on after a reset, which repairs all errors but that of a card that is gone. A restart because of such an
/// error follows soon; in seconds.
const SOON: f64 = 3600.0;
const GONE: u32 = 79;
/// Errors of NVLink.
const OF_LINK: [u32; 6] = [74, 136, 144, 145, 149, 155];
/// Errors of the card's own processor, in which the driver has a part.
const OF_FIRMWARE: [u32; 5] = [61, 62, 119, 120, 143];

fn run(host: &Host, intent: &Intent) -> Answer {
    if !is_native_linux(host) || intent.cpu || host.is_container() {
        return Ok(Vec::new());
    }
    if !is_recent(host) {
        return Ok(Vec::new());
    }
    // Without a sign, a live machine is not asked: its journal can be large.
    if !host.is_recorded() && (host.nvml_state().is_err() || !is_suspected(host, intent)) {
        return Ok(Vec::new());
    }
    let mut before = host.xids_of_boot_before();
    let of_others = of_others(host);
    before.retain(|xid| xid.address.as_ref().is_none_or(|address| !of_others.contains(address)));
    let now = host.xids().unwrap_or_default();
    // What is wrong now is reported by other checks.
    if now.iter().any(|xid| meaning(xid, false).is_some()) || !host.kernel_lines(&[LOCKED]).is_empty() {
        return Ok(Vec::new());
    }
    before.retain(|xid| {
        let is_soon = || host.seconds_to_end_of_boot_before(xid).is_none_or(|seconds| seconds <= SOON);
        meaning(xid, false).is_some() && (xid.number == GONE || is_soon())
    });
    // A card that falls off the bus makes errors of its neighbors and of the driver follow; the first is the cause.
    let gone = before.iter().find(|xid| xid.number == GONE);
    let Some(xid) = gone.or(before.first()).cloned() else { return Ok(Vec::new()) };
    let words = meaning(&xid, false).unwrap_or_default();
    let gpus = host.gpus().unwrap_or_default();
    let is_own = |address: &String| {
        gpus.iter()
            .find(|gpu| gpu.pci_bus_id().ok().and_then(|id| pci_address(&id)).as_ref() == Some(address))
    };
    // One that is gone for good is of the kind of the others.
    let are_modules = !gpus.is_empty() && gpus.iter().all(Gpu::is_module);
    let gpu = xid.address.as_ref().and_then(is_own);
    let is_module = gpu.map_or(are_modules, Gpu::is_module);
    let card = match (gpu, &xid.address) {
        (Some(gpu), _) => label(gpu),
        (None, Some(address)) => format!("the GPU at {address}"),
        (None, None) => "a GPU".to_owned(),
    };
    let title = format!("before the last restart, {card} had error Xid {}: {words}", xid.number);
    let finding = Finding::new("gpu.xid-before-restart", title).seen(xid.line.clone());
    if host.job().is_some() {
        // A card that this job does not see may be of another one.
        if gpu.is_none() && xid.address.is_some() {
            return Ok(Vec::new());
        }
        return Ok(vec![finding.remedy(
            "tell the administrator of this node, and submit the job to another one if it fails again",
        )]);
    }
    let finding = if host.guest().is_some() {
        finding.remedy(format!("if it happens again, {}", power_cycle::words(host)))
    } else if is_of_laptop(host, gpu) {
        finding.remedy(
            "update the driver and the laptop's firmware (BIOS), use its own charger, and check its cooling; limit the GPU's clock \
             (`sudo nvidia-smi -lgc 0,1500`) if it happens again",
        )
    } else if OF_LINK.contains(&xid.number) {
        finding.remedy(
            "continue the run with `yolo train --resume`, and look for errors of the links after it (`nvidia-smi nvlink -e`, \
             whose counters began anew with the restart); if the cards are joined by a bridge, reseat it; if it happens again, \
             contact the manufacturer of the machine",
        ).command("nvidia-smi nvlink -e")
    } else if is_module {
        finding.remedy(
            "run NVIDIA's diagnostics while no program uses the GPUs (`dcgmi diag -r 3`, from NVIDIA's Data Center GPU Manager, which has to be \
             installed), and contact the manufacturer of the machine if it happens again; \
             continue the run with `yolo train --resume`",
        )
    } else if OF_FIRMWARE.contains(&xid.number) {
        finding.remedy(
            "update the driver and the firmware of the machine; if it happens again, check the card's cooling and power cables, \
             and have it replaced",
        )
    } else {
        sparing_commands(host).into_iter().fold(finding, Finding::command)
    };
    Ok(vec![finding.command("journalctl -k -b -1 -g NVRM")])
}
