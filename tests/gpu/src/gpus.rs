//! What NVML reports about the GPU under test: its identity, the memory in use, and how busy it is.
//! Nothing is ever set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use serde::{Deserialize, Serialize};

/// The time between two samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// A GPU, without anything that identifies the single card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its number in nvidia-smi.
    pub index: u32,
    /// `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Bytes.
    pub memory: u64,
    /// Compute capability: `9.0`.
    pub capability: String,
}

/// NVML, opened for one GPU.
#[derive(Debug)]
pub struct GpuMonitor {
    nvml: Nvml,
    index: u32,
}

/// One sample of a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Seconds since 1970.
    pub at: f64,
    /// Bytes in use by all processes.
    pub memory: u64,
    /// Per cent of the last interval in which a kernel ran.
    pub busy: u32,
}

impl GpuMonitor {
    /// Opens NVML for this GPU.
    ///
    /// # Errors
    /// When there is no driver or no such GPU.
    pub fn open(index: u32) -> Result<Self, NvmlError> {
        let nvml = Nvml::init()?;
        nvml.device_by_index(index)?;
        Ok(Self { nvml, index })
    }

    /// The version of the driver: `580.95.05`.
    pub fn driver(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    /// All GPUs of this machine.
    pub fn gpus(&self) -> Vec<Gpu> {
        let count = self.nvml.device_count().unwrap_or_default();
        (0..count).filter_map(|index| self.gpu(index).ok()).collect()
    }

    fn gpu(&self, index: u32) -> Result<Gpu, NvmlError> {
        let device = self.nvml.device_by_index(index)?;
        let capability = device.cuda_compute_capability()?;
        Ok(Gpu {
            index,
            name: device.name()?,
            memory: device.memory_info()?.total,
            capability: format!("{}.{}", capability.major, capability.minor),
        })
    }

    /// Bytes of the GPU's memory in use by all processes.
    ///
    /// # Errors
    /// When the GPU does not answer.
    pub fn memory_in_use(&self) -> Result<u64, NvmlError> {
        Ok(self.nvml.device_by_index(self.index)?.memory_info()?.used)
    }

    fn sample(&self) -> Result<Sample, NvmlError> {
        let device = self.nvml.device_by_index(self.index)?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Sample { at, memory: device.memory_info()?.used, busy: device.utilization_rates()?.gpu })
    }
}

/// Samples of a GPU while something runs.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    /// Begins to take samples.
    pub fn start(monitor: Arc<GpuMonitor>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut samples = Vec::new();
            while !asked.load(Ordering::Relaxed) {
                samples.extend(monitor.sample());
                std::thread::sleep(INTERVAL);
            }
            samples
        });
        Self { stop, thread }
    }

    /// Ends and returns the samples.
    pub fn finish(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The most memory in use in these samples, in bytes.
pub fn peak_memory(samples: &[Sample]) -> Option<u64> {
    samples.iter().map(|sample| sample.memory).max()
}

/// The mean share of time, 0 to 1, in which a kernel ran between two moments; `None` without samples.
pub fn busy_share(samples: &[Sample], from: f64, to: f64) -> Option<f64> {
    let within: Vec<f64> = samples
        .iter()
        .filter(|sample| (from..=to).contains(&sample.at))
        .map(|sample| f64::from(sample.busy) / 100.0)
        .collect();
    (!within.is_empty()).then(|| within.iter().sum::<f64>() / within.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_share_and_peak_memory_are_those_of_the_samples() {
        let sample = |at, memory, busy| Sample { at, memory, busy };
        let samples = [sample(1.0, 10, 0), sample(2.0, 30, 80), sample(3.0, 20, 100), sample(4.0, 5, 0)];
        assert_eq!(peak_memory(&samples), Some(30));
        assert_eq!(busy_share(&samples, 1.5, 3.5), Some(0.9));
        assert_eq!(busy_share(&samples, 5.0, 6.0), None);
        assert_eq!(peak_memory(&[]), None);
    }

    #[test]
    fn a_machine_without_a_driver_has_no_monitor() {
        // On a machine with a GPU the number is one that no machine has.
        assert!(GpuMonitor::open(4096).is_err());
    }
}
