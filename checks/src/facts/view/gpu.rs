//! The GPUs as NVML reports them. Each answer is read independently: an error of one call, such as 3
//! for "not supported", does not affect the others.

use serde_json::Value;

use super::version::Version;
use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

/// Whether NVML starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NvmlState {
    /// Its library does not exist.
    NoLibrary,
    /// It fails to start, with this error code of nvml.h.
    Failed(i64),
    /// It responds.
    Ready,
}

/// One GPU. Its methods are NVML's calls, each of which may fail independently.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// The index that nvidia-smi shows.
    pub index: usize,
    answers: Value,
}

/// Parts of the names of cards that are modules on a board of a server.
const MODULES: [&str; 10] = ["SXM", "HBM3", "H20", "H200", "H800", "B200", "B300", "GH200", "GB200", "GB300"];
/// Parts of the names of their relatives that are cards for a slot.
const IN_SLOTS: [&str; 2] = ["NVL", "PCIe"];

/// Memory of a GPU in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuMemory {
    /// Total bytes.
    pub total: u64,
    /// Bytes that no process holds.
    pub free: u64,
}

impl GpuMemory {
    /// Whether too little is free for even the CUDA context and libraries.
    pub fn is_full(&self) -> bool {
        self.free < 600_000_000
    }
}

/// A MIG instance of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigDevice {
    /// Such as `MIG-466be1f8-…`.
    pub uuid: String,
    /// Total bytes, if the driver reports them.
    pub memory: Option<u64>,
}

/// A process that uses a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuProcess {
    /// Its process id.
    pub pid: u64,
    /// Its name, if this user may see it.
    pub name: Option<String>,
    /// Bytes that it holds.
    pub memory: Option<u64>,
}

impl Host {
    /// Whether NVML exists and starts.
    pub fn nvml_state(&self) -> Fact<NvmlState> {
        Ok(match self.nvml()? {
            None => NvmlState::NoLibrary,
            Some(answers) => match answers.get("error") {
                Some(Value::Number(number)) => NvmlState::Failed(number.as_i64().unwrap_or(999)),
                Some(why) => return Err(Unknown(why.as_str().unwrap_or("NVML did not respond").to_owned())),
                None => NvmlState::Ready,
            },
        })
    }

    /// The GPUs in nvidia-smi's order, lost ones included.
    pub fn gpus(&self) -> Fact<Vec<Gpu>> {
        match self.nvml_state()? {
            NvmlState::NoLibrary => {
                Err(Unknown::because("no NVIDIA driver was found (libnvidia-ml is missing)"))
            }
            NvmlState::Failed(code) => {
                Err(Unknown(format!("the NVIDIA driver does not respond: {}", error_text(code))))
            }
            NvmlState::Ready => {
                let answers = self.nvml()?.unwrap_or(Value::Null);
                let devices = match &answers["devices"] {
                    Value::Array(devices) => devices.clone(),
                    Value::Object(_) => return Err(unknown(&answers, "devices")),
                    _ => return Err(Unknown::because("the driver does not list its GPUs")),
                };
                let number = |(place, answers): (usize, Value)| {
                    let reported = answers.get("index").and_then(Value::as_u64);
                    Gpu { index: reported.and_then(|index| index.try_into().ok()).unwrap_or(place), answers }
                };
                Ok(devices.into_iter().enumerate().map(number).collect())
            }
        }
    }

    /// How two GPUs are connected: `PIX`, `PXB`, `PHB`, `NODE` or `SYS`, as `nvidia-smi topo -m`.
    pub fn gpu_link(&self, first: usize, second: usize) -> Fact<String> {
        let answers = self.nvml()?.unwrap_or(Value::Null);
        let pair = format!("{},{}", first.min(second), first.max(second));
        let pairs = &answers["topology"];
        pairs[&pair].as_str().map(ToOwned::to_owned).ok_or_else(|| unknown(pairs, &pair))
    }

