//! `nvidia-smi -q`: indented lines of `name : value` under headings. The meaning of a
//! value such as `Current` depends on the headings above it.

use serde_json::{Value, json};

use super::{
    Parsed, compute_mode, flag, lost_words, mebibytes, milliwatts, number, performance_state, recovery_action,
};

/// The bit of nvml.h for each throttle reason.
const REASONS: [(&str, u64); 6] = [
    ("SW Power Cap", 0x4),
    ("HW Slowdown", 0x8),
    ("SW Thermal Slowdown", 0x20),
    ("HW Thermal Slowdown", 0x40),
    ("HW Power Brake Slowdown", 0x80),
    ("Idle", 0x1),
];

pub(super) fn read(text: &str, parsed: &mut Parsed) {
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut card: Option<usize> = None;
    let mut next = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let words = line.trim();
        if indent == 0 && is_card(words) {
            card = Some(next);
            parsed.put(next, "pci_bus_id", words.trim_start_matches("GPU "));
            next += 1;
            headings.clear();
            continue;
        }
        while headings.last().is_some_and(|(above, _)| *above >= indent) {
            headings.pop();
        }
        let Some((name, value)) = words.split_once(" : ") else {
            headings.push((indent, words));
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        // Some values are headings too: `HW Slowdown : Active` has its causes below it.
        let path: Vec<&str> = headings.iter().map(|(_, words)| *words).collect();
        match card {
            None if name == "Driver Version" => parsed.driver_version = Some(value.to_owned()),
            None if name == "CUDA Version" => parsed.version_of_cuda(value),
            None => {}
            Some(card) => answer(card, &path, name, value, parsed),
        }
    }
}

/// `GPU 00000000:01:00.0`
fn is_card(words: &str) -> bool {
    words.strip_prefix("GPU ").is_some_and(|address| {
        address.matches(':').count() == 2
            && address.chars().all(|letter| letter.is_ascii_hexdigit() || ":.".contains(letter))
    })
}

fn answer(card: usize, path: &[&str], name: &str, value: &str, parsed: &mut Parsed) {
    fn put_in(parsed: &mut Parsed, card: usize, name: &str, answer: Option<impl Into<serde_json::Value>>) {
        if let Some(answer) = answer {
            parsed.put(card, name, answer);
        }
    }
    if let Some(code) = lost_words(value) {
        return parsed.lost(card, code);
    }
    let under = |heading: &str| path.contains(&heading);
    match name {
        "Product Name" => parsed.put(card, "name", value),
        "GPU UUID" => parsed.put(card, "uuid", value),
        "Compute Mode" => put_in(parsed, card, "compute_mode", compute_mode(value)),
        "Performance State" => {
            put_in(parsed, card, "performance_state", performance_state(value));
        }
        "Gpu" | "GPU" if path.last() == Some(&"Utilization") => {
            put_in(parsed, card, "utilization", number(value))
        }
        "Persistence Mode" => put_in(parsed, card, "persistence", flag(value)),
        "Display Active" => put_in(parsed, card, "display_active", flag(value)),
        "State" if path.last() == Some(&"Fabric") => parsed.put(card, "fabric_state", value),
        "Status" if path.last() == Some(&"Fabric") => parsed.put(card, "fabric_status", value),
        "Current" if under("MIG Mode") => put_in(parsed, card, "mig_mode", flag(value)),
        "Current" if under("Link Width") => put_in(parsed, card, "pcie_width", number(value)),
        "Max" if under("Link Width") => put_in(parsed, card, "pcie_width_max", number(value)),
        "Current" if under("PCIe Generation") => {
            put_in(parsed, card, "pcie_generation", number(value));
        }
        "Max" if under("PCIe Generation") => {
            put_in(parsed, card, "pcie_generation_max", number(value));
        }
        "Replays Since Reset" => put_in(parsed, card, "pcie_replays", number(value)),
        "GPU Current Temp" => put_in(parsed, card, "temperature", number(value)),
        "GPU Slowdown Temp" => put_in(parsed, card, "temperature_slowdown", number(value)),
        "Enforced Power Limit" | "Power Limit" | "Current Power Limit" => {
            put_in(parsed, card, "power_limit", milliwatts(value));
        }
        "Default Power Limit" => put_in(parsed, card, "power_limit_default", milliwatts(value)),
        "Pending" if under("Remapped Rows") => {
            put_in(parsed, card, "remapped_rows_pending", flag(value));
        }
        "GPU Recovery Action" => put_in(parsed, card, "recovery_action", recovery_action(value)),
        "Remapping Failure Occurred" => {
            put_in(parsed, card, "remapped_rows_failed", flag(value));
        }
        "Total" | "Used" | "Free" if under("FB Memory Usage") => {
            let Some(bytes) = mebibytes(value) else { return };
            let answers = parsed.devices.entry(card).or_default();
            if let Some(memory) = answers.entry("memory").or_insert_with(|| json!({})).as_object_mut() {
                memory.entry(name.to_ascii_lowercase()).or_insert(bytes.into());
            }
        }
        _ if path.last() == Some(&"Processes") => process(card, name, value, parsed),
        _ if under("Volatile") && name.contains("Uncorrectable") => {
            add(card, "ecc_uncorrected", number(value).unwrap_or(0), parsed, |old, new| {
                old.saturating_add(new)
            });
        }
        _ => {
            // The counters below `Clocks Event Reasons Counters` are history, not current state.
            let bit = REASONS.iter().find(|(reason, _)| *reason == name).map(|(_, bit)| *bit);
            if let (Some(bit), Some(active)) = (bit, flag(value)) {
                add(card, "throttle_reasons", if active { bit } else { 0 }, parsed, |old, new| old | new);
            }
        }
    }
}

