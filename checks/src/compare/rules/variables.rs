//! Environment variables that change how ranks communicate or compute.

use yolo_base::env::{NCCL_SHM_DISABLE, OMP_NUM_THREADS};

use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule, Seen};

pub(super) const RULES: &[Rule] = &[
    Rule { id: "nccl-algo", what: "NCCL_ALGO", read: |one| variable(one, "NCCL_ALGO"), judge: must_agree },
    Rule { id: "nccl-proto", what: "NCCL_PROTO", read: |one| variable(one, "NCCL_PROTO"), judge: must_agree },
    Rule { id: "nccl-net", what: "NCCL_NET", read: |one| variable(one, "NCCL_NET"), judge: must_agree },
    Rule {
        id: "nccl-ib-disable",
        what: "NCCL_IB_DISABLE",
        read: |one| variable(one, "NCCL_IB_DISABLE"),
        judge: must_agree,
    },
    Rule {
        id: "nccl-p2p-disable",
        what: "NCCL_P2P_DISABLE",
        read: |one| variable(one, "NCCL_P2P_DISABLE"),
        judge: is_slower,
    },
    Rule {
        id: "nccl-shm-disable",
        what: NCCL_SHM_DISABLE,
        read: |one| variable(one, NCCL_SHM_DISABLE),
        judge: is_slower,
    },
    Rule {
        id: "cuda-launch-blocking",
        what: "CUDA_LAUNCH_BLOCKING",
        read: |one| variable(one, "CUDA_LAUNCH_BLOCKING"),
        judge: |_| {
            Meaning::slows(
                "where it is 1, the CPU waits for the GPU after each operation, and all ranks wait for that",
                "unset it on all machines",
            )
        },
    },
    Rule {
        id: "cuda-visible-devices",
        what: "CUDA_VISIBLE_DEVICES",
        read: |one| variable(one, "CUDA_VISIBLE_DEVICES"),
        judge: |_| Meaning::harmless("each machine has its own numbers of GPUs"),
    },
    Rule {
        id: "omp-num-threads",
        what: "OMP_NUM_THREADS",
        read: |one| variable(one, OMP_NUM_THREADS),
        judge: |seen| {
            if !seen.is_on_cpus() {
                return Meaning::harmless("ranks on GPUs compute little on the CPU");
            }
            Meaning::slows(
                "all ranks wait for those with the fewest threads",
                "unset it, so that yolo divides the cores of each machine",
            )
        },
    },
    Rule {
        id: "nccl-socket-ifname",
        what: "NCCL_SOCKET_IFNAME",
        read: |one| variable(one, "NCCL_SOCKET_IFNAME"),
        judge: is_local,
    },
    Rule {
        id: "gloo-socket-ifname",
        what: "GLOO_SOCKET_IFNAME",
        read: |one| variable(one, "GLOO_SOCKET_IFNAME"),
        judge: is_local,
    },
];

fn variable(machine: &Machine<'_>, name: &str) -> Reading {
    Reading::of(machine.host.env(name), |value| {
        let set = value.filter(|value| !value.trim().is_empty());
        set.map_or_else(|| Reading::absent("not set"), Reading::text)
    })
}

fn must_agree(_: &Seen<'_>) -> Meaning {
    Meaning::slows(
        "ranks that communicate in different ways may wait for each other forever",
        "set it to the same value on all machines, or unset it",
    )
}

fn is_slower(_: &Seen<'_>) -> Meaning {
    Meaning::slows(
        "where it is 1, the GPUs of that machine exchange gradients on a slower path",
        "unset it, unless the faster path does not work on that machine",
    )
}

fn is_local(_: &Seen<'_>) -> Meaning {
    Meaning::harmless("it names an interface of its own machine")
}