    /// Whether the driver says that two GPUs can read each other's memory, as `nvidia-smi topo -p2p r`.
    pub fn gpus_read_each_other(&self, first: usize, second: usize) -> Fact<bool> {
        let answers = self.nvml()?.unwrap_or(Value::Null);
        let pair = format!("{},{}", first.min(second), first.max(second));
        let pairs = &answers["peer_read"];
        match pairs[&pair].as_str() {
            Some(word) => Ok(word == "OK"),
            None => self.recorded_peer_read(first, second).ok_or_else(|| unknown(pairs, &pair)),
        }
    }

    /// The same in a recorded output of nvidia-smi.
    fn recorded_peer_read(&self, first: usize, second: usize) -> Option<bool> {
        let outputs = self.recorded_outputs("nvidia-smi").into_iter();
        let (_, output) = outputs.into_iter().find(|(line, _)| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.windows(2).any(|pair| pair == ["-p2p", "r"])
        })?;
        let row = format!("GPU{first}");
        let text = output.text();
        // The heading begins with the name of the first card, too.
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut of_card = rows.filter(|words| words.first() == Some(&row.as_str()));
        let words = of_card.find(|words| words.get(1).is_some_and(|word| !word.starts_with("GPU")))?;
        Some(*words.get(second + 1)? == "OK")
    }

    pub(super) fn nvml_text(&self, call: &str) -> Fact<String> {
        let answers = self.nvml_ready()?;
        answers[call].as_str().map(ToOwned::to_owned).ok_or_else(|| unknown(&answers, call))
    }

    pub(super) fn nvml_number(&self, call: &str) -> Fact<u64> {
        let answers = self.nvml_ready()?;
        answers[call].as_u64().ok_or_else(|| unknown(&answers, call))
    }

    fn nvml_ready(&self) -> Fact<Value> {
        match self.nvml_state()? {
            NvmlState::Ready => Ok(self.nvml()?.unwrap_or(Value::Null)),
            NvmlState::NoLibrary => {
                Err(Unknown::because("no NVIDIA driver was found (libnvidia-ml is missing)"))
            }
            NvmlState::Failed(code) => {
                Err(Unknown(format!("the NVIDIA driver does not respond: {}", error_text(code))))
            }
        }
    }
}

impl Gpu {
    /// NVML's error code if the card cannot be opened, such as 15 for a lost one.
    pub fn lost(&self) -> Option<i64> {
        self.answers.get("error").map(|code| code.as_i64().unwrap_or(999))
    }

    /// Whether its index is known: nvidia-smi mostly names only the address of a card that it cannot
    /// open.
    pub fn is_numbered(&self) -> bool {
        self.answers.get("index").is_none_or(Value::is_u64)
    }

    /// `GPU 3`, `GPU 3 (0000:C1:00.0)` or, if the index is unknown, `the GPU at 0000:C1:00.0`.
    pub fn place(&self) -> String {
        match (self.is_numbered(), self.pci_bus_id()) {
            (true, Ok(address)) => format!("GPU {} ({address})", self.index),
            (true, Err(_)) => format!("GPU {}", self.index),
            (false, Ok(address)) => format!("the GPU at {address}"),
            (false, Err(_)) => "a GPU".to_owned(),
        }
    }

    /// NVML's error code of one call.
    pub fn error(&self, call: &str) -> Option<i64> {
        self.lost().or_else(|| self.answers.get(call)?.get("error")?.as_i64())
    }

    /// Such as `NVIDIA GeForce RTX 4090`.
    pub fn name(&self) -> Fact<String> {
        self.text("name")
    }

    /// Whether this is a module on the board of a server, which has neither plugs nor a slot; its name says so.
    pub fn is_module(&self) -> bool {
        let name = self.name().unwrap_or_default();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        has(&MODULES) && !has(&IN_SLOTS)
    }

    /// Such as `GPU-466be1f8-…`.
    pub fn uuid(&self) -> Fact<String> {
        self.text("uuid")
    }

    /// Such as `00000000:01:00.0`.
    pub fn pci_bus_id(&self) -> Fact<String> {
        self.text("pci_bus_id")
    }

