//! Catalogue entries about containers.

use super::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "container.gpus-missing",
        area: Area::Container,
        status: Status::Error,
        title: "The container was given no GPU",
        cause: "a container sees GPUs only if it is started with them",
        remedy: Some(
            "start the container with access to the GPUs; if that fails, its host lacks the NVIDIA Container \
                Toolkit, which Docker Desktop brings along",
        ),
        fix: None,
        detects: &["docker-no-gpus-flag"],
    },
    Entry {
        id: "container.gpus-lost",
        area: Area::Container,
        status: Status::Error,
        title: "The container lost its GPUs",
        cause: "when systemd on the host reloads its units (`systemctl daemon-reload`), running containers lose \
                access to the GPUs; nvidia-smi on the host still works",
        remedy: Some(
            "restart the container; to prevent this, create the device links that systemd expects \
                on the host, or start the container with --device for each /dev/nvidia* file",
        ),
        fix: None,
        detects: &["docker-cgroup-lost"],
    },
    Entry {
        id: "container.shared-gpu",
        area: Area::Container,
        status: Status::Info,
        title: "The container has a part of a GPU",
        cause: "the platform loads a library before CUDA (HAMi's libvgpu) that limits memory and computing time, so a run has \
                less of both than the card; its answers about memory can be wrong, and it breaks calls that NCCL makes",
        remedy: Some("nothing for one GPU, except that --batch has to fit into the part of the memory"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "container.threads-blocked",
        area: Area::Container,
        status: Status::Error,
        title: "The container forbids threads",
        cause: "Docker before 20.10.10, and runtimes as old, filter a system call with which images of Ubuntu 22.04, Debian 12, \
                Fedora 35 or later start threads (clone3): programs fail with `can't start new thread` or `pthread_create \
                failed: Operation not permitted`, although no limit is reached",
        remedy: Some("update the runtime on the host, or start the container without the filter"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "container.cdi-stale",
        area: Area::Container,
        status: Status::Error,
        title: "Containers get the files of another driver",
        cause: "a CDI specification lists files of the driver by their paths and device files by their numbers; after \
                an update of the driver, containers do not start, or CUDA fails in them with `CUDA unknown error`, \
                while nvidia-smi works",
        remedy: Some("write the specification again on the host, and restart the container"),
        fix: None,
        detects: &["cdi-spec-stale", "docker-cuinit-unknown"],
    },
    Entry {
        id: "container.mtu",
        area: Area::Container,
        status: Status::Info,
        title: "Packets of containers do not fit into the network of the machine",
        cause: "the bridge of the containers does not take over the size of the machine's network, as in clouds of OpenStack and behind a \
                VPN: names resolve and small answers arrive, while pip, apt and downloads in containers hang (`TLS handshake timeout`)",
        remedy: Some("give the bridge the size of the machine's network"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "container.dxgdmal-missing",
        area: Area::Container,
        status: Status::Error,
        title: "The container lacks a library of the Windows driver",
        cause: "Windows drivers from 555 on need libnvdxgdmal in the container too; without it CUDA fails with error \
                500, `named symbol not found`, while nvidia-smi works",
        remedy: Some(
            "update Docker Desktop to 4.31 or later, or the container toolkit in WSL to 1.14.4 or later, and restart the container",
        ),
        fix: None,
        detects: &["docker-wsl-dxgdmal-missing"],
    },
    Entry {
        id: "container.toolkit-missing",
        area: Area::Container,
        status: Status::Info,
        title: "Docker cannot pass GPUs to containers",
        cause: "`docker run --gpus` needs the NVIDIA Container Toolkit; without it Docker fails with \
                `could not select device driver`",
        remedy: Some(
            "nothing if you train outside containers; otherwise install the toolkit and restart \
                Docker (a reload is not enough)",
        ),
        fix: None,
        detects: &["docker-no-toolkit"],
    },
    Entry {
        id: "container.no-cgroups",
        area: Area::Container,
        status: Status::Info,
        title: "NVIDIA's setting no-cgroups does not fit this Docker",
        cause: "with `no-cgroups = true`, as only a Docker without root needs it, containers get the device files of the \
                GPUs and may not use them: NVML fails with `Unknown Error` in each of them from its first second",
        remedy: Some(
            "nothing if you train outside containers; otherwise set no-cgroups to false and restart Docker",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "container.cdi-missing",
        area: Area::Container,
        status: Status::Info,
        title: "Podman does not find the GPUs",
        cause: "`--device nvidia.com/gpu=all` needs a CDI specification, which NVIDIA's toolkit writes; without it Podman \
                fails with `unresolvable CDI devices` or `stat nvidia.com/gpu=all: no such file or directory`",
        remedy: Some("nothing if you train outside containers; otherwise write the specification"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "container.userns-restricted",
        area: Area::Container,
        status: Status::Info,
        title: "Programs may not make containers without root",
        cause: "Apptainer, Enroot and a Docker without root make user namespaces, which Ubuntu from 23.10 on allows only to programs \
                with a profile of AppArmor, and which other systems can switch off: they fail with `Could not write info to \
                setgroups: Permission denied` or `Failed to create user namespace`",
        remedy: Some("nothing if you train outside containers; otherwise allow the program user namespaces"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "container.numa-blocked",
        area: Area::Container,
        status: Status::Info,
        title: "The container blocks NUMA system calls",
        cause: "NCCL then copies between GPUs through /dev/shm, which is slower",
        remedy: Some("start the container with --cap-add SYS_NICE, or set NCCL_CUMEM_HOST_ENABLE=0"),
        fix: None,
        detects: &["docker-numa-syscalls"],
    },
    Entry {
        id: "container.memlock",
        area: Area::Container,
        status: Status::Info,
        title: "The container's limit on locked memory is low",
        cause: "InfiniBand needs locked memory, which is never swapped out; with a low limit, NCCL cannot register its \
                buffers",
        remedy: Some("start the container with higher limits"),
        fix: None,
        detects: &["docker-memlock"],
    },
    Entry {
        id: "container.bridge-address",
        area: Area::Container,
        status: Status::Error,
        title: "Other machines cannot reach this container",
        cause: "ranks announce the container's address in Docker's internal network, and NCCL uses random \
                ports, so publishing ports is not enough",
        remedy: Some("start the container with the host's network"),
        fix: None,
        detects: &["docker-nccl-bridge-ip"],
    },
];
