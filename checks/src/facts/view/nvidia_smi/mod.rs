//! Converts the output of `nvidia-smi` to answers of NVML, for recordings that are written by hand or
//! come from bug reports. Each of the four forms has its own file: the table, the list (`-L`), the
//! values of `--query-gpu`, and the long report (`-q`). A live host uses NVML, which is a hundred times
//! faster.

mod links;
mod list;
mod parsed;
mod query;
mod report;
mod table;
mod values;

use serde_json::{Map, Value, json};

use crate::facts::host::Host;
use crate::facts::view::kernel_log::pci_address;
use parsed::Parsed;
use values::{
    compute_mode, flag, lost_words, mebibytes, milliwatts, number, performance_state, recovery_action,
};

impl Host {
    /// NVML's answers in a recording with those that only its outputs of nvidia-smi have; `None` if there are
    /// no more.
    pub(in crate::facts) fn completed(&self, mut answers: Value) -> Option<Value> {
        let devices = answers.get_mut("devices")?.as_array_mut().filter(|devices| !devices.is_empty())?;
        let of_smi = self.nvml_of_nvidia_smi()?;
        for (device, more) in devices.iter_mut().zip(of_smi.get("devices")?.as_array()?) {
            let (Some(device), Some(more)) = (device.as_object_mut(), more.as_object()) else { continue };
            if device.contains_key("error") || more.contains_key("error") {
                continue;
            }
            for (name, answer) in more {
                device.entry(name.clone()).or_insert_with(|| answer.clone());
            }
        }
        Some(answers)
    }

    /// NVML's answers from recorded outputs of nvidia-smi; `None` if there are none.
    pub(in crate::facts) fn nvml_of_nvidia_smi(&self) -> Option<Value> {
        let outputs = self.recorded_outputs("nvidia-smi");
        if outputs.is_empty() {
            // Recorded as missing: the tool comes with the driver.
            let without_tool = self.is_recorded() && self.command(&["nvidia-smi"]) == Ok(None);
            return without_tool.then_some(Value::Null);
        }
        let mut parsed = Parsed::default();
        let mut failure = None;
        for (line, output) in &outputs {
            let text = output.all_text();
            failure = failure.or_else(|| failed(&text));
            list::read(&text, &mut parsed);
            table::read(&text, &mut parsed);
            query::read(line, &text, &mut parsed);
            report::read(&text, &mut parsed);
            links::read(line, &text, &mut parsed);
        }
        if parsed.devices.is_empty() && parsed.driver_version.is_none() {
            return failure;
        }
        let count = parsed.devices.keys().next_back().map_or(0, |last| last + 1);
        let device = |index: usize| Value::from(parsed.devices.get(&index).cloned().unwrap_or_default());
        let mut answers = json!({ "devices": (0..count.min(64)).map(device).collect::<Vec<_>>() });
        if let Some(Value::Array(lost)) = failure.as_ref().map(|failure| failure["devices"].clone())
            && let Some(devices) = answers["devices"].as_array_mut()
        {
            place(devices, lost);
        }
        if let Some(version) = parsed.driver_version {
            answers["driver_version"] = version.into();
        }
        if let Some(version) = parsed.cuda_version {
            answers["cuda_version"] = version.into();
        }
        Some(answers)
    }
}

/// The error message of nvidia-smi, as NVML's answer.
fn failed(text: &str) -> Option<Value> {
    const CAUSES: [(&str, i64); 8] = [
        ("Driver/library version mismatch", 18),
        ("couldn't communicate with the NVIDIA driver", 9),
        ("Driver Not Loaded", 9),
        ("blocked by the operating system", 17),
        ("Insufficient Permissions", 4),
        ("NVML: GPU is lost", 15),
        ("NVML: Unknown Error", 999),
        ("NVML: Not Found", 12),
    ];
    // After losing its only card, the tool also prints that no devices were found.
    let lost: Vec<Value> = text.lines().filter_map(unopened).collect();
    if !lost.is_empty() {
        return Some(json!({ "devices": lost }));
    }
    if text.contains("No devices were found") {
        return Some(json!({ "devices": [] }));
    }
    if ["couldn't find libnvidia-ml.so", "command not found"].iter().any(|words| text.contains(words)) {
        return Some(Value::Null);
    }
    CAUSES.iter().find(|(words, _)| text.contains(words)).map(|(_, code)| json!({ "error": code }))
}

/// `Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error`, with `gpu` in lower
/// case from old versions. Most versions omit the number, and then `index` is null: the card's
/// position in the list is not its index.
fn unopened(line: &str) -> Option<Value> {
    let (_, rest) = line.split_once("Unable to determine the device handle for ")?;
    let rest = rest.strip_prefix("GPU").or_else(|| rest.strip_prefix("gpu"))?;
    let code = match rest {
        why if why.contains("insufficiently powered") => 8,
        why if why.contains("reset") => 16,
        _ => 15,
    };
    let mut words = rest.split_whitespace().map(|word| word.trim_end_matches(':')).peekable();
    let index = words.next_if(|word| !word.contains(':')).and_then(|word| word.parse::<u64>().ok());
    let mut card = json!({ "error": code, "index": index });
    if let Some(address) = words.next().filter(|word| pci_address(word).is_some()) {
        card["pci_bus_id"] = address.into();
    }
    Some(card)
}

