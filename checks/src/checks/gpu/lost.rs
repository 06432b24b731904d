//! Whether a GPU was lost: NVML cannot open it, or the kernel log says that it fell off the bus and
//! the driver no longer lists it. Other driver errors (Xid) that only a restart clears are reported
//! too; errors caused by programs, such as Xid 13, 31 and 43, are not.

use super::run_gpus::of_others;
use super::{lost_remedy, screen_timeout, uninitialized};
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Guest, Host, LogTime, NvmlState, Xid, nvml_error_text, pci_address};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::power_cycle;
use crate::remedies::restart::{reset_gpu, restart};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is any GPU lost or in an error state?",
    reports: &["gpu.lost", "gpu.xid", "gpu.recovery-action"],
    preflight: true,
    run,
};

/// Hardware and firmware errors that last until a reset, with NVIDIA's descriptions. Source:
/// docs.nvidia.com/deploy/xid-errors.
const STAYING: [(u32, &str); 16] = [
    (46, "the GPU stopped processing"),
    (61, "internal micro-controller breakpoint"),
    (62, "internal micro-controller halt"),
    (74, "NVLink error"),
    (79, "fallen off the bus"),
    (110, "security fault"),
    (119, "the GPU System Processor (GSP) did not respond"),
    (120, "the GPU System Processor (GSP) failed"),
    (136, "NVLink training failed"),
    (143, "the GPU could not be initialized"),
    (144, "NVLink error (SAW)"),
    (145, "NVLink error (RLW)"),
    (149, "NVLink error (NETIR)"),
    (155, "NVLink error (software)"),
    (158, "fatal time-out of the GPU"),
    (167, "fatal time-out of the PCIe link"),
];

/// What the driver says about a card that stopped working, without a number.
pub(super) const LOCKED: &str = "RC watchdog: GPU is probably locked";

/// What a staying error means. Xid 8 is of one program, unless the driver says that the card is locked.
pub(super) fn meaning(xid: &Xid, is_locked: bool) -> Option<&'static str> {
    match xid.number {
        8 => is_locked.then_some("the GPU stopped processing and is locked"),
        number => STAYING.iter().find(|(staying, _)| *staying == number).map(|(_, words)| *words),
    }
}

/// What to do about a card whose number is unknown, so that it cannot be excluded by number.
const UNNUMBERED: &str = "restart the machine; if it happens again, reseat the card, check its power \
                          cables and cooling, and try another slot; until then, train on the GPUs that \
                          `nvidia-smi -L` lists";

fn run(host: &Host, _: &Intent) -> Answer {
    let state = match host.nvml_state() {
        Ok(state) => state,
        // The log alone is enough for a card that is gone.
        Err(_) if !of_log(host).is_empty() => NvmlState::Failed(999),
        Err(why) => return Err(why),
    };
    // A check of WSL reports what a GPU that WSL lost needs from Windows.
    if state == NvmlState::NoLibrary || host.is_wsl2().unwrap_or(false) {
        return Ok(Vec::new());
    }
    let all = if state == NvmlState::Ready { host.gpus()? } else { Vec::new() };
    let gpus = super::of_job(host, all.clone());
    let of_others = of_others(host);
    let mut xids = host.xids().unwrap_or_default();
    xids.retain(|xid| xid.address.as_ref().is_none_or(|address| !of_others.contains(address)));
    let mut findings: Vec<Finding> =
        gpus.iter().filter_map(|gpu| Some(unanswering(host, gpu, gpu.lost()?, &xids))).collect();
    if findings.is_empty() {
        findings.extend(of_log(host).iter().map(|xid| {
            let who = xid.address.as_deref().unwrap_or("an unknown address");
            let title = format!("the GPU at {who} has fallen off the PCI bus");
            let finding = Finding::new("gpu.lost", title).seen(xid.line.clone());
            lost_remedy::lost(host, finding, xid.address.as_deref())
        }));
    }
    if findings.is_empty() && !gpus.is_empty() {
        // A card of another job, which works now, is listed as well.
        findings.extend(not_started(host, &all));
    }
    findings.extend(of_switch(host));
    for gpu in gpus.iter().filter(|gpu| gpu.lost().is_none()) {
        match recovery_action(host, gpu, &xids) {
            Some(finding) => findings.push(finding),
            None => findings.extend(earlier(host, gpu, &xids)),
        }
    }
    if findings.is_empty() {
        findings.extend(locked(host, &gpus));
    }
    Ok(super::merge::merge_alike(findings))
}

