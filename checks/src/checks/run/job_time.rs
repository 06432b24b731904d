//! Whether a batch job ends soon. Slurm says when in a variable, and ends the job then, whatever runs in it.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does this batch job last long enough?",
    reports: &["run.job-ends"],
    preflight: true,
    run,
};

/// Hardly any run is shorter than this.
const SHORT: u64 = 15 * 60;
const NOTABLE: u64 = 2 * 3600;

fn run(host: &Host, intent: &Intent) -> Answer {
    let end = host.env("SLURM_JOB_END_TIME").ok().flatten().and_then(|time| time.trim().parse::<u64>().ok());
    let Some(end) = end.filter(|_| intent.run) else { return Ok(Vec::new()) };
    let left = end.saturating_sub(host.time()?);
    if left > NOTABLE {
        return Ok(Vec::new());
    }
    let title =
        format!("this job ends in {}", format::count(usize::try_from(left / 60).unwrap_or(0), "minute"));
    let status = if left < SHORT { Status::Warning } else { Status::Info };
    Ok(vec![Finding::new("run.job-ends", title).status(status).command("sbatch --time=1-00:00:00 …")])
}
