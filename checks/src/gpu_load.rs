//! How busy the GPUs of a run are, and how much of their memory is used, as the NVIDIA driver says it. A
//! thread of its own asks, because a call to a driver that hangs does not return.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::facts::nvml_library;

/// The time between two questions. The driver's own measurements of use cover up to a second.
const INTERVAL: Duration = Duration::from_secs(2);

/// What the driver says about one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuLoad {
    /// Its nvidia-smi number.
    pub gpu: usize,
    /// Percent of the time in which it computed; `None` where the driver does not measure it.
    pub busy: Option<u32>,
    /// Bytes of its memory that all processes use.
    pub used: u64,
    /// Bytes of its memory.
    pub total: u64,
}

/// Asks the driver every two seconds, until it is dropped.
#[derive(Debug)]
pub struct GpuMonitor {
    latest: Arc<Mutex<Vec<GpuLoad>>>,
}

impl GpuMonitor {
    /// Watches these GPUs. Without a driver, nothing is ever known.
    pub fn start(gpus: Vec<usize>) -> Self {
        if gpus.is_empty() {
            return Self::poll(INTERVAL, || None);
        }
        let mut library = None;
        Self::poll(INTERVAL, move || {
            if library.is_none() {
                library = nvml_library().ok();
            }
            let library = library.as_ref()?;
            Some(gpus.iter().filter_map(|&gpu| load(library, gpu)).collect())
        })
    }

    /// The answers to the last question; empty before the first.
    pub fn latest(&self) -> Vec<GpuLoad> {
        lock(&self.latest).clone()
    }

    /// Asks until the monitor is dropped, or there is no answer.
    fn poll(interval: Duration, mut ask: impl FnMut() -> Option<Vec<GpuLoad>> + Send + 'static) -> Self {
        let latest = Arc::new(Mutex::new(Vec::new()));
        let written: Weak<Mutex<Vec<GpuLoad>>> = Arc::downgrade(&latest);
        // If the thread cannot be started, the load is not known; the run does not need it.
        let _ = thread::Builder::new().name("gpu-load".to_owned()).spawn(move || {
            while let Some(loads) = ask() {
                let Some(latest) = written.upgrade() else { return };
                *lock(&latest) = loads;
                drop(latest);
                thread::sleep(interval);
            }
        });
        Self { latest }
    }
}

fn lock(loads: &Mutex<Vec<GpuLoad>>) -> std::sync::MutexGuard<'_, Vec<GpuLoad>> {
    loads.lock().unwrap_or_else(PoisonError::into_inner)
}

fn load(library: &nvml_wrapper::Nvml, gpu: usize) -> Option<GpuLoad> {
    let device = library.device_by_index(u32::try_from(gpu).ok()?).ok()?;
    let memory = device.memory_info().ok()?;
    let busy = device.utilization_rates().ok().map(|rates| rates.gpu);
    Some(GpuLoad { gpu, busy, used: memory.used, total: memory.total })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_latest_answer_is_kept_and_the_questions_end_with_the_monitor() {
        let (asked, questions) = channel();
        let mut busy = 0;
        let monitor = GpuMonitor::poll(Duration::from_millis(1), move || {
            busy += 1;
            asked.send(()).ok()?;
            Some(vec![GpuLoad { gpu: 3, busy: Some(busy), used: 1, total: 2 }])
        });
        for _ in 0..3 {
            questions.recv().unwrap();
        }
        let [load] = monitor.latest()[..] else { panic!("{monitor:?}") };
        assert!(load.gpu == 3 && load.busy >= Some(2), "{load:?}");
        drop(monitor);
        // The iterator ends when the thread has dropped its end of the channel.
        questions.iter().for_each(drop);
    }

    #[test]
    fn a_machine_without_a_driver_has_no_answers() {
        let monitor = GpuMonitor::poll(Duration::ZERO, || None);
        assert!(monitor.latest().is_empty());
    }
}
