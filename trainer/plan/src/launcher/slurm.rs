//! The variables that Slurm's `srun` sets for each task of a step.

use yolo_base::env::{
    MASTER_ADDR, MASTER_PORT, SLURM_JOB_ID, SLURM_JOB_NODELIST, SLURM_LOCALID, SLURM_NODEID, SLURM_NTASKS,
    SLURM_NTASKS_PER_NODE, SLURM_PROCID, SLURM_STEP_ID, SLURM_STEP_NODELIST, SLURM_STEP_NUM_TASKS,
    SLURM_STEP_TASKS_PER_NODE,
};

use super::layout::Layout;
use super::name::Launcher;
use super::node_list::hosts;
use super::variables::{CHECK, Variables, missing};
use crate::error::PlanError;

const SRUN: Launcher = Launcher::Srun;

/// Ports of jobs: below those that Linux gives to outgoing connections, which start at 32768.
const FIRST_PORT: u64 = 12_000;
const PORTS: u64 = 20_000;
/// Steps of one job that run at the same time get ports that are this far apart.
const STEP_DISTANCE: u64 = 97;

/// The layout, if these variables are set.
pub(super) fn read(variables: &Variables<'_>) -> Result<Option<Layout>, PlanError> {
    let Some(rank) = variables.number(SLURM_PROCID)? else { return Ok(None) };
    // A batch script has the other variables too, as if it were task 0.
    let in_step =
        [SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST].iter().any(|name| variables.text(name).is_some());
    if !in_step {
        return Err(PlanError::usage(format!(
            "this process runs in a Slurm job but was not started by srun: {SLURM_STEP_NUM_TASKS} and \
             {SLURM_STEP_NODELIST} are not set"
        ))
        .with_hint(
            "write `srun yolo rank …` in the batch script, or `yolo train` for ranks on this machine only",
        ));
    }
    let world_size = match variables.number(SLURM_STEP_NUM_TASKS)? {
        Some(tasks) => tasks,
        None => variables.required(SLURM_NTASKS, SRUN)?,
    };
    let layout = Layout {
        launcher: SRUN,
        rank,
        local_rank: variables.required(SLURM_LOCALID, SRUN)?,
        world_size,
        local_world_size: tasks_here(variables)?,
        master_addr: master(variables)?,
        master_port: port(variables)?,
        agent_store: None,
        limits_gpus: true,
    };
    layout.checked((SLURM_PROCID, SLURM_LOCALID)).map(Some)
}

/// Tasks of the step on this node.
fn tasks_here(variables: &Variables<'_>) -> Result<usize, PlanError> {
    let Some(list) = variables.text(SLURM_STEP_TASKS_PER_NODE) else {
        let each = variables.number(SLURM_NTASKS_PER_NODE)?;
        return each.ok_or_else(|| missing(SLURM_STEP_TASKS_PER_NODE, SRUN));
    };
    let node = variables.number(SLURM_NODEID)?.unwrap_or(0);
    let invalid = || {
        PlanError::usage(format!(
            "{SLURM_STEP_TASKS_PER_NODE} is `{list}`, which is not a list of numbers for at least {} (example: 2(x3),1)",
            yolo_base::format::count(node + 1, "node")
        ))
        .with_hint(CHECK)
    };
    let mut before = 0;
    for part in list.split(',') {
        let (tasks, nodes) = repeated(part.trim()).ok_or_else(invalid)?;
        before += nodes;
        if node < before {
            return Ok(tasks);
        }
    }
    Err(invalid())
}

/// `2(x3)`: two tasks on each of three nodes; `2`: on one.
fn repeated(part: &str) -> Option<(usize, usize)> {
    let Some((tasks, nodes)) = part.split_once("(x") else { return Some((part.parse().ok()?, 1)) };
    let nodes = nodes.strip_suffix(')')?.parse::<usize>().ok()?;
    // More nodes than this are a mistake.
    (nodes <= 1 << 20).then_some(())?;
    Some((tasks.parse().ok()?, nodes))
}

/// The first host of the step, where task 0 runs, unless the user names another.
fn master(variables: &Variables<'_>) -> Result<String, PlanError> {
    if let Some(address) = variables.text(MASTER_ADDR) {
        return Ok(address);
    }
    let names = [SLURM_STEP_NODELIST, SLURM_JOB_NODELIST];
    let found = names.iter().find_map(|name| Some((*name, variables.text(name)?)));
    let (name, list) = found.ok_or_else(|| missing(SLURM_STEP_NODELIST, SRUN))?;
    let hosts = hosts(&list)
        .map_err(|why| PlanError::usage(format!("{name} is `{list}`: {why}")).with_hint(CHECK))?;
    hosts.into_iter().next().ok_or_else(|| missing(name, SRUN))
}

/// A port that is the same for all tasks of a step, and another for other jobs on the same nodes.
fn port(variables: &Variables<'_>) -> Result<u16, PlanError> {
    if let Some(port) = variables.port(MASTER_PORT)? {
        return Ok(port);
    }
    let job: u64 = variables.required(SLURM_JOB_ID, SRUN)?;
    let step: u64 = variables.number(SLURM_STEP_ID)?.unwrap_or(0);
    let offset = job.wrapping_add(step.wrapping_mul(STEP_DISTANCE)) % PORTS;
    Ok((FIRST_PORT + offset) as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn here(list: &str, node: usize) -> Result<usize, String> {
        let variable = |name: &str| match name {
            SLURM_STEP_TASKS_PER_NODE => Some(list.to_owned()),
            SLURM_NODEID => Some(node.to_string()),
            _ => None,
        };
        tasks_here(&Variables(&variable)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_tasks_of_a_node_are_found_in_the_list_of_all() {
        assert_eq!(here("4", 0), Ok(4));
        assert_eq!([0, 1, 2, 3].map(|node| here("2(x3),1", node)), [Ok(2), Ok(2), Ok(2), Ok(1)]);
        for wrong in ["", "2(x", "a", "2(x99999999999)", "2(x3)"] {
            let error = here(wrong, 3);
            assert!(error.is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn the_short_form_means_the_long_one(tasks in prop::collection::vec((1..9_usize, 1..5_usize), 1..6)) {
            let short: Vec<String> = tasks.iter().map(|(tasks, nodes)| format!("{tasks}(x{nodes})")).collect();
            let long: Vec<usize> = tasks.iter().flat_map(|&(tasks, nodes)| vec![tasks; nodes]).collect();
            for (node, tasks) in long.iter().enumerate() {
                prop_assert_eq!(here(&short.join(","), node), Ok(*tasks));
            }
            prop_assert!(here(&short.join(","), long.len()).is_err());
        }
    }
}
