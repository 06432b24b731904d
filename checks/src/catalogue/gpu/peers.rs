//! Direct traffic between GPUs.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "gpu.peer-redirected",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The IOMMU redirects traffic between GPUs",
        cause: "IOMMU translation, or access control (ACS) on PCIe bridges, redirects direct GPU-to-GPU traffic (P2P), \
            which some motherboards do not handle: training hangs at the first exchange, with all GPUs at 100%",
        remedy: Some(
            "if a run hangs at its start, disable P2P (slower), or add iommu=pt to the \
                kernel command line and restart",
        ),
        fix: None,
        detects: &["p2p-iommu-acs-hang"],
    },
    Entry {
        id: "gpu.peer-fault",
        area: Area::Gpu,
        status: Status::Warning,
        title: "Direct traffic between these GPUs hangs",
        cause: "these cards or this driver version have a known problem with direct GPU-to-GPU traffic (P2P): the first \
            exchange never completes",
        remedy: Some("disable P2P (slower), or update the driver"),
        fix: None,
        detects: &["p2p-driver-bug", "p2p-blackwell-workstation", "p2p-blackwell-topo-ok-hang"],
    },
    Entry {
        id: "gpu.peer-silent",
        area: Area::Gpu,
        status: Status::Warning,
        title: "Direct traffic between these GPUs may be corrupted",
        cause: "with this driver, copies between two of these cards were reported to be corrupted without an \
                error: the loss becomes NaN only with several cards",
        remedy: Some(
            "let --deep compare direct copies with copies through memory; if they differ, set NCCL_P2P_DISABLE=1 and \
             try another driver version",
        ),
        fix: None,
        detects: &["p2p-silent-corruption"],
    },
    Entry {
        id: "gpu.peer-patched",
        area: Area::Gpu,
        status: Status::Warning,
        title: "The driver is patched for direct traffic between GPUs",
        cause: "the version of the kernel module ends in -p2p, or GeForce cards without NVLink can communicate directly: a patch \
                lets them, which NVIDIA's own driver does not offer; on some machines it corrupts data",
        remedy: Some(
            "let --deep compare direct copies with copies through memory; if they differ, set NCCL_P2P_DISABLE=1, or \
             install NVIDIA's own driver",
        ),
        fix: None,
        detects: &["p2p-patched-driver"],
    },
    Entry {
        id: "gpu.nvlink-down",
        area: Area::Gpu,
        status: Status::Warning,
        title: "NVLinks of a GPU are inactive",
        cause: "GPUs that NVLink connects exchange gradients over it; with a part of the links, or with a bridge that has no good \
                contact, the run is slower, or its first exchange hangs",
        remedy: Some("push the bridge in, or restart the machine"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.peer-none",
        area: Area::Gpu,
        status: Status::Info,
        title: "GPUs communicate through system memory",
        cause: "with NVIDIA's own driver these cards have no direct path over PCIe; NCCL uses shared memory instead, which is \
                normal",
        remedy: None,
        fix: None,
        detects: &["p2p-geforce-none"],
    },
    Entry {
        id: "gpu.nvls",
        area: Area::Gpu,
        status: Status::Warning,
        title: "NCCL may not be able to use the multicast of NVSwitch",
        cause: "from three GPUs on, NCCL has the NVSwitches of a board add up the gradients (NVLink SHARP, NVLS); Fabric \
                Manager forms a group of GPUs for that, which fails after a restart of the service under a loaded driver, or on \
                a host with a part of a board; NCCL then stops at its start with `nvls.cc: Cuda failure 1` or `401`, although \
                nvidia-smi and the fabric look healthy",
        remedy: Some("set NCCL_NVLS_ENABLE=0, or reset all GPUs of the machine"),
        fix: None,
        detects: &[],
    },
];
