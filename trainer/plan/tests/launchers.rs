//! The variables of launchers, as they set them, and what is said if one is missing or wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use yolo_base::Hint as _;
use yolo_plan::PlanError;
use yolo_plan::launcher::{Launcher, Layout};

/// Rank 3 of `torchrun --nnodes 2 --nproc-per-node 2`, with the variables of PyTorch 2.11.
const TORCHRUN: &str = "RANK=3 LOCAL_RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 MASTER_ADDR=lab-1 \
                        MASTER_PORT=29400 TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RESTART_COUNT=0 \
                        TORCHELASTIC_MAX_RESTARTS=3 TORCHELASTIC_RUN_ID=7d1f";

/// The same rank of `srun --nodes 2 --ntasks-per-node 2`.
const SRUN: &str = "SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 \
                    SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_STEP_NODELIST=gpu[07-08] SLURM_JOB_NODELIST=gpu[05-08] \
                    SLURM_JOB_ID=4711 SLURM_STEP_ID=0";

/// Pod 1 of a PyTorchJob with one master and one worker.
const PYTORCHJOB: &str = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=detector-master-0 MASTER_PORT=23456 PYTHONUNBUFFERED=1 \
                          PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=auto";

/// Pod 1 of a TrainJob, which sets only the variables of torchrun's options.
const TRAINJOB: &str = "PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=1 PET_MASTER_ADDR=detector-node-0-0.detector \
                        PET_MASTER_PORT=29500";

/// Reads variables, without those in `except`; `more` replaces some.
fn read(variables: &str, more: &str, except: &str) -> Result<Layout, PlanError> {
    let pairs = variables.split_whitespace().chain(more.split_whitespace());
    let mut all: BTreeMap<&str, &str> = pairs.map(|pair| pair.split_once('=').unwrap()).collect();
    all.remove(except);
    Layout::read(&|name| all.get(name).map(|value| (*value).to_owned()))
}

fn error(variables: &str, more: &str, except: &str) -> String {
    read(variables, more, except).unwrap_err().to_string()
}

fn numbers(layout: &Layout) -> (usize, usize, usize, usize) {
    (layout.rank, layout.local_rank, layout.world_size, layout.local_world_size)
}

#[test]
fn torchrun_serves_the_store() {
    let layout = read(TORCHRUN, "", "").unwrap();
    assert_eq!(numbers(&layout), (3, 1, 4, 2));
    assert_eq!((layout.master_addr.as_str(), layout.master_port), ("lab-1", 29400));
    assert_eq!(layout.agent_store.as_deref(), Some("yolo/7d1f/0"));
    let restarted = read(TORCHRUN, "TORCHELASTIC_RESTART_COUNT=1", "").unwrap();
    assert_ne!(restarted.agent_store, layout.agent_store, "the keys of the start before are still there");
    // With a static rendezvous of its own, rank 0 serves the store.
    for agent in ["TORCHELASTIC_USE_AGENT_STORE=False", "TORCHELASTIC_USE_AGENT_STORE=0"] {
        assert_eq!(read(TORCHRUN, agent, "").unwrap().agent_store, None);
    }
}

#[test]
fn torchrun_under_slurm_is_torchrun() {
    assert_eq!(read(SRUN, TORCHRUN, "").unwrap().launcher, Launcher::Torchrun);
}

#[test]
fn slurm_names_the_first_node_of_the_step() {
    let layout = read(SRUN, "", "").unwrap();
    assert_eq!(numbers(&layout), (3, 1, 4, 2));
    assert_eq!((layout.master_addr.as_str(), layout.master_port), ("gpu07", 12_000 + 4711));
    assert_eq!(layout.agent_store, None);
    assert!((12_000..32_000).contains(&read(SRUN, "SLURM_JOB_ID=98765432109", "").unwrap().master_port));
    let step = read(SRUN, "SLURM_STEP_ID=1", "").unwrap();
    assert_ne!(step.master_port, layout.master_port, "steps can run at the same time");
    let own = read(SRUN, "MASTER_ADDR=10.0.0.7 MASTER_PORT=29501", "").unwrap();
    assert_eq!((own.master_addr.as_str(), own.master_port), ("10.0.0.7", 29501));
    let job = read(SRUN, "", "SLURM_STEP_NODELIST").unwrap();
    assert_eq!(job.master_addr, "gpu05", "older versions know only the nodes of the job");
    let each = read(SRUN, "SLURM_NTASKS_PER_NODE=2", "SLURM_STEP_TASKS_PER_NODE").unwrap();
    assert_eq!(numbers(&each), (3, 1, 4, 2));
}

