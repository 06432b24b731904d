//! The variables of torchrun (`python -m torch.distributed.run`), and those of Kubernetes' PyTorchJob and
//! TrainJob, which have the same names where one process runs in each pod.

use yolo_base::env::{
    KUBERNETES_SERVICE_HOST, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, PET_MASTER_ADDR,
    PET_MASTER_PORT, PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, RANK, TORCHELASTIC_RESTART_COUNT,
    TORCHELASTIC_RUN_ID, TORCHELASTIC_USE_AGENT_STORE, WORLD_SIZE,
};

use super::layout::Layout;
use super::name::Launcher;
use super::variables::{Variables, missing};
use crate::error::PlanError;

/// The variables by which torchrun in a pod of Kubernetes would be configured.
const OF_PODS: [&str; 5] = [PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, PET_MASTER_ADDR, PET_MASTER_PORT];

/// The layout, if these variables are set.
pub(super) fn read(variables: &Variables<'_>) -> Result<Option<Layout>, PlanError> {
    match variables.number(RANK)? {
        Some(rank) => with_rank(variables, rank)?.checked((RANK, LOCAL_RANK)).map(Some),
        None => match variables.number(PET_NODE_RANK)? {
            Some(rank) => of_pod(variables, rank)?.checked((PET_NODE_RANK, LOCAL_RANK)).map(Some),
            None => Ok(None),
        },
    }
}

/// `RANK` is set: by torchrun, which also numbers the ranks of a machine, or by PyTorchJob or a person, who do not.
fn with_rank(variables: &Variables<'_>, rank: usize) -> Result<Layout, PlanError> {
    let local = (variables.number(LOCAL_RANK)?, variables.number(LOCAL_WORLD_SIZE)?);
    let (launcher, local_rank, local_world_size) = match local {
        (Some(rank), Some(size)) => (Launcher::Torchrun, rank, size),
        (None, None) => {
            one_process(variables)?;
            let is_pod =
                OF_PODS.iter().chain([&KUBERNETES_SERVICE_HOST]).any(|name| variables.text(name).is_some());
            (if is_pod { Launcher::Kubernetes } else { Launcher::Unknown }, 0, 1)
        }
        (Some(_), None) => return Err(missing(LOCAL_WORLD_SIZE, Launcher::Torchrun)),
        (None, Some(_)) => return Err(missing(LOCAL_RANK, Launcher::Torchrun)),
    };
    let agent = variables.text(TORCHELASTIC_USE_AGENT_STORE).is_some_and(|value| is_true(&value));
    let agent_store = agent.then(|| {
        // After a restart, the store still has the keys of the start before.
        let run = variables.text(TORCHELASTIC_RUN_ID).unwrap_or_default();
        let restart = variables.text(TORCHELASTIC_RESTART_COUNT).unwrap_or_default();
        format!("yolo/{run}/{restart}")
    });
    Ok(Layout {
        launcher,
        rank,
        local_rank,
        world_size: variables.required(WORLD_SIZE, launcher)?,
        local_world_size,
        master_addr: variables.text(MASTER_ADDR).ok_or_else(|| missing(MASTER_ADDR, launcher))?,
        master_port: variables.port(MASTER_PORT)?.ok_or_else(|| missing(MASTER_PORT, launcher))?,
        agent_store,
        limits_gpus: launcher != Launcher::Torchrun,
    })
}

/// Only the variables by which torchrun in a pod would be configured are set: each pod is one rank.
fn of_pod(variables: &Variables<'_>, rank: usize) -> Result<Layout, PlanError> {
    const KUBERNETES: Launcher = Launcher::Kubernetes;
    one_process(variables)?;
    let address = variables.text(PET_MASTER_ADDR).ok_or_else(|| missing(PET_MASTER_ADDR, KUBERNETES))?;
    let port = variables.port(PET_MASTER_PORT)?.ok_or_else(|| missing(PET_MASTER_PORT, KUBERNETES))?;
    Ok(Layout {
        launcher: KUBERNETES,
        rank,
        local_rank: 0,
        world_size: variables.required(PET_NNODES, KUBERNETES)?,
        local_world_size: 1,
        master_addr: address,
        master_port: port,
        agent_store: None,
        limits_gpus: true,
    })
}

/// Refuses a pod that should run several ranks: this process would be only one of them.
fn one_process(variables: &Variables<'_>) -> Result<(), PlanError> {
    let processes = variables.text(PET_NPROC_PER_NODE).unwrap_or_default();
    match processes.parse::<usize>() {
        Ok(several) if several > 1 => Err(PlanError::usage(format!(
            "{PET_NPROC_PER_NODE} is {several}, so each pod has {several} ranks, but `yolo rank` is one rank"
        ))
        .with_hint(
            "start `torchrun --no-python yolo rank …` in the pod, which reads these variables, or one process per pod",
        )),
        // `auto`, `gpu` and `cpu` leave the number to torchrun, which is not used here.
        _ => Ok(()),
    }
}

/// As PyTorch reads it.
fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value == "1"
}