/// Whether a line is from more than an hour before now; not if its time is unknown.
fn is_long_ago(host: &Host, line: &str) -> bool {
    const HOUR: f64 = 3600.0;
    let uptime = host.text("/proc/uptime").ok().flatten().unwrap_or_default();
    let uptime = uptime.split_whitespace().next().and_then(|seconds| seconds.parse().ok());
    let now = uptime.map(LogTime::SinceStart);
    LogTime::of(line).zip(now).and_then(|(then, now)| then.until(now)).is_some_and(|seconds| seconds > HOUR)
}

/// A card that the driver calls locked again and again, without an error that has a number.
fn locked(host: &Host, gpus: &[Gpu]) -> Option<Finding> {
    /// One line may be of a program with a long kernel, after which the card works.
    const OFTEN: usize = 3;
    const OF_ADDRESSES: [&str; 2] = ["dmaAllocMapping", "mapping_reuse.c"];
    let lines = host.kernel_lines(&[LOCKED]);
    let last = lines.last().filter(|_| lines.len() >= OFTEN && !gpus.is_empty() && host.job().is_none())?;
    let who = match gpus {
        [only] => super::label(only),
        _ => "a GPU".to_owned(),
    };
    let title =
        format!("{who} stopped processing and is locked, as the driver has logged {} times", lines.len());
    let finding = Finding::new("gpu.xid", title).seen(last.clone());
    let finding = if is_long_ago(host, last) { finding.status(Status::Info) } else { finding };
    let of_addresses = host.kernel_lines(&OF_ADDRESSES).into_iter().next();
    let Some(seen) = of_addresses.filter(|_| host.is_own_machine()) else {
        return Some(restart(host, finding));
    };
    let finding = finding
        .seen(seen)
        .because(
            "the driver has no room left to show memory of the card to the system (BAR1), which a desktop on the same card uses up in days, \
             above all without Resizable BAR; programs then hang, and cannot be ended",
        )
        .remedy(
            "restart the machine; then let the desktop use another card, such as that of the processor, or train without a desktop (`sudo \
             systemctl isolate multi-user.target`), turn Resizable BAR on in the firmware settings, or go back to driver branch 580",
        );
    Some(restart(host, finding))
}

/// Cards that fell off the bus according to the kernel log and that the driver does not list.
pub(super) fn of_log(host: &Host) -> Vec<Xid> {
    let gpus = host.gpus().unwrap_or_default();
    let listed: Vec<String> = gpus.iter().filter_map(address).collect();
    let mut found: Vec<Xid> = Vec::new();
    for xid in host.xids().unwrap_or_default() {
        let is_listed = match &xid.address {
            Some(address) => listed.contains(address),
            None => !gpus.is_empty(),
        };
        let is_new = found.iter().all(|known| known.address != xid.address);
        if xid.number == 79 && !is_listed && is_new {
            found.push(xid);
        }
    }
    found
}

/// Cards that the driver found and could not start: `NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x62:0x40:1860)`. It
/// lists the others only.
fn not_started(host: &Host, gpus: &[Gpu]) -> Vec<Finding> {
    let listed: Vec<String> = gpus.iter().filter_map(address).collect();
    let mut found: Vec<String> = Vec::new();
    let mut findings = Vec::new();
    for line in host.kernel_lines(&["RmInitAdapter failed"]) {
        let card = uninitialized::failed_card(&line);
        let Some(card) = card.filter(|card| !listed.contains(card) && !found.contains(card)) else {
            continue;
        };
        let title =
            format!("the driver could not initialize the GPU at {card}, so nvidia-smi does not list it");
        let finding = Finding::new("gpu.lost", title).seen(line);
        findings.push(uninitialized::explained(host, finding.clone(), Some(&card)).unwrap_or_else(|| {
            restart(host, finding.because(
                "the card is on the PCI bus, but does not start; usual causes are its power supply, its slot or riser, and the \
                 firmware's PCIe settings",
            ))
        }));
        found.push(card);
    }
    findings
}

