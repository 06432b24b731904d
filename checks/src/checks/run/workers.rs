//! Whether there are enough CPU cores for the data loader threads: `--workers` is per rank. A batch job, a container
//! or `taskset` may leave a run a few cores of a large machine, without a message.

use yolo_base::format;

use crate::checks::{Answer, Check, cores, cores_of_machine};
use crate::facts::{Host, Job, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};
use crate::status::Status;

/// Loader threads that keep one GPU busy with decoded images; fewer may do, one does not.
const WANTED: usize = 8;

pub(super) static CHECK: Check = Check {
    question: "Are there enough CPU cores for the data loaders of all ranks?",
    reports: &["run.workers-many"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.run {
        return Ok(Vec::new());
    }
    let ranks = intent.ranks_here();
    let machine = cores_of_machine(host);
    let usable = cores(host);
    let Some(workers) = intent.workers else {
        return Ok(usable
            .zip(machine)
            .and_then(|(usable, machine)| starved(host, intent, usable, machine))
            .into_iter()
            .collect());
    };
    let usable = usable.ok_or_else(|| Unknown::because("the number of cores is unknown"))?;
    let threads = workers.saturating_mul(ranks);
    if threads <= usable {
        // The plan has fitted the workers to the cores already.
        return Ok(machine.and_then(|machine| starved(host, intent, usable, machine)).into_iter().collect());
    }
    if let Some(finding) = machine.and_then(|machine| starved(host, intent, usable, machine)) {
        return Ok(vec![finding]);
    }
    let here = match machine {
        Some(machine) => format!(
            "but this process may use only {} of this machine's {machine}",
            format::count(usable, "core")
        ),
        None if usable == 1 => "but there is only 1 core".to_owned(),
        None => format!("but there are {}", format::count(usable, "core")),
    };
    let title =
        format!("--workers {workers} creates {threads} threads for {}, {here}", format::count(ranks, "rank"));
    let finding = Finding::new("run.workers-many", title);
    let finding = match machine {
        Some(machine) => with_more_cores(host, finding, threads.min(machine)),
        None => finding,
    };
    Ok(vec![finding.options(&[format!("--workers {}", (usable / ranks).max(1))])])
}

/// A run on GPUs that has a single core for each, on a machine with many.
fn starved(host: &Host, intent: &Intent, usable: usize, machine: usize) -> Option<Finding> {
    let ranks = intent.ranks_on_gpus();
    if ranks == 0 || usable > ranks || machine < usable.saturating_mul(4) {
        return None;
    }
    let title = format!(
        "this process may use only {} of this machine's {machine}, for {}",
        format::count(usable, "core"),
        format::count(ranks, "GPU")
    );
    let finding = Finding::new("run.workers-many", title)
        .status(Status::Warning)
        .because("one core cannot load and augment images as fast as a GPU trains on them, so the GPU waits");
    Some(with_more_cores(host, finding, WANTED.saturating_mul(ranks).min(machine)))
}

/// The way to more cores: where the limit was set.
fn with_more_cores(host: &Host, finding: Finding, count: usize) -> Finding {
    match host.job() {
        Some(Job::Slurm) => finding
            .remedy(format!(
                "ask for more cores with `#SBATCH --cpus-per-task={count}`, and give the same to srun, which does not take \
                 it from sbatch; or choose fewer --workers"
            ))
            .command(format!("srun --cpus-per-task={count} …")),
        Some(Job::Pbs) => finding
            .remedy("ask the batch system for more cores, or choose fewer --workers")
            .command(format!("qsub -l select=1:ncpus={count} …")),
        Some(Job::Lsf) => finding
            .remedy("ask the batch system for more cores, or choose fewer --workers")
            .command(format!("bsub -n {count} -R \"span[hosts=1]\" …")),
        Some(job) => {
            let finding = finding.remedy("ask the batch system for more cores, or choose fewer --workers");
            match job {
                Job::GridEngine => finding.command(format!("qsub -pe smp {count} …")),
                Job::Condor => finding.command(format!("condor_submit -append 'request_cpus = {count}' …")),
                Job::Flux => finding.command(format!("flux batch -n1 -c{count} …")),
                Job::Oar => finding.command(format!("oarsub -l core={count} …")),
                _ => finding,
            }
        }
        None if host.is_container() => start_with(
            host,
            finding.remedy("start the container with more cores, or choose fewer --workers"),
            Start::Cores(count),
        ),
        None => finding.remedy(
            "start yolo without the limit on cores, which `taskset`, a systemd unit (AllowedCPUs, CPUQuota) or a parent \
             process has set, or choose fewer --workers",
        ),
    }
}
