//! Containers: the rows of the catalogue.

use super::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "container.gpus-missing",
        area: Area::Container,
        status: Status::Error,
        title: "The container was given no GPU",
        cause: "a container sees GPUs only when it is started with them",
        remedy: Some("start the container with its GPUs"),
        fix: None,
        detects: &["docker-no-gpus-flag"],
    },
    Entry {
        id: "container.gpus-lost",
        area: Area::Container,
        status: Status::Error,
        title: "The container lost its GPUs",
        cause: "when systemd on the host reloads its units it takes the GPUs from running containers; \
                nvidia-smi on the host still works",
        remedy: Some(
            "restart the container; for good, make the links that systemd looks for on the host, or \
                start it with --device for each file in /dev/nvidia*",
        ),
        fix: None,
        detects: &["docker-cgroup-lost"],
    },
    Entry {
        id: "container.toolkit-missing",
        area: Area::Container,
        status: Status::Info,
        title: "Docker cannot give containers GPUs",
        cause: "docker run --gpus needs the NVIDIA Container Toolkit: without it Docker says `could not \
                select device driver`",
        remedy: Some(
            "nothing as long as you train outside of containers; else install the toolkit and restart \
                Docker (a reload is not enough)",
        ),
        fix: None,
        detects: &["docker-no-toolkit"],
    },
    Entry {
        id: "container.numa-blocked",
        area: Area::Container,
        status: Status::Info,
        title: "The container may not ask about NUMA",
        cause: "NCCL then copies between the GPUs over /dev/shm, which is slower than its usual way",
        remedy: Some(
            "start the container with --cap-add SYS_NICE; or turn the other way off with \
                NCCL_CUMEM_HOST_ENABLE=0",
        ),
        fix: None,
        detects: &["docker-numa-syscalls"],
    },
    Entry {
        id: "container.memlock",
        area: Area::Container,
        status: Status::Info,
        title: "The container may lock little memory",
        cause: "InfiniBand needs memory that stays in place; with a small limit NCCL cannot register its \
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
        cause: "the other ranks are told the container's address in Docker's own network, and NCCL uses \
                random ports, so publishing two ports is not enough",
        remedy: Some("start the container in the host's network"),
        fix: None,
        detects: &["docker-nccl-bridge-ip"],
    },
];
