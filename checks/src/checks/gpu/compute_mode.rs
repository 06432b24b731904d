//! GPU modes that an administrator sets: the compute mode, which may allow one program or none, and
//! persistence mode, which keeps the driver loaded between programs.

use super::mps;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, pci_address};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_without_rights;
use crate::remedies::restart::restart;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the compute mode let programs use the GPUs?",
    reports: &["gpu.exclusive", "gpu.persistence-off"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let gpus = super::of_run(host, intent)?;
    let mut findings = Vec::new();
    for gpu in &gpus {
        match gpu.compute_mode() {
            Ok(mode) => findings.extend(exclusive(host, intent, gpu, &mode)),
            Err(why) => findings.push(Finding::skipped("gpu.exclusive", &why)),
        }
    }
    let mut findings = super::merge::merge_alike(findings);
    // WSL and Windows keep the driver loaded, a container cannot change it, a desktop keeps the GPU
    // open, and a laptop's GPU is meant to sleep.
    let native = super::is_native_linux(host) && !host.is_container();
    let is_off = |gpu: &&Gpu| {
        gpu.flag("persistence") == Ok(false)
            && gpu.flag("display_active") != Ok(true)
            && !super::is_of_laptop(host, Some(gpu))
            && !sleeps(host, gpu)
    };
    let off: Vec<String> = gpus.iter().filter(is_off).map(|gpu| gpu.index.to_string()).collect();
    if native && !off.is_empty() {
        let word = if off.len() == 1 { "GPU" } else { "GPUs" };
        let title = format!(
            "persistence mode is off for {word} {}: each run starts a few seconds later",
            off.join(", ")
        );
        findings.push(Finding::new("gpu.persistence-off", title).command("sudo nvidia-smi -pm 1"));
    }
    Ok(findings)
}

/// Whether the kernel may suspend an idle card, and has done so.
fn sleeps(host: &Host, gpu: &Gpu) -> bool {
    let address = gpu.pci_bus_id().ok().and_then(|address| pci_address(&address));
    let status = address.and_then(|address| {
        host.text(&format!("/sys/bus/pci/devices/{address}.0/power/runtime_status")).ok()?
    });
    status.is_some_and(|status| status.trim() == "suspended")
}

/// NVIDIA recommends exclusive mode together with MPS: new programs connect through it.
fn shared_by_mps(who: &str) -> Finding {
    let title = format!("{who} is in exclusive mode for NVIDIA's MPS server, which lets programs share it");
    Finding::new("gpu.exclusive", title)
        .status(Status::Info)
        .because(
            "with MPS only the server opens the card, and programs of the same user compute through \
                  it",
        )
        .remedy("nothing if the MPS server is yours; if it is not, wait until its programs end")
}

fn exclusive(host: &Host, intent: &Intent, gpu: &Gpu, mode: &str) -> Option<Finding> {
    let who = super::label(gpu);
    let finding = match mode {
        "prohibited" => {
            let title = format!("{who} is in prohibited compute mode: no program may compute on it");
            Finding::new("gpu.exclusive", title).status(super::stops(host, intent, gpu))
        }
        "exclusive_process" | "exclusive_thread" => {
            let holders = gpu.processes().unwrap_or_default();
            if holders.iter().any(mps::is_server) {
                return (!mps::keeps_out(host, intent)).then(|| shared_by_mps(&who));
            }
            match holders.into_iter().next() {
                Some(process) => {
                    let name = process.name.unwrap_or_else(|| "of another user".to_owned());
                    let title =
                        format!("{who} is in exclusive mode and in use by process {} ({name})", process.pid);
                    Finding::new("gpu.exclusive", title).status(super::stops(host, intent, gpu))
                }
                None => {
                    let title = format!(
                        "{who} is in exclusive mode: only one program at a time can use \
                                         it"
                    );
                    return Some(
                        Finding::new("gpu.exclusive", title)
                            .status(Status::Info)
                            .remedy("nothing, unless another program must use the card at the same time"),
                    );
                }
            }
        }
        _ => return None,
    };
    // The job has no other card, and a program that holds this one is of somebody else.
    let is_only = host.job().is_some() && host.gpus().is_ok_and(|gpus| gpus.len() == 1);
    if is_only && is_without_rights(host) && mode != "prohibited" {
        return Some(restart(host, finding));
    }
    let finding = match is_without_rights(host) {
        true => finding
            .remedy("use another GPU")
            .machine_remedy("set the compute mode back to default, unless it was chosen on purpose"),
        false => finding,
    };
    Some(finding.command(format!("sudo nvidia-smi -i {} -c 0", gpu.index)))
}
