//! What the machine has, and what the user's CUDA_VISIBLE_DEVICES leaves of it.

use yolo_base::visible_devices::{Named, VisibleEntry, visible_devices};

use super::kind::{Device, MigUuid};

/// The resources of the machine that a plan needs to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    /// Cores this process may use.
    pub cores: usize,
    /// GPUs that the driver reports, with nvidia-smi's numbers; empty without a working driver.
    pub gpus: Vec<Gpu>,
    /// Why there is no GPU, as a phrase for messages, if `gpus` is empty.
    pub no_gpu_reason: Option<String>,
    /// The user's CUDA_VISIBLE_DEVICES; `None` if it is not set.
    pub visible: Option<String>,
    /// Whether a libtorch with CUDA is installed or named by LIBTORCH.
    pub cuda_libtorch: bool,
    /// Bytes that the system lets all programs page-lock, if it is known to be few.
    pub page_lockable: Option<u64>,
    /// Why NCCL is not available, as a phrase for messages; `None` if it is or can be built.
    pub no_nccl: Option<String>,
}

/// One GPU of the machine.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "standard terms")]
pub struct Gpu {
    pub index: usize,
    pub name: String,
    /// Bytes.
    pub memory: u64,
    /// Bytes that no program uses; 0 if the driver does not report it.
    pub free: u64,
    /// `GPU-…`, if the driver reports it.
    pub uuid: Option<String>,
    /// The MIG instances that it is divided into.
    pub instances: Vec<MigInstance>,
}

/// A MIG instance of a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct MigInstance {
    /// Its UUID.
    pub uuid: MigUuid,
    /// Bytes.
    pub memory: u64,
}

impl Inventory {
    /// The devices that the user's CUDA_VISIBLE_DEVICES names, in its order, or all if it is not set. A
    /// GPU that is divided stands for its instances if the variable is not set.
    pub(super) fn visible_devices(&self) -> Vec<Device> {
        let Some(value) = &self.visible else {
            return self.gpus.iter().flat_map(Gpu::devices).collect();
        };
        let look_up = |entry: VisibleEntry<'_>| {
            let found = match entry {
                VisibleEntry::Number(index) => {
                    self.gpu(index).map(|gpu| Device::Cuda(gpu.index)).into_iter().collect()
                }
                VisibleEntry::Gpu(prefix) => {
                    let has_prefix =
                        |gpu: &&Gpu| gpu.uuid.as_ref().is_some_and(|uuid| uuid.starts_with(prefix));
                    self.gpus.iter().filter(has_prefix).map(|gpu| Device::Cuda(gpu.index)).collect()
                }
                VisibleEntry::Mig(prefix) => self.instances_named(prefix),
            };
            if let [device] = found[..] { Named::One(device) } else { Named::Invalid }
        };
        visible_devices(value, look_up).devices
    }

    /// Whether the user's CUDA_VISIBLE_DEVICES leaves this device.
    pub(super) fn is_visible(&self, device: Device) -> bool {
        let of_gpu = match device {
            Device::Cpu => return true,
            Device::Cuda(index) | Device::Mig { gpu: index, .. } => Device::Cuda(index),
        };
        if self.visible.is_none() {
            return true;
        }
        let visible = self.visible_devices();
        visible.contains(&device) || visible.contains(&of_gpu)
    }

    /// The GPU with this number.
    pub fn gpu(&self, index: usize) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.index == index)
    }

    /// The GPUs whose UUIDs begin like this.
    pub(super) fn gpus_named(&self, prefix: &str) -> Vec<&Gpu> {
        let is_named = |gpu: &&Gpu| {
            gpu.uuid.as_ref().is_some_and(|uuid| uuid.to_lowercase().starts_with(&prefix.to_lowercase()))
        };
        self.gpus.iter().filter(is_named).collect()
    }

    /// The MIG instances whose UUIDs begin like this.
    pub(super) fn instances_named(&self, prefix: &str) -> Vec<Device> {
        let all = self.gpus.iter().filter(|gpu| !gpu.instances.is_empty()).flat_map(Gpu::devices);
        all.filter(|instance| instance.visible().starts_with(prefix)).collect()
    }

    /// Memory of a device in bytes; `None` for the CPU, or if it is not known.
    pub fn memory(&self, device: Device) -> Option<u64> {
        let memory = match device {
            Device::Cpu => None,
            Device::Cuda(index) => self.gpu(index).map(|gpu| gpu.memory),
            Device::Mig { gpu, uuid } => {
                let instances = &self.gpu(gpu)?.instances;
                instances.iter().find(|instance| instance.uuid == uuid).map(|instance| instance.memory)
            }
        };
        memory.filter(|bytes| *bytes > 0)
    }

    /// The memory of a device in bytes that a run can use: what is free, or all of it if the driver reports
    /// only that. `None` for the CPU, or if nothing is known.
    pub fn free_memory(&self, device: Device) -> Option<u64> {
        let free = match device {
            Device::Cuda(index) => self.gpu(index).map(|gpu| gpu.free).filter(|bytes| *bytes > 0),
            Device::Cpu | Device::Mig { .. } => None,
        };
        free.or_else(|| self.memory(device))
    }

    /// The name of a device for messages: `0 (NVIDIA A10)`.
    pub(super) fn label(&self, device: Device) -> String {
        match device {
            Device::Cpu => "cpu".to_owned(),
            Device::Cuda(index) => {
                format!("{index} ({})", self.gpu(index).map_or("no GPU", |gpu| gpu.name.as_str()))
            }
            Device::Mig { gpu, uuid } => format!("{uuid} (of GPU {gpu})"),
        }
    }

    /// All GPUs and MIG instances for messages.
    pub(super) fn labels(&self) -> Vec<String> {
        let own = |gpu: &Gpu| {
            let instances = gpu.devices().into_iter().filter(|device| matches!(device, Device::Mig { .. }));
            std::iter::once(Device::Cuda(gpu.index))
                .chain(instances)
                .map(|device| self.label(device))
                .collect::<Vec<_>>()
        };
        self.gpus.iter().flat_map(own).collect()
    }
}

impl Gpu {
    /// Its MIG instances, or itself if it has none.
    fn devices(&self) -> Vec<Device> {
        if self.instances.is_empty() {
            return vec![Device::Cuda(self.index)];
        }
        self.instances.iter().map(|instance| Device::Mig { gpu: self.index, uuid: instance.uuid }).collect()
    }
}
