//! Whether GPUs can access each other's memory over PCIe without hanging. If the IOMMU redirects
//! that traffic, or a driver or card has a known fault, the first exchange hangs.

use yolo_base::env::NCCL_P2P_DISABLE;

use super::iommu::{Iommu, iommu};
use super::{acs, gpu_direct};
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState, pci_address, pci_addresses};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::remedies::kernel_option::way;
use crate::status::Status;

/// Part of the names of cards for a slot that a bridge of NVLink joins. Neither them nor modules does an IOMMU redirect.
const NVLINKED: &str = "NVL";

/// The driver of NVIDIA/open-gpu-kernel-modules#1257.
const CORRUPTS: &str = "580.142";

pub(super) static CHECK: Check = Check {
    question: "Can the GPUs access each other's memory?",
    reports: &[
        "gpu.peer-redirected",
        "gpu.peer-fault",
        "gpu.peer-silent",
        "gpu.peer-patched",
        "gpu.peer-none",
    ],
    preflight: true,
    run,
};

/// Whether a card communicates through NVLink. Its name tells whether it is made for that; in some servers and virtual
/// machines such cards have no active link, and communicate over PCIe.
pub(in crate::checks) fn is_nvlinked(gpu: &Gpu) -> bool {
    let is_made_for_it = gpu.is_module() || gpu.name().is_ok_and(|name| name.contains(NVLINKED));
    // Instances of a card use no links, but do not communicate over PCIe either.
    let is_divided = gpu.mig() == Ok(true);
    // An empty list says nothing: NVML also refuses the answer.
    let has_links = gpu.nvlinks().map_or(true, |links| links.is_empty() || links.contains(&true));
    is_made_for_it && (is_divided || has_links)
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || host.is_wsl2().unwrap_or(false) || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let findings = between_gpus(host, intent)?;
    Ok(if findings.is_empty() {
        gpu_direct::redirected(host, intent)?.into_iter().collect()
    } else {
        findings
    })
}

