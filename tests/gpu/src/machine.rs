//! The machine that a report is about, without names or addresses.

use serde::{Deserialize, Serialize};
use sysinfo::System;

use crate::gpus::{Gpu, GpuMonitor};

/// What a reader must know about the machine to understand the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `Debian GNU/Linux 12`.
    pub system: String,
    /// The release of the kernel.
    pub kernel: String,
    /// The model of the CPU.
    pub cpu: String,
    /// CPU cores that this process may use.
    pub cores: usize,
    /// Bytes.
    pub memory: u64,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
    /// The version of the NVIDIA driver.
    pub driver: Option<String>,
    /// The version of libtorch: `2.11.0+cu130`.
    pub libtorch: String,
}

impl Machine {
    /// This machine.
    pub fn this(monitor: Option<&GpuMonitor>, libtorch: String) -> Self {
        let mut system = System::new();
        system.refresh_memory();
        system.refresh_cpu_all();
        let cpu = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned()).unwrap_or_default();
        Self {
            system: System::long_os_version().unwrap_or_else(|| "unknown".to_owned()),
            kernel: System::kernel_version().unwrap_or_else(|| "unknown".to_owned()),
            cpu,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: system.total_memory(),
            gpus: monitor.map(GpuMonitor::gpus).unwrap_or_default(),
            driver: monitor.and_then(GpuMonitor::driver),
            libtorch,
        }
    }
}