#[test]
fn kubernetes_has_one_rank_per_pod() {
    let job = read(PYTORCHJOB, "", "").unwrap();
    assert_eq!(numbers(&job), (1, 0, 2, 1));
    assert_eq!((job.master_addr.as_str(), job.master_port), ("detector-master-0", 23456));
    let job = read(TRAINJOB, "", "").unwrap();
    assert_eq!(numbers(&job), (1, 0, 2, 1));
    assert_eq!((job.master_addr.as_str(), job.master_port), ("detector-node-0-0.detector", 29500));
    assert_eq!(job.launcher, Launcher::Kubernetes);
    for variables in [PYTORCHJOB, TRAINJOB] {
        let several = read(variables, "PET_NPROC_PER_NODE=4", "").unwrap_err();
        assert!(several.to_string().contains("PET_NPROC_PER_NODE is 4"), "{several}");
        assert!(several.hint().unwrap().contains("torchrun --no-python yolo rank"));
    }
}

#[test]
fn kubernetes_is_named_only_in_a_pod() {
    const BY_HAND: &str = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=lab-1 MASTER_PORT=29500";
    for (more, launcher) in [
        ("", Launcher::Unknown),
        ("KUBERNETES_SERVICE_HOST=10.0.0.1", Launcher::Kubernetes),
        ("PET_NPROC_PER_NODE=auto", Launcher::Kubernetes),
        ("LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", Launcher::Torchrun),
    ] {
        assert_eq!(read(BY_HAND, more, "").unwrap().launcher, launcher, "{more}");
    }
    assert_eq!(
        error(BY_HAND, "", "WORLD_SIZE"),
        "WORLD_SIZE is not set, which the launcher sets for each process"
    );
}

#[test]
fn a_variable_that_is_missing_is_named() {
    for (variables, name) in [
        (TORCHRUN, "LOCAL_RANK"),
        (TORCHRUN, "WORLD_SIZE"),
        (TORCHRUN, "LOCAL_WORLD_SIZE"),
        (TORCHRUN, "MASTER_ADDR"),
        (TORCHRUN, "MASTER_PORT"),
        (SRUN, "SLURM_LOCALID"),
        (SRUN, "SLURM_JOB_ID"),
        (SRUN, "SLURM_STEP_TASKS_PER_NODE"),
        (PYTORCHJOB, "WORLD_SIZE"),
        (PYTORCHJOB, "MASTER_ADDR"),
        (TRAINJOB, "PET_NNODES"),
        (TRAINJOB, "PET_MASTER_PORT"),
    ] {
        let error = error(variables, "", name);
        assert!(error.starts_with(&format!("{name} is not set")), "{name}: {error}");
    }
}

#[test]
fn a_variable_that_is_wrong_is_named_with_its_value() {
    for (variables, wrong, words) in [
        (TORCHRUN, "RANK=x", "RANK is `x`, which is not a number"),
        (TORCHRUN, "MASTER_PORT=70000", "MASTER_PORT is `70000`, which is not a port"),
        (TORCHRUN, "RANK=4", "RANK is 4, but there are 4 ranks in the run, numbered from 0"),
        (TORCHRUN, "LOCAL_WORLD_SIZE=9", "this machine has 9 ranks, but the whole run has only 4"),
        (SRUN, "SLURM_LOCALID=9", "SLURM_LOCALID is 9, but there are "),
        (SRUN, "SLURM_STEP_NODELIST=gpu[07-", "SLURM_STEP_NODELIST is `gpu[07-`: a bracket is not closed"),
        (SRUN, "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_STEP_TASKS_PER_NODE is `2`"),
    ] {
        let error = read(variables, wrong, "").unwrap_err();
        assert!(error.to_string().contains(words), "{wrong}: {error}");
        assert!(error.is_usage() && error.hint().is_some(), "{wrong}: {error:?}");
    }
    let rank = read(TORCHRUN, "RANK=4", "").unwrap_err();
    assert_eq!(rank.hint().unwrap(), "give each process another number in RANK, from 0 to 3");
}

#[test]
fn a_process_that_no_launcher_started_is_told_what_to_run() {
    let nobody = read("", "", "").unwrap_err();
    assert!(nobody.to_string().starts_with("no launcher has started this process"), "{nobody}");
    assert!(nobody.hint().unwrap().contains("yolo train --device 0,1"));
    // What a batch script itself has.
    let batch = "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=4 SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=gpu[07-08]";
    let script = read(batch, "", "").unwrap_err();
    assert!(script.to_string().contains("was not started by srun"), "{script}");
    assert!(script.hint().unwrap().contains("srun yolo rank"));
}
