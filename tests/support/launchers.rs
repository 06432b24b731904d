//! Ranks as launchers start them: the variables of torchrun, Slurm and Kubernetes, and `yolo rank` with them.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use super::user::{Finished, Running, TRAIN, User, free_port};

/// The variables of one process, by name.
pub type Variables = Vec<(&'static str, String)>;

/// How long ranks wait for each other: if one fails before it has met the others, the test must not take the 15 minutes
/// that they wait by default.
pub const WAIT: (&str, &str) = ("YOLO_JOIN_SECONDS", "180");

/// What torchrun sets, without its store.
pub fn torchrun(rank: usize, world: usize, port: u16) -> Variables {
    vec![
        ("RANK", rank.to_string()),
        ("LOCAL_RANK", rank.to_string()),
        ("WORLD_SIZE", world.to_string()),
        ("LOCAL_WORLD_SIZE", world.to_string()),
        ("MASTER_ADDR", "127.0.0.1".to_owned()),
        ("MASTER_PORT", port.to_string()),
    ]
}

/// What `srun` sets for tasks on one node.
pub fn srun(rank: usize, world: usize, port: u16) -> Variables {
    vec![
        ("SLURM_PROCID", rank.to_string()),
        ("SLURM_LOCALID", rank.to_string()),
        ("SLURM_NODEID", "0".to_owned()),
        ("SLURM_STEP_NUM_TASKS", world.to_string()),
        ("SLURM_STEP_TASKS_PER_NODE", world.to_string()),
        ("SLURM_STEP_NODELIST", "localhost,node[01-03]".to_owned()),
        ("SLURM_JOB_ID", "4711".to_owned()),
        ("SLURM_STEP_ID", "0".to_owned()),
        // Tests of several users may run at the same time on one machine.
        ("MASTER_PORT", port.to_string()),
    ]
}

/// What PyTorchJob sets in each pod. Here, all pods are on this machine.
pub fn pytorchjob(rank: usize, world: usize, port: u16) -> Variables {
    vec![
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", world.to_string()),
        ("MASTER_ADDR", "localhost".to_owned()),
        ("MASTER_PORT", port.to_string()),
        ("PET_NNODES", world.to_string()),
        ("PET_NPROC_PER_NODE", "auto".to_owned()),
    ]
}

/// The arguments of `yolo rank` for a short run.
pub fn arguments(options: &str) -> String {
    format!("{} --noplots {options}", TRAIN.replacen("train", "rank", 1))
}

/// Starts a rank with these variables.
pub fn start(user: &User, arguments: &str, variables: &Variables) -> Running {
    let given = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let variables: Vec<(&str, &str)> = std::iter::once(WAIT).chain(given).collect();
    user.start_with(arguments, &variables)
}

/// Runs these ranks of a run with equal arguments to their end.
pub fn run_all(user: &User, arguments: &str, all: Vec<Variables>) -> Vec<Finished> {
    let running: Vec<Running> = all.iter().map(|variables| start(user, arguments, variables)).collect();
    running.into_iter().map(Running::wait).collect()
}

/// Runs the ranks of a short run that a launcher starts to their end.
pub fn launched(
    user: &User,
    options: &str,
    world: usize,
    launcher: impl Fn(usize, usize, u16) -> Variables,
) -> Vec<Finished> {
    let port = free_port();
    run_all(user, &arguments(options), (0..world).map(|rank| launcher(rank, world, port)).collect())
}

/// The run folders of a user.
pub fn runs(user: &User) -> Vec<String> {
    let folder = std::fs::read_dir(user.path().join("runs/train")).into_iter().flatten();
    folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