/// Fatal errors of NVSwitch, which connects the GPUs of a server: `nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal,
/// Link 30 LTSSM Fault Up`.
fn of_switch(host: &Host) -> Option<Finding> {
    let lines = host.kernel_lines(&["SXid ("]);
    let line = lines.into_iter().rfind(|line| line.contains(", Fatal,"))?;
    let number: String = line.split_once("): ")?.1.chars().take_while(char::is_ascii_digit).collect();
    let title = format!("an NVSwitch had fatal error SXid {number}");
    let finding = Finding::new("gpu.xid", title)
        .seen(line)
        .because(
            "NVSwitch connects the GPUs of this server; after a fatal error, programs that use several GPUs fail or hang until \
             the GPUs and switches are reset",
        )
        .remedy("restart the machine; if the error returns, have the board looked at, and train on single GPUs until then");
    Some(restart(host, finding))
}

fn address(gpu: &Gpu) -> Option<String> {
    pci_address(&gpu.pci_bus_id().ok()?)
}

/// NVML's code for a card that needs a reset.
const RESET_REQUIRED: i64 = 16;

fn unanswering(host: &Host, gpu: &Gpu, code: i64, xids: &[Xid]) -> Finding {
    let own = address(gpu);
    let is_own = |xid: &&Xid| own.is_none() || xid.address.is_none() || xid.address == own;
    let mut lines = xids.iter().filter(is_own).filter_map(|xid| Some((xid, meaning(xid, false)?))).peekable();
    let finding = match lines.peek() {
        // The card is there; the log says what it suffers from.
        Some((xid, words)) if code == RESET_REQUIRED && xid.number != 79 => {
            let title =
                format!("{} does not work until it is reset: Xid {}, {words}", gpu.place(), xid.number);
            Finding::new("gpu.xid", title).status(Status::Error).seen(nvml_error_text(code))
        }
        _ => {
            let title = format!("{} does not respond: {}", gpu.place(), nvml_error_text(code));
            Finding::new("gpu.lost", title)
        }
    };
    let finding = lines.take(2).fold(finding, |finding, (xid, _)| finding.seen(xid.line.clone()));
    match code {
        8 => finding.remedy("turn the machine off and connect all of the card's power cables"),
        16 => {
            let finding = finding
                .because("after an earlier fault, the card accepts no work until it is reset")
                .remedy(
                    "stop the programs that use the card and reset it, or restart the machine; if the card does not \
                     come back, switch the power off for a minute; if it happens again, update the driver",
                );
            reset_gpu(host, finding, &reset_name(gpu))
        }
        _ if !gpu.is_numbered() => lost_remedy::lost(host, finding.remedy(UNNUMBERED), own.as_deref()),
        _ => lost_remedy::lost(host, finding, own.as_deref()),
    }
}

/// The argument of `nvidia-smi -i`: a number or a PCI address.
fn reset_name(gpu: &Gpu) -> String {
    match (gpu.is_numbered(), gpu.pci_bus_id()) {
        (false, Ok(address)) => address,
        _ => gpu.index.to_string(),
    }
}