    /// Its memory.
    pub fn memory(&self) -> Fact<GpuMemory> {
        let memory = self.answers.get("memory").unwrap_or(&Value::Null);
        let number = |name: &str| memory[name].as_u64();
        let total = number("total").ok_or_else(|| self.unknown("memory"))?;
        let free = number("free").or_else(|| total.checked_sub(number("used")?));
        // A library that shares a card among users may report more than the card has.
        let free = free.filter(|_| number("used").is_none_or(|used| used <= total));
        Ok(GpuMemory { total, free: free.ok_or_else(|| self.unknown("memory"))? })
    }

    /// The compute capability, such as 8.6.
    pub fn capability(&self) -> Fact<(u32, u32)> {
        let text = match (self.text("compute_capability"), self.name()) {
            (Ok(text), _) => text,
            // A capability that was not asked for may follow from the name.
            (Err(why), Ok(name)) => return super::gpu_names::capability(&name).ok_or(why),
            (Err(why), Err(_)) => return Err(why),
        };
        let version = Version::find(&text).ok_or_else(|| self.unknown("compute_capability"))?;
        Ok((version.major(), version.minor()))
    }

    /// `default`, `prohibited`, `exclusive_process` or `exclusive_thread`.
    pub fn compute_mode(&self) -> Fact<String> {
        self.text("compute_mode")
    }

    /// Whether MIG divides the card into instances.
    pub fn mig(&self) -> Fact<bool> {
        self.flag("mig_mode")
    }

    /// The number of MIG instances.
    pub fn mig_instances(&self) -> Fact<u64> {
        self.number("mig_instances")
    }

    /// The MIG instances, as far as the driver names them.
    pub fn mig_devices(&self) -> Fact<Vec<MigDevice>> {
        let found = self.answers.get("mig_devices").and_then(Value::as_array);
        let found = found.ok_or_else(|| self.unknown("mig_devices"))?;
        let device = |one: &Value| {
            Some(MigDevice { uuid: one["uuid"].as_str()?.to_owned(), memory: one["memory"].as_u64() })
        };
        Ok(found.iter().filter_map(device).collect())
    }

    /// Whether each of its NVLinks is active; empty without NVLink.
    pub fn nvlinks(&self) -> Fact<Vec<bool>> {
        let found = self.answers.get("nvlinks").and_then(Value::as_array);
        let found = found.ok_or_else(|| self.unknown("nvlinks"))?;
        Ok(found.iter().filter_map(Value::as_bool).collect())
    }

    /// Processes that compute on it.
    pub fn processes(&self) -> Fact<Vec<GpuProcess>> {
        self.processes_of("processes")
    }

    /// Processes that draw on it.
    pub fn graphics_processes(&self) -> Fact<Vec<GpuProcess>> {
        self.processes_of("graphics_processes")
    }

    fn processes_of(&self, call: &str) -> Fact<Vec<GpuProcess>> {
        let found = self.answers.get(call).and_then(Value::as_array);
        let found = found.ok_or_else(|| self.unknown(call))?;
        let process = |one: &Value| {
            Some(GpuProcess {
                pid: one["pid"].as_u64()?,
                name: one["name"].as_str().map(ToOwned::to_owned),
                memory: one["memory"].as_u64(),
            })
        };
        Ok(found.iter().filter_map(process).collect())
    }

    /// Why its clocks are throttled: the bits of `nvmlClocksEventReasons`.
    pub fn throttle_reasons(&self) -> Fact<u64> {
        self.number("throttle_reasons")
    }

    /// An answer that is a number, by its name in the recording.
    pub fn number(&self, call: &str) -> Fact<u64> {
        self.answers.get(call).and_then(Value::as_u64).ok_or_else(|| self.unknown(call))
    }

    /// An answer that is a boolean.
    pub fn flag(&self, call: &str) -> Fact<bool> {
        self.answers.get(call).and_then(Value::as_bool).ok_or_else(|| self.unknown(call))
    }

    /// An answer that is text.
    pub fn text(&self, call: &str) -> Fact<String> {
        let text = self.answers.get(call).and_then(Value::as_str);
        text.map(ToOwned::to_owned).ok_or_else(|| self.unknown(call))
    }

    fn unknown(&self, call: &str) -> Unknown {
        match self.lost() {
            Some(code) => Unknown(format!("GPU {}: {}", self.index, error_text(code))),
            None => unknown_of(&self.answers, call, &format!(" of GPU {}", self.index)),
        }
    }
}

