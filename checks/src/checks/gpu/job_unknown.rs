//! A shell in a job of Slurm without the variables that name the job's cards, as after `ssh` to the node, or in a container
//! that was started with a clean environment. Every card of the node is then used, also those of other jobs, unless the
//! cluster hides them.

use yolo_base::env::CUDA_VISIBLE_DEVICES;

use super::processes;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, Job, NvmlState, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does this shell know which GPUs its batch job has?",
    reports: &["gpu.job-unknown"],
    preflight: true,
    run,
};

/// What tells a program in a job which cards it has.
const VARIABLES: [&str; 6] = [
    CUDA_VISIBLE_DEVICES,
    "SLURM_STEP_GPUS",
    "SLURM_JOB_GPUS",
    "GPU_DEVICE_ORDINAL",
    "SLURM_JOB_ID",
    "SLURM_JOBID",
];

fn run(host: &Host, intent: &Intent) -> Answer {
    let is_set = |name: &&str| host.env(name).is_ok_and(|value| value.is_some());
    if intent.cpu || host.job() != Some(Job::Slurm) || VARIABLES.iter().any(is_set) {
        return Ok(Vec::new());
    }
    let groups = host.text("/proc/self/cgroup")?.unwrap_or_default();
    let Some(job) = job_number(&groups) else { return Ok(Vec::new()) };
    if host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let gpus = host.gpus()?;
    // Where the cluster hides the cards of other jobs, the driver lists fewer than the kernel has.
    let of_kernel = host.folder("/proc/driver/nvidia/gpus").ok().flatten().map(|cards| cards.len());
    if gpus.len() < 2 || of_kernel.is_some_and(|count| count > gpus.len()) {
        return Ok(Vec::new());
    }
    let is_in_use = gpus.iter().any(|gpu| has_process_of_another(host, gpu));
    let title = format!(
        "this shell is in job {job} of Slurm, but has no variables that say which GPUs the job has: a run would use all {} of the node",
        gpus.len()
    );
    let finding = Finding::new("gpu.job-unknown", title).seen(format!(
        "the control group is that of job {job}; {CUDA_VISIBLE_DEVICES} and SLURM_JOB_ID are not set"
    ));
    let finding = if is_in_use {
        finding.seen("another user or job computes on one of them")
    } else {
        finding.status(Status::Info)
    };
    let which = format!("scontrol show job -d {job} | grep IDX  # which GPUs the job has");
    const WHOLE: &str = "if the job has all GPUs of the node, nothing is wrong";
    Ok(vec![match host.place() {
        Place::Apptainer => finding
            .because("a container that is started with --cleanenv, -C or --containall, as workflow systems do, gets no variables of the job")
            .remedy(format!(
                "pass the variable to the container, or leave those options out (Nextflow: \
                 `apptainer.envWhitelist = 'CUDA_VISIBLE_DEVICES,SLURM_JOB_ID'`); {WHOLE}"
            ))
            .command(format!("apptainer exec --nv --env {CUDA_VISIBLE_DEVICES}=${CUDA_VISIBLE_DEVICES} …")),
        Place::Machine => finding
            .because("Slurm sets the variables for what `srun` and `sbatch` start; a shell of `ssh` on the node is put into the job without them")
            .remedy(format!(
                "open a shell in the job with srun in place of ssh, or set {CUDA_VISIBLE_DEVICES} to the job's GPUs; {WHOLE}"
            ))
            .command(format!("srun --jobid={job} --overlap --pty bash"))
            .command(which),
        _ => finding
            .remedy(format!("set {CUDA_VISIBLE_DEVICES} to the job's GPUs when the container is started; {WHOLE}"))
            .command(which),
    }])
}

/// Whether a program of another user computes on this card. One whose owner is unknown may be this user's own.
fn has_process_of_another(host: &Host, gpu: &Gpu) -> bool {
    let uid = host.user().ok().and_then(|user| user.uid);
    let all = host.processes().unwrap_or_default();
    processes::computing(gpu).iter().any(|process| {
        let listed = all.iter().find(|one| u64::from(one.pid) == process.pid).and_then(|one| one.uid);
        let owner = listed.or_else(|| host.stat(&format!("/proc/{}", process.pid)).ok().flatten()?.uid);
        owner.is_some() && owner != uid
    })
}

/// `7` of `/system.slice/slurmstepd.scope/job_7/step_extern/user/task_0` and of `/slurm/uid_1000/job_7/step_0`.
fn job_number(groups: &str) -> Option<u64> {
    let paths = groups.lines().filter(|line| line.contains("/slurm"));
    let mut parts = paths.flat_map(|line| line.split('/'));
    parts.find_map(|part| part.strip_prefix("job_")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_number_of_a_job_is_in_its_control_group() {
        assert_eq!(job_number("0::/system.slice/slurmstepd.scope/job_7/step_extern/user/task_0\n"), Some(7));
        assert_eq!(job_number("3:cpu:/\n2:devices:/slurm/uid_1000/job_88/step_0\n"), Some(88));
        assert_eq!(job_number("0::/user.slice/job_7\n"), None);
        assert_eq!(job_number("0::/system.slice/slurmd.service\n"), None);
    }

    proptest! {
        #[test]
        fn any_groups_are_read(text in "(/slurm|/job_|[0-9]|\n|\\PC){0,12}") {
            let _ = job_number(&text);
        }
    }
}
