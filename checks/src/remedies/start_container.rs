//! Starting a container in another way: the option of the program that starts containers of this kind. A
//! notebook service starts its own, so its user chooses another kind of session at most.

use super::fit::is_of_service;
pub(crate) use super::start::Start;
use super::{lxc, rented};
use crate::facts::{Host, Place, Workshop};
use crate::finding::Finding;

/// The finding, with the way to start this container with `what`.
pub(crate) fn start_with(host: &Host, finding: Finding, what: Start) -> Finding {
    if let Some(rental) = host.rental() {
        return rented::start_with(rental, finding, what);
    }
    let docker = docker_option(what);
    if let Some(workshop) = host.workshop() {
        return of_workshop(&workshop, finding, what, &docker);
    }
    match host.place() {
        Place::Docker | Place::DockerInWsl => of_docker(host, finding, what, &docker),
        Place::Podman => of_podman(finding, what, &docker),
        Place::Apptainer => of_apptainer(finding, what),
        Place::Enroot => of_enroot(finding, what),
        Place::Pod => of_pod(host, finding, what),
        Place::Lxc => of_lxc(host, finding, what),
        Place::Colab if matches!(what, Start::Gpus(_) | Start::Libraries) => {
            finding.remedy(
                "choose a GPU in the notebook's menu: Runtime, Change runtime type; if Colab offers none, the free quota is used \
                 up: wait up to a day, or buy compute units",
            )
        }
        Place::Kaggle if matches!(what, Start::Gpus(_) | Start::Libraries) => {
            finding.remedy(
                "choose a GPU in the notebook's menu: Settings, Accelerator; if it offers none, the quota of this week is used \
                 up, or the account's phone number is not verified",
            )
        }
        Place::Colab | Place::Kaggle => {
            finding.remedy("nothing: the service decides this, so the run must make do with what is available")
        }
        Place::Machine | Place::Wsl | Place::Windows | Place::Mac => finding,
    }
}

/// How Compose gives a service the GPUs.
const OF_COMPOSE: &str = "deploy: { resources: { reservations: { devices: [{ driver: nvidia, count: all, capabilities: [gpu] }] } } }";

/// VS Code starts its containers itself, with the options that a file names, and Compose those of its services.
fn of_docker(host: &Host, finding: Finding, what: Start, docker: &str) -> Finding {
    let is_set = |name: &&str| host.env(name).is_ok_and(|value| value.is_some());
    if ["REMOTE_CONTAINERS", "REMOTE_CONTAINERS_IPC", "DEVCONTAINER"].iter().any(is_set) {
        let options: Vec<String> = docker.split(' ').map(|option| format!("\"{option}\"")).collect();
        let finding = finding
            .remedy(
                "add the options to devcontainer.json, and choose `Dev Containers: Rebuild Container` in VS Code; if the \
                 container does not start then, its host lacks the NVIDIA Container Toolkit",
            )
            .command(format!("\"runArgs\": [{}]", options.join(", ")));
        let working = host.places().ok().and_then(|places| places.working).unwrap_or_default();
        let settings = host.text(&format!("{working}/.devcontainer/devcontainer.json")).ok().flatten();
        let is_optional = |text: &String| {
            text.split_once("\"hostRequirements\"").is_some_and(|(_, rest)| {
                rest.split('}').next().is_some_and(|inside| inside.contains("\"optional\""))
            })
        };
        let finding = if settings.as_ref().is_some_and(is_optional) {
            finding.seen(
                "devcontainer.json has `\"hostRequirements\": { \"gpu\": \"optional\" }`, which is ignored on Windows and with compose files",
            )
        } else {
            finding
        };
        return match what {
            Start::Gpus(_) => {
                finding.command(format!("{OF_COMPOSE}  # if devcontainer.json names a compose file, in that"))
            }
            _ => finding,
        };
    }
    let finding = finding.command(format!("docker run {docker} …"));
    match what {
        Start::Gpus(_) => finding.command(format!("{OF_COMPOSE}  # in a compose file")),
        _ => finding,
    }
}

fn docker_option(what: Start) -> String {
    match what {
        Start::Gpus(_) => "--gpus all --ipc=host".to_owned(),
        Start::Libraries => "--gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility".to_owned(),
        Start::LockedMemory => "--ulimit memlock=-1 --ulimit stack=67108864".to_owned(),
        Start::Numa => "--cap-add SYS_NICE".to_owned(),
        Start::HostNetwork => "--network host".to_owned(),
        Start::Memory(gib) => format!("--memory={gib}g"),
        Start::Cores(count) => format!("--cpus={count}"),
        Start::Infiniband => {
            "--network host --device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1".to_owned()
        }
        Start::Mps => "--gpus all --ipc=host -v /tmp/nvidia-mps:/tmp/nvidia-mps".to_owned(),
    }
}

