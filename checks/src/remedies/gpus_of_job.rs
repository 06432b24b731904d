//! Asking a batch system for GPUs. It chooses the cards of a job and hides the others, so a variable such
//! as CUDA_VISIBLE_DEVICES must not be changed inside a job: the hidden cards belong to somebody else.

use crate::facts::Job;
use crate::finding::Finding;

/// The finding, with how the next job asks for `count` GPUs.
pub(crate) fn ask_for(job: Job, finding: Finding, count: usize) -> Finding {
    let count = count.max(1);
    let finding = finding.remedy(format!(
        "{} chose the GPUs of this job, so leave the variable as it is: ask for GPUs when you submit the job",
        job.name()
    ));
    finding.command(match job {
        Job::Slurm => format!("sbatch --gres=gpu:{count} …"),
        Job::Pbs => format!("qsub -l select=1:ngpus={count} …"),
        Job::Lsf => format!("bsub -gpu num={count} …"),
        Job::GridEngine => format!("qsub -l gpu={count} …"),
        Job::Oar => format!("oarsub -l gpu={count} …"),
        Job::Condor => format!("condor_submit -append 'request_gpus = {count}' …"),
    })
}
