//! `nvidia-smi --query-gpu=index,name,… --format=csv`: one line per card. The query has the names.

use serde_json::{Value, json};

use super::{
    Parsed, compute_mode, flag, lost_words, mebibytes, milliwatts, number, performance_state, recovery_action,
};

pub(super) fn read(line: &str, text: &str, parsed: &mut Parsed) {
    let Some((_, rest)) = line.split_once("--query-gpu=") else { return };
    let asked: Vec<&str> = rest.split([' ', '\'']).next().unwrap_or_default().split(',').collect();
    let rows = text.lines().filter(|row| row.split(", ").count() == asked.len());
    // The header repeats the names of the query, with units in brackets.
    let head = |row: &&str| {
        row.split(", ").next().is_some_and(|first| first.split(" [").next() == asked.first().copied())
    };
    for (place, row) in rows.filter(|row| !head(row)).enumerate() {
        let values: Vec<&str> = row.split(", ").map(str::trim).collect();
        let told_index =
            asked.iter().position(|name| *name == "index").and_then(|at| values[at].parse().ok());
        let index: usize = told_index.unwrap_or(place);
        if index >= 64 {
            continue;
        }
        for (name, value) in asked.iter().zip(&values) {
            answer(index, name, value, parsed);
        }
    }
}

fn answer(index: usize, asked: &str, value: &str, parsed: &mut Parsed) {
    if let Some(code) = lost_words(value) {
        return parsed.lost(index, code);
    }
    let known: Option<(&str, Option<Value>)> = Some(match asked {
        "name" | "gpu_name" => ("name", Some(value.into())),
        "uuid" | "gpu_uuid" => ("uuid", Some(value.into())),
        "pci.bus_id" | "gpu_bus_id" => ("pci_bus_id", Some(value.into())),
        "fabric.state" => ("fabric_state", Some(value.into())),
        "fabric.status" => ("fabric_status", Some(value.into())),
        "compute_cap" => ("compute_capability", number(value).map(|_| value.into())),
        "compute_mode" => ("compute_mode", compute_mode(value).map(Into::into)),
        "mig.mode.current" => ("mig_mode", flag(value).map(Into::into)),
        "utilization.gpu" => ("utilization", number(value).map(Into::into)),
        "pstate" => ("performance_state", performance_state(value).map(Into::into)),
        "pcie.link.width.current" => ("pcie_width", number(value).map(Into::into)),
        "pcie.link.width.max" => ("pcie_width_max", number(value).map(Into::into)),
        "pcie.link.gen.current" | "pcie.link.gen.gpucurrent" => {
            ("pcie_generation", number(value).map(Into::into))
        }
        "pcie.link.gen.max" => ("pcie_generation_max", number(value).map(Into::into)),
        "temperature.gpu" => ("temperature", number(value).map(Into::into)),
        "power.limit" | "enforced.power.limit" => ("power_limit", milliwatts(value).map(Into::into)),
        "power.default_limit" => ("power_limit_default", milliwatts(value).map(Into::into)),
        "persistence_mode" => ("persistence", flag(value).map(Into::into)),
        "gpu_recovery_action" => ("recovery_action", recovery_action(value).map(Into::into)),
        "display_active" => ("display_active", flag(value).map(Into::into)),
        "ecc.errors.uncorrected.volatile.total" => ("ecc_uncorrected", number(value).map(Into::into)),
        "clocks_event_reasons.active" | "clocks_throttle_reasons.active" => {
            let bits = value.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            ("throttle_reasons", bits.map(Into::into))
        }
        _ => return memory_or_driver(index, asked, value, parsed),
    });
    if let Some((name, Some(answer))) = known {
        parsed.put(index, name, answer);
    }
}

fn memory_or_driver(index: usize, asked: &str, value: &str, parsed: &mut Parsed) {
    match asked {
        "driver_version" => parsed.driver_version = Some(value.to_owned()),
        "memory.total" | "memory.used" | "memory.free" => {
            let Some(bytes) = mebibytes(value) else { return };
            let answers = parsed.devices.entry(index).or_default();
            let memory = answers.entry("memory").or_insert_with(|| json!({}));
            if let Some(memory) = memory.as_object_mut() {
                memory.entry(asked.trim_start_matches("memory.")).or_insert(bytes.into());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_order_of_the_query() {
        let line = "nvidia-smi --query-gpu=index,name,memory.total,pcie.link.width.current,clocks_throttle_reasons.active --format=csv";
        let text = "index, name, memory.total [MiB], pcie.link.width.current, clocks_throttle_reasons.active\n\
                    1, Tesla T4, 15360 MiB, 4, 0x0000000000000040\n";
        let mut parsed = Parsed::default();
        read(line, text, &mut parsed);
        let card = &parsed.devices[&1];
        assert_eq!(card["name"], "Tesla T4");
        assert_eq!(card["memory"]["total"], 15360u64 << 20);
        assert_eq!(card["pcie_width"], 4);
        assert_eq!(card["throttle_reasons"], 0x40);
    }
}
