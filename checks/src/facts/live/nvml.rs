//! The answers of the NVIDIA driver. Each call may fail independently: WSL and GeForce cards support
//! only some, and a faulty card fails some. The library is opened at run time, in WSL from the folder
//! that Windows mounts. One thread makes all calls and stores each answer at once: if a call hangs,
//! the earlier answers are kept and the thread is abandoned.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nvml_wrapper::enum_wrappers::device::{
    ComputeMode, EccCounter, MemoryError, TemperatureSensor, TemperatureThreshold,
};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Device, Nvml};
use serde_json::{Map, Value, json};

use crate::facts::answer::of_error;

/// Where Windows mounts the driver's libraries in WSL.
const WSL_LIBRARY: &str = "/usr/lib/wsl/lib/libnvidia-ml.so.1";
/// Fields 144 and 145 of nvml.h: memory rows that are remapped at the next reset, and whether
/// remapping has failed.
const REMAPPED_PENDING: u32 = 144;
const REMAPPED_FAILURE: u32 = 145;
/// Field 230 of nvml.h: what has to be done with the card after a fault.
const RECOVERY_ACTION: u32 = 230;

/// Makes all calls. Answers that do not arrive within the budget are missing.
pub(super) fn ask(budget: Duration) -> Value {
    let notes = Arc::new(Mutex::new(of_error(format_args!(
        "the driver did not respond within {:.0} s",
        budget.as_secs_f64()
    ))));
    let (finished, end) = mpsc::channel();
    let written = Arc::clone(&notes);
    let asking = thread::Builder::new().name("nvml".to_owned()).spawn(move || {
        ask_all(&Notes(written));
        // The caller may have given up.
        let _ = finished.send(());
    });
    if let Err(error) = asking {
        return of_error(error);
    }
    // Finished, late or panicked: the notes hold what was answered.
    let _ = end.recv_timeout(budget);
    notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The answers so far.
struct Notes(Arc<Mutex<Value>>);

impl Notes {
    fn change(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn put(&self, name: &str, answer: Value) {
        self.change(|notes| notes[name] = answer);
    }

    fn put_device(&self, index: u32, name: &str, answer: Value) {
        self.change(|notes| notes["devices"][index as usize][name] = answer);
    }
}

fn ask_all(notes: &Notes) {
    let nvml = match open() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_)) => return notes.change(|notes| *notes = Value::Null),
        Err(error) => return notes.change(|notes| *notes = failed(error)),
    };
    notes.change(|notes| *notes = json!({}));
    notes.put("driver_version", of(nvml.sys_driver_version()));
    notes.put("cuda_version", of(nvml.sys_cuda_driver_version()));
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return notes.put("devices", failed(error)),
    };
    notes.put("devices", json!(vec![json!({}); count as usize]));
    for index in 0..count {
        match nvml.device_by_index(index) {
            Ok(device) => ask_device(&device, index, notes),
            Err(error) => notes.change(|notes| notes["devices"][index as usize] = failed(error)),
        }
    }
    notes.put("topology", topology(&nvml, count));
    notes.put("peer_read", peer_read(&nvml, count));
}

/// WSL's own library takes precedence: a Linux driver inside WSL would shadow it and not work.
pub(crate) fn open() -> Result<Nvml, NvmlError> {
    if Path::new(WSL_LIBRARY).exists() {
        return Nvml::builder().lib_path(WSL_LIBRARY.as_ref()).init();
    }
    Nvml::init()
}

fn ask_device(device: &Device<'_>, index: u32, notes: &Notes) {
    let put = |name: &str, answer: Value| notes.put_device(index, name, answer);
    put("name", of(device.name()));
    put("uuid", of(device.uuid()));
    put("pci_bus_id", of(device.pci_info().map(|pci| pci.bus_id)));
    put(
        "memory",
        of(device
            .memory_info()
            .map(|memory| json!({ "total": memory.total, "used": memory.used, "free": memory.free }))),
    );
    put(
        "compute_capability",
        of(device.cuda_compute_capability().map(|of| format!("{}.{}", of.major, of.minor))),
    );
    put("nvlinks", nvlinks(device));
    put("compute_mode", of(device.compute_mode().map(compute_mode)));
    put("mig_mode", of(device.mig_mode().map(|mode| mode.current == 1)));
    put("mig_instances", of(device.mig_device_count().map(|count| mig_instances(device, count))));
    put("mig_devices", of(device.mig_device_count().map(|count| mig_devices(device, count))));
    put("processes", of(device.running_compute_processes().map(processes)));
    put("graphics_processes", of(device.running_graphics_processes().map(processes)));
    put("throttle_reasons", of(device.current_throttle_reasons().map(|reasons| reasons.bits())));
    put("temperature", of(device.temperature(TemperatureSensor::Gpu)));
    put("temperature_slowdown", of(device.temperature_threshold(TemperatureThreshold::Slowdown)));
    put("power_limit", of(device.enforced_power_limit()));
    put("power_limit_default", of(device.power_management_limit_default()));
    put("utilization", of(device.utilization_rates().map(|rates| rates.gpu)));
    put("performance_state", of(device.performance_state().map(|state| format!("{state:?}"))));
    put("pcie_width", of(device.current_pcie_link_width()));
    put("pcie_width_max", of(device.max_pcie_link_width()));
    put("pcie_generation", of(device.current_pcie_link_gen()));
    put("pcie_generation_max", of(device.max_pcie_link_gen()));
    put("pcie_replays", of(device.pcie_replay_counter()));
    put("ecc", of(device.is_ecc_enabled().map(|state| state.currently_enabled)));
    put("ecc_uncorrected", of(device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)));
    put("remapped_rows_pending", field(device, REMAPPED_PENDING));
    put("remapped_rows_failed", field(device, REMAPPED_FAILURE));
    put("recovery_action", field(device, RECOVERY_ACTION));
    #[cfg(target_os = "linux")]
    put("persistence", of(device.is_in_persistent_mode()));
    #[cfg(target_os = "windows")]
    put("driver_model", of(device.driver_model().map(|model| format!("{:?}", model.current))));
    put("display_active", of(device.is_display_active()));
    #[cfg(target_os = "linux")]
    put("numa_node", of(device.numa_node_id()));
}

