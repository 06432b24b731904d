//! What the user of a rented container can do: choose another kind of machine, or change the definition of the job. No
//! option of `docker run` is the user's there.

use yolo_base::env::NCCL_SHM_DISABLE;

use super::start::Start;
use crate::facts::Rental;
use crate::finding::Finding;

/// The finding, with the way to get a container with `what`.
pub(crate) fn start_with(rental: Rental, finding: Finding, what: Start) -> Finding {
    let name = rental.name();
    match what {
        Start::Gpus(_) | Start::Libraries => finding.remedy(gpus(rental)),
        Start::Memory(_) | Start::Cores(_) => finding.remedy(format!(
            "choose a larger machine of {name}, or let the run do with less: fewer --workers, no --cache"
        )),
        Start::HostNetwork if rental == Rental::Runpod => finding.remedy(
            "deploy a Runpod Instant Cluster, whose pods reach each other, or rent one pod with more GPUs: a single pod has an address \
             that is internal to its machine",
        ),
        Start::HostNetwork if rental == Rental::Vast => finding.remedy(
            "rent one instance of Vast.ai with more GPUs, or a cluster with an overlay network between its instances: a single one has an \
             address that is internal to its machine",
        ),
        Start::HostNetwork if matches!(rental, Rental::SageMaker | Rental::AzureMl | Rental::Vertex) => finding.remedy(format!(
            "ask {name} for several machines in one job, which it connects to each other"
        )),
        Start::LockedMemory | Start::Numa | Start::HostNetwork | Start::Mps | Start::Infiniband => finding
            .remedy(format!("nothing: {name} decides this, so the run must make do with what is available")),
    }
}

/// The finding, with the way to more shared memory, or to do without it.
pub(crate) fn more_shared_memory(rental: Rental, finding: Finding) -> Finding {
    let name = rental.name();
    match rental {
        Rental::AzureMl => finding
            .remedy("ask for more shared memory in the resources of the job (`shm_size` of `command(…)` in Python)")
            .command("resources: { shm_size: 8g }"),
        Rental::Vast => finding
            .remedy("start an instance with this among the docker options of its template")
            .command("--shm-size=8g"),
        _ => finding
            .remedy(format!("{name} sets this size; let NCCL use sockets instead, which is slower"))
            .command(format!("export {NCCL_SHM_DISABLE}=1")),
    }
}

/// The finding, with the way to get a new container.
pub(crate) fn restart(rental: Rental, finding: Finding) -> Finding {
    finding.remedy(new_container(rental))
}

/// Another machine, whose driver is newer.
pub(crate) fn newer_driver(rental: Rental) -> &'static str {
    match rental {
        Rental::Runpod => {
            "deploy a pod on a machine with a newer driver (filter by CUDA version): only Runpod can update this one"
        }
        Rental::Vast => {
            "rent an instance with a newer driver (filter by CUDA version): only its host can update this one"
        }
        Rental::JupyterHub => "ask the administrator of the hub to update the NVIDIA driver of this node",
        _ => "start a machine of a newer kind or image: only the service can update the driver of this one",
    }
}

/// Whether a remedy has words of this file already, which say what the user can do there.
pub(super) fn says(rental: Rental, text: &str) -> bool {
    text.contains(rental.name()) || text.starts_with(new_container(rental)) || text.starts_with(gpus(rental))
}

fn new_container(rental: Rental) -> &'static str {
    match rental {
        Rental::Runpod => {
            "stop the pod and start it again; if that does not help, deploy another one, and tell Runpod about this machine"
        }
        Rental::Vast => {
            "stop the instance and start it again; if that does not help, rent another machine, and report this one"
        }
        Rental::JupyterHub => {
            "in the Hub Control Panel choose Stop My Server, then start it again; if that does not help, tell the administrator"
        }
        Rental::AzureMl | Rental::Vertex | Rental::Modal => {
            "start the job again, which gets another container"
        }
        Rental::Lightning | Rental::Paperspace | Rental::SageMaker | Rental::Databricks => {
            "stop the machine of this session in the service's menu, and start it again"
        }
    }
}

fn gpus(rental: Rental) -> &'static str {
    match rental {
        Rental::Runpod => {
            "deploy a pod with a GPU: one that was stopped can start again with none (`Start Pod with 0 GPUs`) if its machine \
             has no free one"
        }
        Rental::Vast => {
            "rent an instance with a GPU; if this one should have one, report its machine to Vast.ai"
        }
        Rental::Lightning => "switch the Studio to a machine with a GPU, in the menu on its right side",
        Rental::Paperspace => {
            "choose a machine with a GPU in the settings of the notebook, and start it again"
        }
        Rental::SageMaker => {
            "choose an instance type with a GPU, such as ml.g5.xlarge, and an image for GPUs; in Studio, stop the space first"
        }
        Rental::AzureMl => "run the job on a compute target with a GPU, with an image for CUDA",
        Rental::Vertex => "ask for a machine with an accelerator in the job, with an image for CUDA",
        Rental::Databricks => "use a cluster with GPU nodes and an ML runtime for GPUs",
        Rental::Modal => "ask for a GPU in the function's decorator: `gpu=\"A10\"`",
        Rental::JupyterHub => {
            "in the Hub Control Panel choose Stop My Server, then start it with an option that has a GPU; if none has, ask the \
             administrator"
        }
    }
}