fn between_gpus(host: &Host, intent: &Intent) -> Answer {
    let mut gpus = super::chosen(host, intent, host.gpus()?);
    gpus.retain(|gpu| gpu.lost().is_none());
    let is_off = nccl_files::setting(host, NCCL_P2P_DISABLE).is_some_and(|set| set.value.trim() == "1");
    if gpus.len() < 2 || is_off || intent.cpu || intent.run && intent.ranks_on_gpus() < 2 {
        return Ok(Vec::new());
    }
    let names: Vec<String> = gpus.iter().filter_map(|gpu| gpu.name().ok()).collect();
    let all = |word: &str| names.len() == gpus.len() && names.iter().all(|name| name.contains(word));
    let status = if intent.run { Status::Warning } else { Status::Info };
    if let Some(version) = patched(host) {
        let title = format!(
            "driver {version} is patched: it lets these GPUs communicate directly, which NVIDIA's own does not"
        );
        return Ok(vec![
            Finding::new("gpu.peer-patched", title).status(status).command("yolo doctor --deep"),
        ]);
    }
    if all("GeForce")
        && let Some((first, second)) = opened(host, &gpus)
    {
        let title = "the driver lets these GeForce cards communicate directly (P2P), which NVIDIA's own does not: it is patched";
        return Ok(vec![
            Finding::new("gpu.peer-patched", title)
                .status(status)
                .seen(format!("nvidia-smi topo -p2p r: GPU {first} and GPU {second}: OK"))
                .because(
                    "NVIDIA's own driver offers no direct path between GeForce cards without NVLink; with a patched module, \
                     transfers hang or corrupt data on machines whose IOMMU or PCIe bridges (ACS) redirect them",
                )
                .remedy(
                    "let --deep compare direct copies with copies through memory; if they differ or hang, set \
                     NCCL_P2P_DISABLE=1 or install NVIDIA's own driver",
                )
                .command("yolo doctor --deep"),
        ]);
    }
    if !all("GeForce")
        && let Some(line) = fault(host, &gpus)
    {
        let title = "the IOMMU blocked what a GPU sent, several times: direct traffic between the GPUs can fail or corrupt data";
        return Ok(vec![
            finding("gpu.peer-redirected", title.to_owned(), Status::Warning).seen(line)
                .remedy("disable direct traffic (P2P), which is slower")
                .machine_remedy(format!(
                    "for direct traffic, add iommu=pt to the kernel command line{} and restart, or turn the IOMMU or ACS off in \
                     the firmware",
                    way(host, "iommu=pt")
                )),
        ]);
    }
    let driver = host.driver_version();
    if all("RTX 6000 Ada") && driver.as_ref().is_ok_and(|driver| driver.to_string() == CORRUPTS) {
        let title = format!(
            "driver {CORRUPTS} was reported to corrupt what {} RTX 6000 Ada cards send each other directly",
            gpus.len()
        );
        return Ok(vec![Finding::new("gpu.peer-silent", title).status(status).command("yolo doctor --deep")]);
    }
    if all("RTX PRO 6000 Blackwell") {
        let title = format!(
            "{} RTX PRO 6000 Blackwell cards are known to hang when they communicate directly",
            gpus.len()
        );
        // One known cause is the IOMMU; without it nothing has been reported.
        return Ok(match iommu(host) {
            Iommu::Off => Vec::new(),
            Iommu::Passes => vec![
                finding("gpu.peer-fault", title, Status::Info)
                    .remedy("nothing while runs start; if one hangs at its start, disable direct traffic (P2P)"),
            ],
            Iommu::Unknown => vec![finding("gpu.peer-fault", title, status)],
            Iommu::Translates(seen) => vec![finding("gpu.peer-fault", title, status).seen(seen)
                .remedy("disable direct traffic (P2P), which is slower")
                .machine_remedy(format!(
                    "for direct traffic, take the IOMMU out of the way, which is one known cause: add iommu=pt to the kernel command \
                     line{} and restart, or turn ACS off in the firmware, then try again",
                    way(host, "iommu=pt")
                ))],
        });
    }
    // Those of a bridge of NVLink.
    let are_linked = gpus.iter().any(|gpu| gpu.nvlinks().is_ok_and(|links| links.contains(&true)))
        || gpus.iter().skip(1).any(|gpu| host.gpus_read_each_other(gpus[0].index, gpu.index) == Ok(true));
    if all("GeForce") && are_linked {
        return Ok(Vec::new());
    }
    if all("GeForce") {
        let title = "GeForce cards cannot communicate directly: they use system memory";
        return Ok(vec![Finding::new("gpu.peer-none", title)]);
    }
    if let Ok(driver) = driver
        && driver.major() == 560
    {
        let title = format!(
            "driver {driver} is known to hang when GPUs communicate directly; 570 does \
                             not"
        );
        return Ok(vec![finding("gpu.peer-fault", title, status)]);
    }
    let has_nvlink = gpus.iter().any(is_nvlinked);
    if has_nvlink || names.iter().any(|name| name.contains("GeForce")) {
        return Ok(Vec::new());
    }
    Ok(redirected(host, &gpus)
        .map(|seen| {
            let title = "the IOMMU redirects traffic between GPUs, which can make the first exchange hang";
            finding("gpu.peer-redirected", title.to_owned(), status).seen(seen)
        })
        .or_else(|| controlled(host, &gpus, status))
        .into_iter()
        .collect())
}

/// The version of a driver with patches for direct traffic between GeForce cards: it ends in `-p2p`.
fn patched(host: &Host) -> Option<String> {
    let of_module = host.text("/proc/driver/nvidia/version").ok().flatten().unwrap_or_default();
    let word = of_module.split_whitespace().find(|word| word.ends_with("-p2p"));
    word.map(ToOwned::to_owned)
}

/// The first branch of NVIDIA's own driver that offers no direct traffic between RTX 4090 by mistake.
const CLOSED: u32 = 530;

/// Two cards between which the driver offers direct traffic, although NVIDIA's own never does: those of the RTX 40 and
/// RTX 50 series have no NVLink, and of the RTX 30 series only the RTX 3090 has.
fn opened(host: &Host, gpus: &[Gpu]) -> Option<(usize, usize)> {
    if host.driver_version().ok()?.major() < CLOSED {
        return None;
    }
    let is_closed = |gpu: &&Gpu| {
        let name = gpu.name().unwrap_or_default();
        matches!(gpu.capability(), Ok((8, 6 | 9) | (12, 0))) && !name.contains("3090")
    };
    let closed: Vec<&Gpu> = gpus.iter().filter(is_closed).collect();
    closed.iter().enumerate().find_map(|(place, first)| {
        let other = closed
            .get(place + 1..)?
            .iter()
            .find(|second| host.gpus_read_each_other(first.index, second.index) == Ok(true))?;
        Some((first.index, other.index))
    })
}

