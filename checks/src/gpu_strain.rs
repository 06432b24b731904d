//! How GPUs behave under load, as the NVIDIA driver says it: temperature, clocks, fans, power, what slows them
//! down, and whether the driver wants a card to be reset. A thread of its own asks while ranks compute, because a
//! call to a driver that hangs does not return.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor, TemperatureThreshold};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::structs::device::FieldId;
use serde::{Deserialize, Serialize};

use crate::facts::nvml_library;

/// The time between two questions.
const INTERVAL: Duration = Duration::from_millis(500);
/// Field 230 of nvml.h: what the driver wants to be done with a card after an error.
const RECOVERY_ACTION: u32 = 230;

/// One GPU while it computed. What the driver does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuStrain {
    /// The highest temperature in °C.
    pub temperature: Option<u32>,
    /// The temperature in °C at which the card slows down.
    pub slows_down_at: Option<u32>,
    /// The lowest clock of the multiprocessors in MHz while the card was busy.
    pub clock: Option<u32>,
    /// The highest clock that the card has.
    pub clock_max: Option<u32>,
    /// The fastest fan, in percent; absent for cards without fans.
    pub fan: Option<u32>,
    /// The highest power in watts.
    pub power: Option<f64>,
    /// The power limit in watts.
    pub power_limit: Option<f64>,
    /// The power limit in watts that the card has unless somebody changes it.
    pub power_limit_default: Option<f64>,
    /// What slowed the card down at any moment: the bits of `nvmlClocksEventReasons`.
    pub slowed_by: u64,
    /// The generation of PCIe that the link reached.
    pub pcie_generation: Option<u32>,
    /// The lanes of PCIe that the link reached.
    pub pcie_width: Option<u32>,
    /// GB/s that the card's memory has by its clock and width.
    pub memory_rate: Option<f64>,
    /// TFLOP/s in single precision that its cores have by their clock.
    pub single_rate: Option<f64>,
    /// What the driver wants to be done: 0 nothing, 1 a reset of the card, 2 a restart of the machine, 3 an end of
    /// direct copies, 4 an end of new work and a reset.
    pub recovery: Option<u64>,
}

/// Asks the driver twice a second, until it is dropped.
#[derive(Debug)]
pub struct StrainMonitor {
    seen: Arc<Mutex<BTreeMap<usize, GpuStrain>>>,
}

impl StrainMonitor {
    /// Watches these GPUs. Without a driver, nothing is ever known.
    pub fn start(gpus: Vec<usize>) -> Self {
        let seen = Arc::default();
        let written: Weak<Mutex<BTreeMap<usize, GpuStrain>>> = Arc::downgrade(&seen);
        if !gpus.is_empty() {
            // If the thread cannot be started, nothing is known; the test does not need it.
            let _ = thread::Builder::new().name("gpu-strain".to_owned()).spawn(move || {
                let Ok(library) = nvml_library() else { return };
                loop {
                    for &gpu in &gpus {
                        let device =
                            u32::try_from(gpu).ok().and_then(|gpu| library.device_by_index(gpu).ok());
                        let Some(device) = device else { continue };
                        let now = ask(&device);
                        let Some(seen) = written.upgrade() else { return };
                        lock(&seen).entry(gpu).or_default().join(now);
                    }
                    thread::sleep(INTERVAL);
                }
            });
        }
        Self { seen }
    }

    /// What was seen so far, by the number of the GPU.
    pub fn seen(&self) -> BTreeMap<usize, GpuStrain> {
        lock(&self.seen).clone()
    }
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answers of this moment. The clock and its reasons count only while the card is busy: an idle card clocks down.
fn ask(device: &Device<'_>) -> GpuStrain {
    let is_busy = device.utilization_rates().is_ok_and(|rates| rates.gpu >= 90);
    let fans = 0..device.num_fans().unwrap_or(0);
    let memory_clock = device.max_clock_info(Clock::Memory).ok();
    let core_clock = device.max_clock_info(Clock::SM).ok();
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1000.0;
    GpuStrain {
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        slows_down_at: device.temperature_threshold(TemperatureThreshold::Slowdown).ok(),
        clock: device.clock_info(Clock::SM).ok().filter(|_| is_busy),
        clock_max: core_clock,
        fan: fans.filter_map(|fan| device.fan_speed(fan).ok()).max(),
        power: device.power_usage().ok().map(watts),
        power_limit: device.enforced_power_limit().ok().map(watts),
        power_limit_default: device.power_management_limit_default().ok().map(watts),
        slowed_by: device
            .current_throttle_reasons()
            .map_or(0, |reasons| if is_busy { reasons.bits() } else { 0 }),
        pcie_generation: device.current_pcie_link_gen().ok(),
        pcie_width: device.current_pcie_link_width().ok(),
        // Memory transfers twice per cycle.
        memory_rate: memory_clock
            .zip(device.memory_bus_width().ok())
            .map(|(clock, bits)| 2.0 * f64::from(clock) * 1e6 * f64::from(bits) / 8.0 / 1e9),
        // A core multiplies and adds in each cycle.
        single_rate: core_clock
            .zip(device.num_cores().ok())
            .map(|(clock, cores)| 2.0 * f64::from(clock) * 1e6 * f64::from(cores) / 1e12),
        recovery: recovery(device),
    }
}

fn recovery(device: &Device<'_>) -> Option<u64> {
    let sample = device.field_values_for(&[FieldId(RECOVERY_ACTION)]).ok()?.pop()?.ok()?;
    match sample.value.ok()? {
        SampleValue::U32(value) => Some(value.into()),
        SampleValue::U64(value) => Some(value),
        SampleValue::I64(value) => u64::try_from(value).ok(),
        SampleValue::F64(_) => None,
    }
}

impl GpuStrain {
    /// Adds what was seen later.
    fn join(&mut self, later: Self) {
        fn most<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(if other > one { other } else { one }),
                (one, other) => one.or(other),
            }
        }
        self.temperature = most(self.temperature, later.temperature);
        self.slows_down_at = later.slows_down_at.or(self.slows_down_at);
        self.clock = match (self.clock, later.clock) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.clock_max = later.clock_max.or(self.clock_max);
        self.fan = most(self.fan, later.fan);
        self.power = most(self.power, later.power);
        self.power_limit = later.power_limit.or(self.power_limit);
        self.power_limit_default = later.power_limit_default.or(self.power_limit_default);
        self.slowed_by |= later.slowed_by;
        self.pcie_generation = most(self.pcie_generation, later.pcie_generation);
        self.pcie_width = most(self.pcie_width, later.pcie_width);
        self.memory_rate = later.memory_rate.or(self.memory_rate);
        self.single_rate = later.single_rate.or(self.single_rate);
        self.recovery = most(self.recovery, later.recovery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_all_moments_is_kept() {
        let mut seen = GpuStrain::default();
        let at = |temperature, clock, slowed_by| GpuStrain {
            temperature: Some(temperature),
            clock,
            slowed_by,
            ..GpuStrain::default()
        };
        for moment in [at(60, Some(1900), 4), at(84, Some(1400), 32), at(70, None, 0)] {
            seen.join(moment);
        }
        assert_eq!(seen, at(84, Some(1400), 36));
    }

    #[test]
    fn a_machine_without_gpus_has_no_answers() {
        assert!(StrainMonitor::start(Vec::new()).seen().is_empty());
    }
}