/// An error of a card that currently responds.
fn earlier(host: &Host, gpu: &Gpu, xids: &[Xid]) -> Option<Finding> {
    let own = address(gpu)?;
    if let Some(finding) = asked_for(host, gpu, xids.iter().filter(|xid| xid.address.as_ref() == Some(&own)))
    {
        return Some(finding);
    }
    let is_locked = !host.kernel_lines(&[LOCKED]).is_empty();
    let of_card = || xids.iter().filter(|xid| xid.address.as_ref() == Some(&own));
    let Some((xid, words)) = of_card().find_map(|xid| Some((xid, meaning(xid, is_locked)?))) else {
        return screen_timeout::find(host, gpu, of_card());
    };
    let title = format!("{} had error Xid {}: {words}", super::label(gpu), xid.number);
    let finding = Finding::new("gpu.xid", title).seen(xid.line.clone());
    Some(match host.guest().filter(|_| host.is_own_machine()) {
        Some(Guest::Cloud(_)) => restart(
            host,
            finding
                .remedy(format!("restart the machine; if the error returns, {}", power_cycle::words(host))),
        ),
        None if super::is_of_laptop(host, Some(gpu)) => restart(
            host,
            finding.remedy(
                "restart the machine; if the error returns, update the driver and the laptop's firmware (BIOS), and check its cooling",
            ),
        ),
        _ => restart(host, finding),
    })
}

/// Xid 154 says what the driver asks for: `GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot
/// Required)`. The last line counts, and `None` in it means that nothing is left to do.
fn asked_for<'a>(host: &Host, gpu: &Gpu, xids: impl Iterator<Item = &'a Xid>) -> Option<Finding> {
    let xids: Vec<&Xid> = xids.collect();
    let last = xids.iter().rposition(|xid| xid.number == 154)?;
    let action = xids[last].line.rsplit_once(" to ")?.1.split_once('(')?.1.split(')').next()?;
    let title = format!("the driver asks for a recovery of {}: {action} (Xid 154)", super::label(gpu));
    let finding = Finding::new("gpu.xid", title).seen(xids[last].line.clone());
    // What happened before: 109 is a time-out of a program's work, 119 one of the card's own processor.
    let before = xids[..last].iter().filter(|xid| matches!(xid.number, 79 | 109 | 119 | 120));
    let finding = before.take(2).fold(finding, |finding, xid| finding.seen(xid.line.clone()));
    match action {
        "None" => None,
        action if action.contains("Reboot") => Some(restart(
            host,
            finding.remedy(
                "restart the machine, and switch it off if the card does not come back; if the error returns, use \
                 the card's default clocks, check its cooling, and update the driver; continue the run from \
                 last.pt with --resume",
            ),
        )),
        "Drain P2P" => Some(
            finding
                .remedy("train on one GPU, or without direct traffic between GPUs, until the machine is restarted")
                .command("export NCCL_P2P_DISABLE=1"),
        ),
        _ => Some(reset_gpu(
            host,
            finding.remedy("stop the programs that use the card and reset it, or restart the machine"),
            &reset_name(gpu),
        )),
    }
}

/// What the driver says has to be done with the card, which needs no kernel log. An action that this program
/// does not know is left to the kernel log.
fn recovery_action(host: &Host, gpu: &Gpu, xids: &[Xid]) -> Option<Finding> {
    let action = match gpu.number("recovery_action").ok()? {
        1 => "Reset",
        2 | 7 => "Reboot",
        3 => "Drain P2P",
        4 => "Drain and Reset",
        _ => return None,
    };
    let title = format!("the driver's recovery action for {} is {action}", super::label(gpu));
    let finding = Finding::new("gpu.recovery-action", title);
    // What happened before it, if the kernel's log still has it.
    let own = address(gpu);
    let lines: Vec<&Xid> = xids.iter().filter(|xid| own.is_some() && xid.address == own).collect();
    let finding =
        lines.iter().rev().take(2).rev().fold(finding, |finding, xid| finding.seen(xid.line.clone()));
    Some(match action {
        "Reboot" => restart(host, finding.remedy("restart the machine")),
        "Drain P2P" => finding
            .remedy(
                "train on one GPU, or without direct traffic between GPUs, until the machine is restarted",
            )
            .command("export NCCL_P2P_DISABLE=1"),
        _ => reset_gpu(host, finding, &reset_name(gpu)),
    })
}