/// The finding, with the way to start this container with an instance of a card in MIG mode.
pub(crate) fn restart_with_instance(host: &Host, finding: Finding) -> Finding {
    let instance = host
        .env("NVIDIA_VISIBLE_DEVICES")
        .ok()
        .flatten()
        .filter(|named| named.starts_with("MIG-"))
        .unwrap_or("MIG-…".to_owned());
    if is_of_service(host) {
        return finding
            .remedy("start a new session or another machine: only the service can repair this one");
    }
    match host.place() {
        Place::Pod => finding.remedy(
            "tell the cluster's administrator: NVIDIA's GPU Operator or device plugin has to give the pod the instance's \
             device files, which it does with CDI (`cdi.enabled=true`); then delete the pod, so that it is started again",
        ),
        Place::Docker | Place::DockerInWsl => finding
            .remedy("start the container with the instance; `nvidia-smi -L` on the host shows its name")
            .command(format!("docker run --gpus '\"device={instance}\"' …")),
        Place::Podman => finding
            .remedy(
                "generate the CDI specification again, which names the instances that exist, and start the container with \
                 one; `nvidia-ctk cdi list` on the host shows them",
            )
            .command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml  # on the host")
            .command("podman run --device nvidia.com/gpu=<card>:<instance> …"),
        _ => finding.remedy(
            "have the device files of the instance made on the host (`nvidia-modprobe -f FILE`, with the files named \
             above), and start the container with them",
        ),
    }
}

/// Distrobox and Toolbx start their containers themselves, with the devices of the host; the driver's libraries come along
/// only if they are told, or find a driver that works.
fn of_workshop(workshop: &Workshop, finding: Finding, what: Start, docker: &str) -> Finding {
    let is_for_gpus = matches!(what, Start::Gpus(_) | Start::Libraries);
    match workshop {
        Workshop::Distrobox(name) if is_for_gpus => finding
            .because(
                "Distrobox shows its containers the device files of the host, and the driver's libraries only if they were made \
                 with `--nvidia`",
            )
            .remedy(
                "make a copy of this container with the driver of the host, on which nvidia-smi has to work, and enter it; the home \
                 folder is the same in both, and the old one can then be removed (`distrobox rm`)",
            )
            .command(format!("distrobox stop {name}  # on the host"))
            .command(format!("distrobox create --nvidia --clone {name} --name {name}-nvidia  # on the host"))
            .command(format!("distrobox enter {name}-nvidia  # on the host")),
        Workshop::Distrobox(name) => finding
            .remedy("make a copy of this container with the options, and enter it")
            .command(format!("distrobox stop {name}  # on the host"))
            .command(format!(
                "distrobox create --clone {name} --name {name}-copy --additional-flags \"{docker}\"  # on the host"
            )),
        Workshop::Toolbx(name) if is_for_gpus => finding
            .because(
                "Toolbx shows its containers the device files of the host, and from version 0.1 on also the driver's libraries, if \
                 the driver works when the container is entered",
            )
            .remedy(
                "make sure that nvidia-smi works on the host and that Toolbx there has version 0.1 or later (Fedora 41 has it), \
                 then stop \
                 the container and enter it again",
            )
            .command("toolbox --version  # on the host")
            .command(format!("podman stop {name}  # on the host"))
            .command(format!("toolbox enter {name}  # on the host")),
        Workshop::Toolbx(_) => finding.remedy(format!(
            "start the run in a container of Podman instead, for which options can be chosen: Toolbx has none for this \
             (`podman run {docker} …`)"
        )),
    }
}

fn of_podman(finding: Finding, what: Start, docker: &str) -> Finding {
    let command = format!("podman run {} …", podman_option(what, docker));
    if !matches!(what, Start::Gpus(_)) {
        return finding.command(command);
    }
    finding
        .remedy(
            "start the container with the GPUs; if Podman does not know the device, install the NVIDIA Container Toolkit on \
             the host and generate its CDI specification first",
        )
        .command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml  # on the host")
        .command(command)
        .command("devices: [\"nvidia.com/gpu=all\"]  # in a compose file; podman-compose ignores `deploy`")
}

/// Podman takes GPUs by their CDI names, the rest as Docker does.
fn podman_option(what: Start, docker: &str) -> String {
    match what {
        Start::Gpus(_) => "--device nvidia.com/gpu=all --ipc=host".to_owned(),
        Start::Libraries => {
            "--device nvidia.com/gpu=all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility".to_owned()
        }
        Start::Mps => "--device nvidia.com/gpu=all --ipc=host -v /tmp/nvidia-mps:/tmp/nvidia-mps".to_owned(),
        _ => docker.to_owned(),
    }
}

/// Apptainer's containers have the limits, the network and the memory of the shell that starts them.
fn of_apptainer(finding: Finding, what: Start) -> Finding {
    match what {
        Start::Gpus(_) | Start::Libraries => finding.command("apptainer exec --nv …"),
        Start::LockedMemory => finding.command("ulimit -l unlimited"),
        Start::Mps => finding.command("apptainer exec --nv --bind /tmp/nvidia-mps …"),
        Start::Infiniband => finding
            .remedy("start the container without options that hide the host's devices, such as --contain and --containall"),
        Start::Numa | Start::HostNetwork | Start::Memory(_) | Start::Cores(_) => finding,
    }
}