/// `Process ID : 21034` begins a process, and the indented lines below describe it. `Type : G` marks a
/// graphics process.
fn process(card: usize, name: &str, value: &str, parsed: &mut Parsed) {
    let answers = parsed.devices.entry(card).or_default();
    let mut list = |kind: &str| answers.entry(kind.to_owned()).or_insert_with(|| json!([])).take();
    let (mut computing, mut drawing) = (list("processes"), list("graphics_processes"));
    if let (Some(computing), Some(drawing)) = (computing.as_array_mut(), drawing.as_array_mut()) {
        // The last process, which has no name yet.
        let is_open = |list: &Vec<Value>| list.last().is_some_and(|last| last["name"].is_null());
        match name {
            "Process ID" => computing.extend(number(value).map(|pid| json!({ "pid": pid }))),
            "Type" if value == "G" => drawing.extend(computing.pop()),
            "Name" => {
                let list = if is_open(computing) { &mut *computing } else { &mut *drawing };
                list.last_mut().into_iter().for_each(|last| last["name"] = value.into());
            }
            "Used GPU Memory" => {
                let bytes = mebibytes(value);
                let named = computing.iter_mut().chain(drawing.iter_mut());
                let open = named.filter(|one| !one["name"].is_null() && one["memory"].is_null()).last();
                open.into_iter().for_each(|one| one["memory"] = bytes.map_or(Value::Null, Value::from));
            }
            _ => {}
        }
    }
    answers.insert("processes".to_owned(), computing);
    answers.insert("graphics_processes".to_owned(), drawing);
}

fn add(card: usize, name: &str, number: u64, parsed: &mut Parsed, join: impl Fn(u64, u64) -> u64) {
    let answers = parsed.devices.entry(card).or_default();
    let old = answers.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    answers.insert(name.to_owned(), join(old, number).into());
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
==============NVSMI LOG==============

Driver Version                            : 550.54.14
CUDA Version                              : 12.4

Attached GPUs                             : 1
GPU 00000000:3B:00.0
    Product Name                          : Tesla V100-SXM2-16GB
    MIG Mode
        Current                           : N/A
    GPU Link Info
        PCIe Generation
            Max                           : 3
            Current                       : 1
        Link Width
            Max                           : 16x
            Current                       : 4x
    Fabric
        State                             : In Progress
        Status                            : N/A
    Performance State                     : P0
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Active
    Clocks Event Reasons Counters
        SW Thermal Slowdown               : 5138 us
    FB Memory Usage
        Total                             : 16384 MiB
        Used                              : 4 MiB
        Free                              : 16380 MiB
    Compute Mode                          : Exclusive_Process
    GPU Recovery Action                   : Drain and Reset
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : 3
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Pending                           : Yes
        Remapping Failure Occurred        : No
";

    #[test]
    fn headings_determine_the_meaning_of_values() {
        let mut parsed = Parsed::default();
        read(REPORT, &mut parsed);
        assert_eq!(parsed.driver_version.as_deref(), Some("550.54.14"));
        assert_eq!(parsed.cuda_version, Some(12040));
        let card = &parsed.devices[&0];
        assert_eq!(card["name"], "Tesla V100-SXM2-16GB");
        assert_eq!((&card["pcie_width"], &card["pcie_width_max"]), (&json!(4), &json!(16)));
        assert_eq!((&card["pcie_generation"], &card["pcie_generation_max"]), (&json!(1), &json!(3)));
        assert_eq!(card["throttle_reasons"], 0x88);
        assert_eq!((&card["fabric_state"], &card["fabric_status"]), (&json!("In Progress"), &json!("N/A")));
        assert_eq!(card["compute_mode"], "exclusive_process");
        assert_eq!(card["ecc_uncorrected"], 3);
        assert_eq!(card["remapped_rows_pending"], true);
        assert_eq!(card["recovery_action"], 4);
        assert_eq!(card.get("mig_mode"), None);
        assert_eq!(card["memory"]["free"], 16380u64 << 20);
    }
}