fn unknown(answers: &Value, call: &str) -> Unknown {
    unknown_of(answers, call, "")
}

/// Why the driver's answer to a call is not known; `owner` is ` of GPU 0`, or empty.
fn unknown_of(answers: &Value, call: &str, owner: &str) -> Unknown {
    let what = format!("the {}{owner}", call.replace('_', " "));
    Unknown(match answers.get(call).and_then(|answer| answer.get("error")) {
        Some(code) => {
            format!("the driver does not report {what}: {}", error_text(code.as_i64().unwrap_or(999)))
        }
        None => format!("the driver did not report {what} in time, or was not asked for it"),
    })
}

/// The meaning of an NVML error code.
pub(crate) fn error_text(code: i64) -> String {
    let text = match code {
        1 => "it is not initialized",
        3 => "not supported",
        4 => "permission denied",
        8 => "the power cables of the GPU are not connected properly",
        9 => "its kernel module is not loaded",
        10 => "it timed out",
        12 => "its library is missing",
        13 => "this driver is too old for the query",
        15 => "the GPU is lost",
        16 => "the GPU must be reset",
        17 => "the operating system blocks access to the GPU",
        18 => "the versions of its library and its kernel module differ",
        19 => "the GPU is in use",
        999 => return "unknown error (NVML error 999)".to_owned(),
        _ => return format!("NVML error {code}"),
    };
    format!("{text} (NVML error {code})")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(nvml: Value) -> Host {
        Host::from_value(json!({ "version": 1, "nvml": nvml })).unwrap().0
    }

    #[test]
    fn each_call_fails_independently() {
        let gpus = host(json!({ "devices": [
            { "name": "NVIDIA A10", "memory": { "total": 24, "free": 20 }, "processes": { "error": 999 },
              "compute_capability": "8.6" },
            { "error": 15 },
        ]}))
        .gpus()
        .unwrap();
        assert_eq!(gpus[0].memory().unwrap(), GpuMemory { total: 24, free: 20 });
        assert_eq!(gpus[0].capability(), Ok((8, 6)));
        assert_eq!(
            gpus[0].processes().unwrap_err().0,
            "the driver does not report the processes of GPU 0: unknown error (NVML error 999)"
        );
        assert_eq!(gpus[1].lost(), Some(15));
        assert_eq!(gpus[1].name().unwrap_err().0, "GPU 1: the GPU is lost (NVML error 15)");
    }

    #[test]
    fn modules_are_told_from_cards_by_their_names() {
        let is_module =
            |name: &str| host(json!({ "devices": [{ "name": name }] })).gpus().unwrap()[0].is_module();
        for name in [
            "Tesla V100-SXM2-32GB",
            "NVIDIA A100-SXM4-80GB",
            "NVIDIA A800-SXM4-80GB",
            "NVIDIA H100 80GB HBM3",
            "NVIDIA H20",
            "NVIDIA H800",
            "NVIDIA H200",
            "NVIDIA B200",
            "NVIDIA B300 SXM6 AC",
            "NVIDIA GH200 480GB",
            "NVIDIA GB200",
            "NVIDIA GB300",
        ] {
            assert!(is_module(name), "{name}");
        }
        for name in [
            "NVIDIA GeForce RTX 4090",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "NVIDIA A100-PCIE-40GB",
            "NVIDIA A100 80GB PCIe",
            "NVIDIA H100 PCIe",
            "NVIDIA H100 NVL",
            "NVIDIA H200 NVL",
            "NVIDIA H800 PCIe",
            "NVIDIA L20",
        ] {
            assert!(!is_module(name), "{name}");
        }
    }

    #[test]
    fn the_state_of_nvml_is_its_error_if_it_does_not_start() {
        assert_eq!(host(Value::Null).nvml_state(), Ok(NvmlState::NoLibrary));
        assert_eq!(host(json!({ "error": 18 })).nvml_state(), Ok(NvmlState::Failed(18)));
        assert_eq!(host(json!({ "devices": [] })).gpus(), Ok(Vec::new()));
        assert!(host(json!({ "error": "the driver gave no answer within 10 s" })).nvml_state().is_err());
    }
}
