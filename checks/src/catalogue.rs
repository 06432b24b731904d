//! The table of everything that can be found: a stable id, the group it is shown in, why it
//! matters and what to do. Words live here alone; checks add the numbers that they saw.

use serde::Serialize;

/// The groups of the report, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// Operating system or WSL, processor.
    System,
    /// Driver and GPUs.
    Gpu,
    /// Libraries.
    Libtorch,
    /// Memory and shared memory.
    Memory,
    /// Disk.
    Disk,
    /// Network and ports.
    Network,
}

impl Area {
    /// The heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Gpu => "Driver and GPUs",
            Self::Libtorch => "libtorch",
            Self::Memory => "Memory",
            Self::Disk => "Disk",
            Self::Network => "Network",
        }
    }
}

/// One row of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Stable name.
    pub id: &'static str,
    /// The group.
    pub area: Area,
    /// Why it matters.
    pub cause: &'static str,
    /// What to do; `None` where a finding of this id is never a problem.
    pub remedy: Option<&'static str>,
}

const ENTRIES: [Entry; 9] = [
    Entry {
        id: "system.os",
        area: Area::System,
        cause: "libtorch is built for 64-bit x86 Linux with glibc; ranks start there and in WSL 2 only",
        remedy: Some(
            "on Windows, train inside WSL 2; on other processors there is no libtorch build to fetch",
        ),
    },
    Entry {
        id: "gpu.driver",
        area: Area::Gpu,
        cause: "the NVIDIA driver answers for the GPUs; without it training runs on the processor, \
                many times slower",
        remedy: Some(
            "install the NVIDIA driver of your distribution, then restart; in WSL, install it on Windows only",
        ),
    },
    Entry {
        id: "gpu.devices",
        area: Area::Gpu,
        cause: "a driver without a GPU trains nothing",
        remedy: Some(
            "check that the card is seated and powered, and that no container or CUDA_VISIBLE_DEVICES hides it",
        ),
    },
    Entry {
        id: "gpu.memory",
        area: Area::Gpu,
        cause: "another process holds memory of this GPU: the run may end with `out of memory`",
        remedy: Some("end that process, choose another device, or a smaller --batch-size"),
    },
    Entry {
        id: "libtorch.installed",
        area: Area::Libtorch,
        cause: "the trainer links libtorch",
        remedy: Some("it is fetched by the first run, or now by setup"),
    },
    Entry {
        id: "libtorch.cuda",
        area: Area::Libtorch,
        cause: "the installed libtorch cannot use the GPU, so training runs on the processor",
        remedy: Some(
            "name a libtorch 2.11 with CUDA, such as the `torch` folder of a Python environment, in LIBTORCH",
        ),
    },
    Entry {
        id: "memory.available",
        area: Area::Memory,
        cause: "a rank that runs out of memory is killed by the system without a word",
        remedy: Some(
            "close other programs, or train with a smaller --batch-size, --imgsz or fewer --workers",
        ),
    },
    Entry {
        id: "disk.free",
        area: Area::Disk,
        cause: "libtorch needs 0.5 GB installed, and checkpoints and data sets more",
        remedy: Some("free space there, or move the folders with YOLO_HOME and --project"),
    },
    Entry {
        id: "network.port",
        area: Area::Network,
        cause: "ranks meet at a port of this machine",
        remedy: Some("allow programs to listen on 127.0.0.1: a firewall or sandbox refuses it"),
    },
];

/// The row of an id.
pub fn entry(id: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_named_by_their_group() {
        for (index, entry) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES[..index].iter().all(|other| other.id != entry.id), "{} stands twice", entry.id);
            assert!(entry.id.contains('.'), "{}", entry.id);
        }
    }
}
