//! Whether a GPU's memory is failing: errors that ECC could not correct, and rows that are waiting
//! to be remapped or could not be. GeForce cards do not report this.

use std::collections::BTreeMap;

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, Xid, pci_address};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::restart::{reset_gpu, restart};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is the GPUs' memory free of errors?",
    reports: &["gpu.memory-errors"],
    preflight: true,
    run,
};

/// Xids about memory: 48 is an uncorrectable error, 63 and 64 a successful or failed row remapping, 94
/// and 95 a contained or uncontained error, 140 one that could not be recovered from. Drivers since 570 also have 160 and 161,
/// a repair that waits for a reset or has failed, and 171 and 172, which say where the error of 48 was.
const OF_MEMORY: [u32; 10] = [48, 63, 64, 94, 95, 140, 160, 161, 171, 172];
/// A faulty row or channel could not be replaced by a spare one.
const NOT_REPLACED: [u32; 2] = [64, 161];
/// One program failed; the card keeps working.
const CONTAINED: [u32; 3] = [63, 94, 160];

fn run(host: &Host, intent: &Intent) -> Answer {
    let xids = host.xids().unwrap_or_default();
    match super::of_run(host, intent) {
        Ok(gpus) => Ok(super::merge::merge_alike(
            gpus.iter().filter_map(|gpu| memory_errors(host, gpu, &xids)).collect(),
        )),
        // If the driver was not asked, the kernel log alone is enough.
        Err(why) => {
            let findings = of_log(host, &xids);
            if findings.is_empty() || intent.cpu { Err(why) } else { Ok(findings) }
        }
    }
}

/// One finding for each card in the log, by its address.
fn of_log(host: &Host, xids: &[Xid]) -> Vec<Finding> {
    let mut by_card: BTreeMap<&str, Vec<&Xid>> = BTreeMap::new();
    for xid in xids.iter().filter(|xid| OF_MEMORY.contains(&xid.number)) {
        by_card.entry(xid.address.as_deref().unwrap_or("an unknown address")).or_default().push(xid);
    }
    let finding = |(address, logged): (&str, Vec<&Xid>)| {
        of_xids(&format!("the GPU at {address}"), &logged).map(|finding| restart(host, finding))
    };
    by_card.into_iter().filter_map(finding).collect()
}

/// What the driver logged about one card's memory.
fn of_xids(who: &str, logged: &[&Xid]) -> Option<Finding> {
    let severe = logged.iter().any(|xid| !CONTAINED.contains(&xid.number));
    let title = format!("{who}: the driver logged memory error Xid {}", logged.last()?.number);
    let status = if severe { Status::Error } else { Status::Warning };
    let finding = Finding::new("gpu.memory-errors", title).status(status);
    let finding = match logged.iter().any(|xid| NOT_REPLACED.contains(&xid.number)) {
        true => finding
            .because("a faulty part of the memory could not be replaced by a spare one, so it stays in use")
            .remedy(
                "stop the programs that use the card and reset it, or restart the machine; if the error returns, have the card \
                 replaced (in a cloud, stop the machine for good and take another, because a restart stays on the same card), and \
                 leave the card out of --device until then",
            ),
        false => finding,
    };
    Some(logged.iter().take(2).fold(finding, |finding, xid| finding.seen(xid.line.clone())))
}

fn memory_errors(host: &Host, gpu: &Gpu, xids: &[Xid]) -> Option<Finding> {
    let who = super::label(gpu);
    let is_true = |call: &str| gpu.flag(call).unwrap_or_else(|_| gpu.number(call).is_ok_and(|rows| rows > 0));
    let errors = gpu.number("ecc_uncorrected").unwrap_or(0);
    let own = gpu.pci_bus_id().ok().and_then(|address| pci_address(&address));
    let of_gpu = |xid: &&Xid| OF_MEMORY.contains(&xid.number) && xid.address.is_some() && xid.address == own;
    let logged: Vec<&Xid> = xids.iter().filter(of_gpu).collect();
    let reset = |finding| reset_gpu(host, finding, &gpu.index.to_string());
    let finding = if is_true("remapped_rows_failed") {
        let title = format!("{who}: its memory is failing, and faulty rows could not be replaced");
        Finding::new("gpu.memory-errors", title)
            .remedy("have the card replaced; until then, exclude it from --device")
    } else if is_true("remapped_rows_pending") {
        let title = match errors {
            0 => format!("{who}: faulty memory rows will be replaced at the next reset"),
            errors => format!(
                "{who}: {} (ECC); faulty rows will be replaced at the next reset",
                format::count(errors as usize, "uncorrectable memory error")
            ),
        };
        reset(
            Finding::new("gpu.memory-errors", title)
                .remedy("stop the programs that use the card and reset it, or restart the machine"),
        )
    } else if errors > 0 {
        let title = format!("{who}: {} (ECC)", format::count(errors as usize, "uncorrectable memory error"));
        reset(Finding::new("gpu.memory-errors", title))
    } else {
        return of_xids(&who, &logged).map(reset);
    };
    Some(logged.iter().take(2).fold(finding, |finding, xid| finding.seen(xid.line.clone())))
}