/// Inserts cards that cannot be opened at their index: cards with a known index, or if there are as
/// many of them as gaps in the list. The others follow the cards that respond.
fn place(devices: &mut Vec<Value>, mut lost: Vec<Value>) {
    // One output may list a card as lost, and another only its address.
    let address = |card: &Value| card["pci_bus_id"].as_str().and_then(pci_address);
    let is_marked = |card: &Value| {
        let same = |device: &&Value| address(device).is_some() && address(device) == address(card);
        devices.iter().find(same).is_some_and(|device| !device["error"].is_null())
    };
    lost.retain(|card| !is_marked(card));
    let is_gap = |device: &Value| device.as_object().is_some_and(Map::is_empty);
    let fills = devices.iter().filter(|device| is_gap(device)).count() == lost.len();
    for mut card in lost {
        let named = card["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let gap = named.or_else(|| devices.iter().position(is_gap).filter(|_| fills));
        match gap.and_then(|gap| devices.get_mut(gap)).filter(|device| is_gap(device)) {
            Some(device) => {
                card["index"] = gap.into();
                *device = card;
            }
            None => devices.push(card),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nvml(commands: Value) -> Option<Value> {
        Host::from_value(json!({ "version": 1, "commands": commands })).unwrap().0.nvml_of_nvidia_smi()
    }

    #[test]
    fn failures_become_nvml_errors() {
        let of = |text: &str| nvml(json!({ "nvidia-smi": { "exit": 9, "stdout": text } })).unwrap();
        assert_eq!(of("Failed to initialize NVML: Driver/library version mismatch\n")["error"], 18);
        assert_eq!(
            of("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")["error"],
            9
        );
        assert_eq!(of("Failed to initialize NVML: GPU access blocked by the operating system")["error"], 17);
        assert_eq!(of("Failed to initialize NVML: Unknown Error")["error"], 999);
        assert_eq!(of("No devices were found\n"), json!({ "devices": [] }));
        let lost = "Unable to determine the device handle for GPU0000:03:00.0: Unknown Error\n";
        let card = json!({ "error": 15, "index": null, "pci_bus_id": "0000:03:00.0" });
        assert_eq!(of(lost), json!({ "devices": [card] }));
        assert_eq!(of(&format!("{lost}No devices were found\n")), json!({ "devices": [card] }));
        let numbered = "Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error\n";
        let card = json!({ "error": 15, "index": 3, "pci_bus_id": "0000:C1:00.0" });
        assert_eq!(of(numbered), json!({ "devices": [card] }));
        assert_eq!(nvml(json!({ "nvidia-smi": null })), Some(Value::Null));
        assert_eq!(nvml(json!({})), None);
    }

    #[test]
    fn a_card_that_cannot_be_opened_is_recognized_in_all_versions() {
        let code = |line: &str| unopened(line).map(|card| card["error"].clone());
        for (why, error) in [
            ("GPU 0000:0B:00.0: Unknown Error", 15),
            ("gpu 0000:0B:00.0: Unknown Error", 15),
            ("GPU 0000:09:00.0: Unable to communicate with GPU because it is insufficiently powered.", 8),
            ("GPU 0000:09:00.0: GPU requires reset.", 16),
        ] {
            let line = format!("Unable to determine the device handle for {why}");
            assert_eq!(code(&line), Some(error.into()), "{why}");
        }
        assert_eq!(code("Unable to determine the state"), None);
    }

    #[test]
    fn a_lost_card_in_several_outputs_is_counted_once() {
        let table = "|   0  ERR!                ERR! | 00000000:C1:00.0 ERR! |                 ERR! |\n\
                     |ERR!  ERR! ERR!    ERR! / ERR! |  GPU is lost         |    ERR!         ERR! |\n";
        let lost = "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.\n";
        let parsed = nvml(json!({ "nvidia-smi": table, "nvidia-smi -L": lost })).unwrap();
        assert_eq!(parsed["devices"], json!([{ "error": 15, "pci_bus_id": "00000000:C1:00.0" }]));
    }

    #[test]
    fn a_card_that_cannot_be_opened_fills_the_gap_in_the_list() {
        let list = "GPU 0: NVIDIA A10 (UUID: GPU-0)\nGPU 2: NVIDIA A10 (UUID: GPU-2)\n";
        let lost = "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.\n";
        let parsed = nvml(json!({ "nvidia-smi": lost, "nvidia-smi -L": list })).unwrap();
        assert_eq!(parsed["devices"][1], json!({ "error": 15, "index": 1, "pci_bus_id": "0000:C1:00.0" }));
        assert_eq!(parsed["devices"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn several_outputs_are_combined() {
        let table = "| NVIDIA-SMI 470.57.02    Driver Version: 510.06       CUDA Version: 11.6     |\n\
                     |   0  NVIDIA GeForce ...  On   | 00000000:01:00.0 Off |                  N/A |\n\
                     | N/A   48C    P8     3W /  N/A |    161MiB /  8192MiB |     N/A      Default |\n";
        let parsed = nvml(json!({
            "nvidia-smi": table,
            "nvidia-smi -L": "GPU 0: NVIDIA GeForce RTX 2080 (UUID: GPU-1)\n",
            "nvidia-smi --query-gpu=index,compute_cap --format=csv,noheader": "0, 7.5\n",
        }))
        .unwrap();
        assert_eq!(parsed["driver_version"], "510.06");
        assert_eq!(parsed["cuda_version"], 11060);
        assert_eq!(parsed["devices"][0]["name"], "NVIDIA GeForce RTX 2080");
        assert_eq!(parsed["devices"][0]["compute_capability"], "7.5");
        assert_eq!(parsed["devices"][0]["memory"]["used"], 161u64 << 20);
    }

    proptest! {
        #[test]
        fn any_output_is_read(
            line in "nvidia-smi (-q|-L|--query-gpu=[a-z.,_]{0,20} --format=csv)?",
            text in "(GPU |\\||[0-9]|:|MiB|, |\\.|UUID|Version|\\PC|\n){0,60}",
        ) {
            let mut commands = Map::new();
            commands.insert(line, Value::from(text));
            let _ = nvml(Value::from(commands));
        }
    }
}
