//! Whether a launcher starts `yolo train` several times on this machine: srun starts its command once for each task, torchrun
//! and mpirun once for each rank. `yolo train` starts its ranks itself, so each copy would use all GPUs.

use yolo_base::env::{
    LOCAL_WORLD_SIZE, SLURM_PROCID, SLURM_STEP_ID, SLURM_STEP_TASKS_PER_NODE, TORCHELASTIC_RUN_ID,
};

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does a launcher start the run once?",
    reports: &["run.several-tasks"],
    // Under `yolo rank`, which is started so on purpose, a run must not begin with this.
    preflight: false,
    run,
};

/// The number that Slurm gives the shell of `salloc` (`SLURM_INTERACTIVE_STEP`), which it starts once.
const INTERACTIVE_STEP: &str = "4294967290";

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.run {
        return Ok(Vec::new());
    }
    let set = |name: &str| host.env(name).ok().flatten();
    // `4(x2),1`: the first number is that of the first machines.
    let number = |name: &str| {
        let value = set(name)?;
        value.split(['(', ',']).next()?.trim().parse::<usize>().ok()
    };
    let in_step = set(SLURM_PROCID).is_some() && set(SLURM_STEP_ID).is_none_or(|id| id != INTERACTIVE_STEP);
    let launchers = [
        ("srun", number(SLURM_STEP_TASKS_PER_NODE).filter(|_| in_step), "srun --ntasks=1 yolo train …"),
        ("torchrun", number(LOCAL_WORLD_SIZE).filter(|_| set(TORCHELASTIC_RUN_ID).is_some()), "yolo train …"),
        ("mpirun", number("OMPI_COMM_WORLD_LOCAL_SIZE"), "yolo train …"),
    ];
    let several = launchers
        .into_iter()
        .find_map(|(name, count, command)| Some((name, count.filter(|&count| count > 1)?, command)));
    let Some((name, count, command)) = several else { return Ok(Vec::new()) };
    let title = format!("{name} starts its command {count} times on this machine, once for each task");
    Ok(vec![Finding::new("run.several-tasks", title).command(command)])
}