fn finding(id: &'static str, title: String, status: Status) -> Finding {
    Finding::new(id, title).status(status).command(format!("export {NCCL_P2P_DISABLE}=1"))
}

/// How many refusals tell more than a card that was reset or given away once.
const SEVERAL: usize = 3;

/// A line of the kernel log about an access of one of these cards that the IOMMU did not allow, if there are several.
fn fault(host: &Host, gpus: &[Gpu]) -> Option<String> {
    let cards: Vec<String> = gpus.iter().filter_map(|gpu| pci_address(&gpu.pci_bus_id().ok()?)).collect();
    let mut lines = host.kernel_lines(&["IO_PAGE_FAULT", "DMAR: [DMA"]);
    lines.retain(|line| pci_addresses(line).any(|card| cards.contains(&card)));
    lines.into_iter().nth(SEVERAL - 1)
}

/// Bridges that redirect although there is no IOMMU, between cards at the same switch. Others exchange through the CPU anyway.
fn controlled(host: &Host, gpus: &[Gpu], status: Status) -> Option<Finding> {
    let is_near = |first: &Gpu, second: &Gpu| {
        host.gpu_link(first.index, second.index).is_ok_and(|link| matches!(link.as_str(), "PIX" | "PXB"))
    };
    let pairs = gpus.iter().enumerate().flat_map(|(place, first)| {
        gpus[place + 1..]
            .iter()
            .filter(move |second| is_near(first, second))
            .map(move |second| (first, second))
    });
    let pairs: Vec<(&Gpu, &Gpu)> = pairs.collect();
    if pairs.is_empty() || !matches!(iommu(host), Iommu::Off) {
        return None;
    }
    let bridges = acs::redirecting(host, &pairs);
    if bridges.is_empty() {
        return None;
    }
    let title = "PCIe bridges send what the GPUs exchange up to the CPU (ACS), which is slow and can make the first exchange hang";
    let seen = format!("ReqRedir+ in ACSCtl of {}", bridges.join(", "));
    if !host.is_own_machine() {
        let found = finding("gpu.peer-redirected", title.to_owned(), status).seen(seen);
        return Some(
            found
                .remedy("if a run hangs at its start, disable direct traffic (P2P), which is slower")
                .machine_remedy("for fast direct traffic, turn ACS off"),
        );
    }
    // Without the variable: direct traffic is what is to be repaired.
    let found = Finding::new("gpu.peer-redirected", title).status(status).seen(seen).remedy(format!(
        "turn ACS off in the firmware, or with setpci, which lasts until the next restart; if runs still hang at their start, set \
         {NCCL_P2P_DISABLE}=1, which is slower",
    ));
    let commands = bridges.iter().map(|bridge| format!("sudo setpci -s {bridge} ECAP_ACS+6.w=0000"));
    Some(commands.fold(found, Finding::command))
}

/// Levels of NCCL at which it uses direct traffic also between cards at different bridges of the CPU.
const FAR_LEVELS: [&str; 6] = ["SYS", "NODE", "PHB", "3", "4", "5"];

/// Signs that an IOMMU translates addresses and that the cards communicate over PCIe.
fn redirected(host: &Host, gpus: &[Gpu]) -> Option<String> {
    let Iommu::Translates(seen) = iommu(host) else { return None };
    // On AMD, NCCL uses direct traffic between exactly two cards at any distance.
    let is_amd = host.system().is_ok_and(|system| system.cpu.is_some_and(|cpu| cpu.contains("AMD")));
    let level = nccl_files::setting(host, "NCCL_P2P_LEVEL").map(|level| level.value.to_ascii_uppercase());
    let is_far = gpus.len() == 2 && is_amd || level.is_some_and(|level| FAR_LEVELS.contains(&level.trim()));
    let over_pcie = gpus.iter().enumerate().any(|(place, first)| {
        gpus[place + 1..].iter().any(|second| {
            host.gpu_link(first.index, second.index).is_ok_and(|link| match link.as_str() {
                "PIX" | "PXB" | "PHB" => true,
                "NODE" | "SYS" => is_far,
                _ => false,
            })
        })
    });
    over_pcie.then_some(seen)
}
