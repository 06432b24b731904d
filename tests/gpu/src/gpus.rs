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
/// NVML's share of busy time is that of the last sixth of a second to a second, depending on the GPU. For so
/// many seconds after something has begun, it also describes what was before.
const SETTLING: f64 = 1.0;

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

/// What watches one GPU.
#[derive(Debug)]
pub struct GpuMonitor {
    source: Source,
}

/// Where its answers come from.
#[derive(Debug)]
enum Source {
    /// NVML, opened for the GPU with this number.
    Nvml(Box<Nvml>, u32),
    /// The same answer every time, for tests on machines without a GPU.
    MadeUp { gpu: Gpu, memory: u64, busy: Option<u32> },
}

/// One sample of a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Seconds since 1970.
    pub at: f64,
    /// Bytes in use by all processes.
    pub memory: u64,
    /// Per cent of the last interval in which a kernel ran; `None` if this GPU does not report it, as a MIG device.
    pub busy: Option<u32>,
}

impl GpuMonitor {
    /// Opens NVML for this GPU.
    ///
    /// # Errors
    /// When there is no driver or no such GPU.
    pub fn open(index: u32) -> Result<Self, NvmlError> {
        let nvml = Nvml::init()?;
        nvml.device_by_index(index)?;
        Ok(Self { source: Source::Nvml(Box::new(nvml), index) })
    }

    /// A monitor that always sees this, for tests on machines without a GPU.
    pub fn made_up(gpu: Gpu, memory: u64, busy: Option<u32>) -> Self {
        Self { source: Source::MadeUp { gpu, memory, busy } }
    }

    /// The version of the driver: `580.95.05`.
    pub fn driver(&self) -> Option<String> {
        match &self.source {
            Source::Nvml(nvml, _) => nvml.sys_driver_version().ok(),
            Source::MadeUp { .. } => None,
        }
    }

    /// All GPUs of this machine.
    pub fn gpus(&self) -> Vec<Gpu> {
        match &self.source {
            Source::Nvml(nvml, _) => {
                let count = nvml.device_count().unwrap_or_default();
                (0..count).filter_map(|index| gpu(nvml, index).ok()).collect()
            }
            Source::MadeUp { gpu, .. } => vec![gpu.clone()],
        }
    }

    /// Bytes of the memory of the GPU under test.
    ///
    /// # Errors
    /// When the GPU does not answer.
    pub fn memory(&self) -> Result<u64, NvmlError> {
        match &self.source {
            Source::Nvml(nvml, index) => Ok(nvml.device_by_index(*index)?.memory_info()?.total),
            Source::MadeUp { gpu, .. } => Ok(gpu.memory),
        }
    }

    /// Bytes of the GPU's memory in use by all processes.
    ///
    /// # Errors
    /// When the GPU does not answer.
    pub fn memory_in_use(&self) -> Result<u64, NvmlError> {
        match &self.source {
            Source::Nvml(nvml, index) => Ok(nvml.device_by_index(*index)?.memory_info()?.used),
            Source::MadeUp { memory, .. } => Ok(*memory),
        }
    }

    fn sample(&self) -> Result<Sample, NvmlError> {
        let busy = match &self.source {
            Source::Nvml(nvml, index) => {
                nvml.device_by_index(*index)?.utilization_rates().ok().map(|rates| rates.gpu)
            }
            Source::MadeUp { busy, .. } => *busy,
        };
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Sample { at, memory: self.memory_in_use()?, busy })
    }
}

fn gpu(nvml: &Nvml, index: u32) -> Result<Gpu, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let capability = device.cuda_compute_capability()?;
    Ok(Gpu {
        index,
        name: device.name()?,
        memory: device.memory_info()?.total,
        capability: format!("{}.{}", capability.major, capability.minor),
    })
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

/// How busy a GPU was.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Busy {
    /// The mean share of time, 0 to 1, in which a kernel ran.
    Share(f64),
    /// The GPU does not report it.
    NotReported,
    /// No sample is of that time.
    #[default]
    NotSampled,
}

/// How busy the GPU was between two moments, without the time after the first in which its answers still describe what
/// was before.
pub fn busy(samples: &[Sample], from: f64, to: f64) -> Busy {
    let within: Vec<&Sample> =
        samples.iter().filter(|sample| (from + SETTLING..=to).contains(&sample.at)).collect();
    let shares: Vec<f64> = within.iter().filter_map(|sample| Some(f64::from(sample.busy?) / 100.0)).collect();
    match (within.is_empty(), shares.is_empty()) {
        (true, _) => Busy::NotSampled,
        (false, true) => Busy::NotReported,
        (false, false) => Busy::Share(shares.iter().sum::<f64>() / shares.len() as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_busy_a_gpu_was_and_its_peak_memory_are_those_of_the_samples() {
        let sample = |at, memory, busy| Sample { at, memory, busy: Some(busy) };
        let samples = [sample(1.0, 10, 0), sample(2.0, 30, 80), sample(3.0, 20, 100), sample(4.0, 5, 0)];
        assert_eq!(peak_memory(&samples), Some(30));
        assert_eq!(busy(&samples, 0.5, 3.5), Busy::Share(0.9));
        assert_eq!(busy(&samples, 5.0, 6.0), Busy::NotSampled);
        assert_eq!(peak_memory(&[]), None);
    }

    #[test]
    fn samples_that_still_describe_the_time_before_do_not_count() {
        let sample = |at, busy| Sample { at, memory: 0, busy: Some(busy) };
        // The warm-up before 10.0 leaves the GPU idle, which the sample at 10.9 still shows.
        let samples = [sample(9.9, 0), sample(10.1, 0), sample(10.9, 40), sample(11.1, 98), sample(13.9, 98)];
        assert_eq!(busy(&samples, 10.0, 14.0), Busy::Share(0.98));
        assert_eq!(busy(&samples, 10.0, 10.9), Busy::NotSampled, "a window of less than the settling time");
    }

    #[test]
    fn a_gpu_that_does_not_say_how_busy_it_is_has_a_peak_of_memory_all_the_same() {
        let samples = [Sample { at: 2.0, memory: 7, busy: None }];
        assert_eq!((busy(&samples, 0.0, 3.0), peak_memory(&samples)), (Busy::NotReported, Some(7)));
    }

    #[test]
    fn a_machine_without_a_driver_has_no_monitor() {
        // On a machine with a GPU the number is one that no machine has.
        assert!(GpuMonitor::open(4096).is_err());
    }
}