/// Enroot mounts cards and libraries only if this variable says so, which images for CUDA set by themselves.
fn of_enroot(finding: Finding, what: Start) -> Finding {
    const VARIABLES: &str = "NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    match what {
        Start::Gpus(_) | Start::Libraries => finding
            .because(
                "Enroot mounts the driver of the node only if NVIDIA_VISIBLE_DEVICES is set, as images for CUDA do by \
                 themselves and plain images do not",
            )
            .remedy(
                "set the variables when the container is started, in the job or with Enroot alone; with Pyxis, name them in --container-env \
                 as well: otherwise the values of the image, such as `void`, replace those of the job",
            )
            .command(format!(
                "{VARIABLES} srun --gres=gpu:1 --container-env=NVIDIA_VISIBLE_DEVICES,NVIDIA_DRIVER_CAPABILITIES --container-image=… …"
            ))
            .command("enroot start --env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility …"),
        Start::LockedMemory => finding.command("ulimit -l unlimited"),
        Start::Infiniband => finding
            .remedy(
                "set MELLANOX_VISIBLE_DEVICES=all when the container is started, which mounts the adapters of the node; with Pyxis, \
                 --container-env lets the value of the job replace that of the image",
            )
            .command("MELLANOX_VISIBLE_DEVICES=all srun --container-env=MELLANOX_VISIBLE_DEVICES --container-image=… …"),
        Start::Numa | Start::HostNetwork | Start::Memory(_) | Start::Cores(_) | Start::Mps => finding,
    }
}

fn of_pod(host: &Host, finding: Finding, what: Start) -> Finding {
    match what {
        Start::Gpus(_) | Start::Libraries => {
            let count = if let Start::Gpus(count) = what { count.max(1) } else { 1 };
            finding
                .remedy("request GPUs in the pod's container (resources.limits), on a node with NVIDIA's device plugin")
                .command(format!("resources: {{ limits: {{ nvidia.com/gpu: {count} }} }}"))
        }
        // A capability of the container is one of its root only.
        Start::LockedMemory if host.user().is_ok_and(|user| user.uid.is_some_and(|uid| uid != 0)) => finding.remedy(
            "raise the limit of the node's container runtime (`LimitMEMLOCK=infinity` of containerd.service); the capability \
             IPC_LOCK alone does not help a container whose user is not root",
        ),
        Start::LockedMemory => finding
            .remedy("raise the limit of the node's container runtime, or add the capability to the container")
            .command("securityContext: { capabilities: { add: [IPC_LOCK] } }"),
        Start::Numa => finding
            .remedy("add the capability to the pod's container, or set NCCL_CUMEM_HOST_ENABLE=0")
            .command("securityContext: { capabilities: { add: [SYS_NICE] } }"),
        Start::Infiniband => finding
            .remedy(
                "request the adapters as the cluster's RDMA device plugin names them (`kubectl describe node` lists it under \
                 Allocatable), and let the container lock memory",
            )
            .command("resources: { limits: { rdma/<name>: 1 } }")
            .command("securityContext: { capabilities: { add: [IPC_LOCK] } }"),
        Start::HostNetwork => finding
            .remedy("give the pod the node's network, with which it needs another policy for names")
            .command("hostNetwork: true")
            .command("dnsPolicy: ClusterFirstWithHostNet"),
        Start::Memory(gib) => finding
            .remedy("raise the memory of the pod's container")
            .command(format!("resources: {{ limits: {{ memory: {gib}Gi }} }}")),
        Start::Cores(count) => finding
            .remedy("give the pod's container more cores")
            .command(format!("resources: {{ limits: {{ cpu: {count} }} }}")),
        Start::Mps => finding.remedy(
            "mount the node's folder of the MPS daemon into the pod and use the node's IPC (`hostIPC: true`), as NVIDIA's \
             device plugin does with `sharing.mps`; or have the compute mode set back to default",
        ),
    }
}

fn of_lxc(host: &Host, finding: Finding, what: Start) -> Finding {
    let change = match what {
        Start::Gpus(_) | Start::Libraries => lxc::Change::Gpus,
        Start::LockedMemory => lxc::Change::Limit("memlock", "unlimited".to_owned()),
        Start::Memory(gib) => lxc::Change::Memory(gib),
        Start::Cores(count) => lxc::Change::Cores(count),
        Start::Infiniband => {
            return finding.remedy(
                "give the container the device files of the host and the right to use them, and restart it: in LXC's settings on the \
                 host (Proxmox: with `:` in place of `=`) `lxc.mount.entry = /dev/infiniband dev/infiniband none bind,create=dir` and \
                 `lxc.cgroup2.devices.allow = c 231:* rwm`; in LXD and Incus a device of the type `infiniband`",
            );
        }
        Start::Numa | Start::HostNetwork | Start::Mps => return finding,
    };
    lxc::commands(host, &change).into_iter().fold(finding, Finding::command)
}
