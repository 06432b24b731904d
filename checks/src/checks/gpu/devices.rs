//! Which GPUs the machine has, and whether they include those of the run.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_of_service;
use crate::remedies::gpus_of_job::ask_for;
use crate::remedies::rented;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do the run's GPUs exist?",
    reports: &["gpu.devices", "gpu.none", "gpu.not-there"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.nvml_state()? != NvmlState::Ready {
        // The driver check reports why there is none, unless none belongs here.
        return Ok(super::outside_job::find(host, intent).into_iter().collect());
    }
    let gpus = host.gpus()?;
    if gpus.is_empty() {
        let is_reported_elsewhere =
            super::kernel_module::switched_off(host).or_else(|| super::driver_unsuited::find(host)).is_some();
        if is_reported_elsewhere || !super::lost::of_log(host).is_empty() {
            return Ok(Vec::new());
        }
        return Ok(vec![none(host, intent)]);
    }
    let mut findings: Vec<Finding> = gpus.iter().filter(|gpu| gpu.lost().is_none()).map(describe).collect();
    // The MIG check reports numbers that count the instances of a partitioned card.
    let divided = gpus.iter().any(|gpu| gpu.mig() == Ok(true));
    // If a lost card's number is unknown, so is the number of cards.
    let counted = gpus.iter().enumerate().all(|(place, gpu)| gpu.is_numbered() && gpu.index == place);
    let missing = intent.devices.iter().filter(|&&wanted| wanted >= gpus.len() && counted && !divided);
    let missing: Vec<String> = missing.map(usize::to_string).collect();
    if !missing.is_empty() {
        findings.push(not_there(host, intent, &missing, gpus.len()));
    }
    Ok(findings)
}

/// A driver without a GPU, which stops a run that uses one.
fn none(host: &Host, intent: &Intent) -> Finding {
    let numbers: Vec<String> = intent.devices.iter().map(usize::to_string).collect();
    let (title, status) = match numbers.len() {
        0 if intent.cpu => ("the NVIDIA driver works, but reports no GPU".to_owned(), Status::Info),
        0 => ("the NVIDIA driver works, but reports no GPU".to_owned(), Status::Warning),
        1 => {
            (format!("the run uses GPU {}, but the NVIDIA driver reports no GPU", numbers[0]), Status::Error)
        }
        _ => {
            let title =
                format!("the run uses GPUs {}, but the NVIDIA driver reports no GPU", numbers.join(", "));
            (title, Status::Error)
        }
    };
    let finding = Finding::new("gpu.none", title).status(status);
    if let Some(job) = host.job().filter(|_| status == Status::Error) {
        // The node has cards, which the batch system hides from a job that asked for none.
        return ask_for(job, finding, intent.devices.len()).remedy(format!(
            "ask {} for GPUs when you submit the job: it hides those that a job did not ask for",
            job.name()
        ));
    }
    if host.job().is_some() {
        return finding;
    }
    if host.is_wsl2().unwrap_or(false) {
        let finding = finding.remedy(
            "look for the card in the Device Manager of Windows: laptops switch the discrete GPU off in Eco or \
             battery modes; switch it on, then shut WSL down from Windows",
        );
        return finding.command("wsl.exe --shutdown");
    }
    // The driver's message for a card that it could not initialize.
    let failed = host.kernel_lines(&super::uninitialized::FAILED);
    let finding = match failed.is_empty() {
        true => finding,
        false => could_not_start(host, finding),
    };
    let finding = failed.into_iter().take(2).fold(finding, Finding::seen);
    if let Some(finding) = super::uninitialized::explained(host, finding.clone(), None) {
        return finding;
    }
    match host.batch_system() {
        _ if status != Status::Error => finding,
        Some(system) => super::outside_job::submit(host, system, finding, intent.devices.len()),
        None => finding.command("yolo train --device cpu …"),
    }
}

/// The driver found the only card there is, and could not start it.
fn could_not_start(host: &Host, finding: Finding) -> Finding {
    let finding = finding.because("the driver found a card but could not initialize it");
    if is_of_service(host) {
        return match host.rental() {
            Some(rental) => rented::restart(rental, finding),
            None => finding.remedy("start a new session, which gets another machine"),
        };
    }
    finding.remedy("train on the CPU until the card works").machine_remedy(
        "switch the machine off for a minute and start it again; if the card fails again, check its seat, its power cables \
         and the firmware's PCIe settings, and try another version of the driver; in a virtual machine, look at how the host \
         passes the card on",
    )
}

fn not_there(host: &Host, intent: &Intent, missing: &[String], there: usize) -> Finding {
    let (word, verb) = if missing.len() == 1 { ("GPU", "does") } else { ("GPUs", "do") };
    let numbers = if there == 1 { "0".to_owned() } else { format!("0 to {}", there - 1) };
    let whose = if host.job().is_some() { "job" } else { "machine" };
    let title = format!(
        "{word} {} {verb} not exist: this {whose} has {}, numbered {numbers}",
        missing.join(", "),
        format::count(there, "GPU")
    );
    let finding = Finding::new("gpu.not-there", title);
    let Some(job) = host.job() else { return finding };
    let count = intent.devices.len();
    match host.env("SLURM_GPU_BIND").ok().flatten() {
        // Each task of the step sees its own card; `yolo` starts the ranks itself.
        Some(bind) => finding
            .seen(format!("SLURM_GPU_BIND={bind} gives each task of this step its own GPUs"))
            .remedy("start one task that gets all GPUs: yolo starts a rank for each of them")
            .command(format!("srun --ntasks=1 --gpus={count} --gpu-bind=none …")),
        None => ask_for(job, finding, count).remedy(format!(
            "use GPUs that this job has, or ask {} for {count} when you submit it",
            job.name()
        )),
    }
}

fn describe(gpu: &Gpu) -> Finding {
    let name = gpu.name().unwrap_or_else(|_| "with unknown name".to_owned());
    let memory = gpu.memory().map_or(String::new(), |memory| format!(", {}", format::memory(memory.total)));
    let capability = gpu
        .capability()
        .map_or(String::new(), |(major, minor)| format!(", compute capability {major}.{minor}"));
    Finding::ok("gpu.devices", format!("GPU {}: {name}{memory}{capability}", gpu.index))
}