fn compute_mode(mode: ComputeMode) -> &'static str {
    match mode {
        ComputeMode::Default => "default",
        ComputeMode::Prohibited => "prohibited",
        ComputeMode::ExclusiveProcess => "exclusive_process",
        ComputeMode::ExclusiveThread => "exclusive_thread",
    }
}

/// Whether each of the card's NVLinks is active; empty for a card without NVLink.
fn nvlinks(device: &Device<'_>) -> Value {
    /// As many as any card has.
    const MOST: u32 = 18;
    (0..MOST).map_while(|link| device.link_wrapper_for(link).is_active().ok()).collect()
}

/// The number of existing MIG instances, of the maximum number.
fn mig_instances(device: &Device<'_>, most: u32) -> usize {
    (0..most).filter(|&index| device.mig_device_by_index(index).is_ok()).count()
}

/// The UUIDs of the existing MIG instances and their memory.
fn mig_devices(device: &Device<'_>, most: u32) -> Value {
    let instances = (0..most).filter_map(|index| device.mig_device_by_index(index).ok());
    let answers = |instance: Device<'_>| {
        let memory = instance.memory_info().ok().map(|memory| memory.total);
        Some(json!({ "uuid": instance.uuid().ok()?, "memory": memory }))
    };
    instances.filter_map(answers).collect()
}

fn processes(found: Vec<nvml_wrapper::struct_wrappers::device::ProcessInfo>) -> Value {
    let processes = found.into_iter().map(|process| {
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        json!({ "pid": process.pid, "memory": memory, "name": super::processes::name_of(process.pid) })
    });
    processes.collect()
}

fn field(device: &Device<'_>, id: u32) -> Value {
    let sample = match device.field_values_for(&[FieldId(id)]).map(|mut samples| samples.pop()) {
        Ok(Some(Ok(sample))) => sample,
        Ok(Some(Err(error))) | Err(error) => return failed(error),
        Ok(None) => return Value::Null,
    };
    match sample.value {
        Ok(SampleValue::U32(value)) => json!(value),
        Ok(SampleValue::U64(value)) => json!(value),
        Ok(SampleValue::I64(value)) => json!(value),
        Ok(SampleValue::F64(value)) => json!(value),
        Err(error) => failed(error),
    }
}

/// How each pair of cards is connected, in the terms of `nvidia-smi topo -m`.
#[cfg(target_os = "linux")]
fn topology(nvml: &Nvml, count: u32) -> Value {
    use nvml_wrapper::enum_wrappers::device::TopologyLevel;

    let mut pairs = Map::new();
    for first in 0..count {
        for second in first + 1..count {
            let level = nvml.device_by_index(first).and_then(|device| {
                nvml.device_by_index(second).and_then(|other| device.topology_common_ancestor(other))
            });
            let word = level.map(|level| match level {
                TopologyLevel::Internal => "internal",
                TopologyLevel::Single => "PIX",
                TopologyLevel::Multiple => "PXB",
                TopologyLevel::HostBridge => "PHB",
                TopologyLevel::Node => "NODE",
                TopologyLevel::System => "SYS",
            });
            pairs.insert(format!("{first},{second}"), of(word));
        }
    }
    Value::Object(pairs)
}

#[cfg(not(target_os = "linux"))]
fn topology(_: &Nvml, _: u32) -> Value {
    Value::Object(Map::new())
}

/// Whether each pair of cards can read each other's memory, in the terms of `nvidia-smi topo -p2p r`.
#[cfg(target_os = "linux")]
fn peer_read(nvml: &Nvml, count: u32) -> Value {
    use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};

    let mut pairs = Map::new();
    for first in 0..count {
        for second in first + 1..count {
            let status = nvml.device_by_index(first).and_then(|device| {
                nvml.device_by_index(second)
                    .and_then(|other| device.p2p_status(&other, P2pCapabilitiesIndex::Read))
            });
            let word = status.map(|status| match status {
                P2pStatus::Ok => "OK",
                P2pStatus::ChipsetNotSupported => "CNS",
                P2pStatus::GpuNotSupported => "GNS",
                P2pStatus::IohTopologyNotSupported => "TNS",
                P2pStatus::DisabledByRegkey => "DR",
                P2pStatus::NotSupported => "NS",
                P2pStatus::Unknown => "U",
            });
            pairs.insert(format!("{first},{second}"), of(word));
        }
    }
    Value::Object(pairs)
}

#[cfg(not(target_os = "linux"))]
fn peer_read(_: &Nvml, _: u32) -> Value {
    Value::Object(Map::new())
}

fn of<T: Into<Value>>(answer: Result<T, NvmlError>) -> Value {
    answer.map_or_else(failed, Into::into)
}

/// NVML's error code, such as 3 for "not supported".
fn failed(error: NvmlError) -> Value {
    json!({ "error": u32::from(error) })
}
