//! Whether a GPU is partitioned into MIG instances. A process can use one instance, and NCCL does
//! not connect ranks on several, so a run on several GPUs needs whole ones, or names instances.

use yolo_base::format;

use super::mig_files;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Are GPUs partitioned into MIG instances?",
    reports: &["gpu.mig"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let gpus = super::of_run(host, intent)?;
    let divided =
        gpus.iter().filter(|gpu| gpu.mig() == Ok(true)).map(|gpu| divided(host, intent, gpu, gpus.len()));
    Ok(super::merge::merge_alike(divided.collect()))
}

fn divided(host: &Host, intent: &Intent, gpu: &Gpu, cards: usize) -> Finding {
    let who = super::label(gpu);
    let whole = format!("sudo nvidia-smi -i {} -mig 0", gpu.index);
    let instances = gpu.mig_instances().ok();
    if instances == Some(0) {
        return mig_files::without_instance(host, gpu, &who).status(super::stops(host, intent, gpu));
    }
    let parts = instances.map_or("instances".to_owned(), |number| format::count(number as usize, "instance"));
    let title = format!("{who} is partitioned into {parts} (MIG); a rank uses only one of them");
    let finding = Finding::new("gpu.mig", title);
    // One rank on one instance is a normal use.
    let several = !intent.mig && (intent.devices.len() > 1 || intent.ranks_here() > 1);
    let finding = match (several, intent.run || !intent.devices.is_empty()) {
        (true, _) => finding.status(Status::Error),
        (false, false) if cards > 1 => finding.status(Status::Warning),
        (false, _) => finding.status(Status::Info),
    };
    if finding.status == Status::Info && intent.run {
        return finding.remedy(if intent.mig {
            "nothing: this run names its instances"
        } else {
            "nothing: this run has only one rank"
        });
    }
    finding
        .remedy("name instances in --device, whose UUIDs `nvidia-smi -L` lists")
        .machine_remedy(
            "turn MIG off for whole GPUs: this deletes all instances of the card, so first make sure that nobody uses them",
        )
        .command(whole)
}
