//! The table that `nvidia-smi` prints without options. Each card has three lines with three cells:
//! name, bus and ECC; temperature, state, power, memory and compute mode; and the MIG mode. MIG
//! instances and processes follow.

use serde_json::{Value, json};

use super::{Parsed, compute_mode, flag, lost_words, mebibytes, number, performance_state};

pub(super) fn read(text: &str, parsed: &mut Parsed) {
    let (mut card, mut row) = (None, 0);
    let mut part = Part::Cards;
    for line in text.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once("Driver Version: ") {
            let version = rest.split_whitespace().next().unwrap_or_default();
            parsed.driver_version = Some(version.to_owned());
        }
        if let Some((_, rest)) = line.split_once("CUDA Version: ") {
            parsed.version_of_cuda(rest.split([' ', '|']).next().unwrap_or_default());
        }
        let Some(inner) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else { continue };
        if inner.contains("MIG devices:") {
            part = Part::Instances;
        } else if inner.contains("Processes:") {
            part = Part::Processes;
        }
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        match part {
            Part::Cards => {
                if let Some(index) = first_row(&cells, parsed) {
                    (card, row) = (Some(index), 1);
                } else if let Some(index) = card {
                    row += 1;
                    match row {
                        2 => second_row(index, &cells, parsed),
                        3 => third_row(index, &cells, parsed),
                        _ => card = None,
                    }
                }
            }
            Part::Instances => instance(&cells, parsed),
            Part::Processes => process(inner, parsed),
        }
    }
}

/// The parts of the table, from top to bottom.
enum Part {
    Cards,
    Instances,
    Processes,
}

/// `0  NVIDIA L40S   TCC | 00000000:61:00.0 Off | 0`, where the third word of the first cell
/// is the persistence mode, or the driver model on Windows.
fn first_row(cells: &[&str], parsed: &mut Parsed) -> Option<usize> {
    let [name, bus, ecc] = cells else { return None };
    let (index, name) = name.split_once(char::is_whitespace)?;
    let index = index.parse::<usize>().ok().filter(|index| *index < 64)?;
    let address = bus.split_whitespace().next().filter(|address| address.matches(':').count() == 2)?;
    let (name, mode) = name.trim().rsplit_once(char::is_whitespace)?;
    // How values of a lost card are printed.
    if name.trim() != "ERR!" {
        parsed.put(index, "name", name.trim());
    }
    parsed.put(index, "pci_bus_id", address);
    match mode {
        "TCC" => parsed.put(index, "driver_model", "WDM"),
        "WDDM" | "MCDM" => parsed.put(index, "driver_model", mode),
        other => {
            if let Some(on) = flag(other) {
                parsed.put(index, "persistence", on);
            }
        }
    }
    if let Some(errors) = number(ecc) {
        parsed.put(index, "ecc_uncorrected", errors);
    }
    Some(index)
}

/// `N/A  48C  P8  3W / N/A | 161MiB / 8192MiB | N/A  Default`
fn second_row(index: usize, cells: &[&str], parsed: &mut Parsed) {
    let [state, memory, mode] = cells else { return };
    // A broken fan is an `ERR!` too; only a lost card has one in place of its memory.
    let is_dumb = || {
        *memory == "Unknown Error"
            && state.split_whitespace().all(|word| matches!(word, "ERR!" | "/" | "N/A"))
    };
    if let Some(code) = lost_words(memory).or_else(|| is_dumb().then_some(999)) {
        return parsed.lost(index, code);
    }
    let mut words = state.split_whitespace();
    let temperature = words.clone().find_map(|word| word.strip_suffix('C').and_then(number));
    if let Some(temperature) = temperature {
        parsed.put(index, "temperature", temperature);
    }
    if let Some(state) = words.find_map(performance_state) {
        parsed.put(index, "performance_state", state);
    }
    if let Some((used, total)) = memory.split_once('/')
        && let (Some(used), Some(total)) = (mebibytes(used), mebibytes(total))
    {
        let free = total.saturating_sub(used);
        parsed.put(index, "memory", json!({ "total": total, "used": used, "free": free }));
    }
    // `98%      Default`
    if let Some(busy) = mode.split_whitespace().find_map(|word| word.strip_suffix('%').and_then(number)) {
        parsed.put(index, "utilization", busy);
    }
    // The mode may have two words: `E. Process`.
    let mode = ["E. Process", "E. Thread", "Prohibited", "Default"].iter().find(|name| mode.ends_with(*name));
    if let Some(mode) = mode.and_then(|mode| compute_mode(mode)) {
        parsed.put(index, "compute_mode", mode);
    }
}

fn third_row(index: usize, cells: &[&str], parsed: &mut Parsed) {
    if let Some(on) = cells.last().and_then(|cell| flag(cell)) {
        parsed.put(index, "mig_mode", on);
    }
}

/// `0    7   0   0 | 1MiB / 4864MiB | …`: card, GPU instance, compute instance, MIG device.
fn instance(cells: &[&str], parsed: &mut Parsed) {
    let numbers: Option<Vec<usize>> =
        cells.first().map(|cell| cell.split_whitespace().map_while(|word| word.parse().ok()).collect());
    let Some([card, _, _, _]) = numbers.as_deref() else { return };
    if let Some(answers) = parsed.devices.get_mut(card) {
        let known = answers.get("mig_instances").and_then(Value::as_u64).unwrap_or(0);
        answers.insert("mig_instances".to_owned(), (known + 1).into());
    }
}

/// `0   N/A  N/A      4242      C   python3      20400MiB`, without instances before version 450.
fn process(row: &str, parsed: &mut Parsed) {
    let words: Vec<&str> = row.split_whitespace().collect();
    let Some(card) = words.first().and_then(|word| word.parse::<usize>().ok()) else { return };
    let Some(kind) = words.iter().position(|word| matches!(*word, "C" | "G" | "C+G")) else { return };
    let Some(pid) = kind.checked_sub(1).and_then(|place| words[place].parse::<u64>().ok()) else { return };
    let memory = words.last().and_then(|word| mebibytes(word));
    let last = words.len() - usize::from(memory.is_some() || words.last() == Some(&"N/A"));
    let name = words.get(kind + 1..last).unwrap_or_default().join(" ");
    let list = if words[kind] == "G" { "graphics_processes" } else { "processes" };
    let Some(answers) = parsed.devices.get_mut(&card) else { return };
    let entry = json!({ "pid": pid, "name": name, "memory": memory });
    match answers.get_mut(list) {
        Some(Value::Array(known)) => known.push(entry),
        _ => drop(answers.insert(list.to_owned(), json!([entry]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 555.85                 Driver Version: 555.85         CUDA Version: 12.5     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-40GB          Off |   00000000:61:00.0 Off |                    2 |
| N/A   31C    P0             51W /  400W |   20409MiB /  40960MiB |      0%   E. Process |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
|  0    1   0   0  |              25MiB / 19968MiB    | 42      0 |  3   0    2    0    0 |
|  0    2   0   1  |              25MiB / 19968MiB    | 42      0 |  3   0    2    0    0 |
+------------------+----------------------------------+-----------+-----------------------+
| Processes:                                                                              |
|    0   N/A  N/A      4242      C   /opt/my env/bin/python                     20400MiB |
|    0   N/A  N/A      1100      G   /usr/lib/xorg/Xorg                                4MiB |
+-----------------------------------------------------------------------------------------+
";

    #[test]
    fn a_lost_card_is_recognized_in_the_table() {
        let text = "\
|   0  NVIDIA A10           Off | 00000000:3B:00.0 Off |                  N/A |
|ERR!   41C    P8    20W / 150W |      4MiB / 23028MiB |      0%      Default |
|   1  ERR!                ERR! | 00000000:5E:00.0 ERR! |                 ERR! |
|ERR!  ERR! ERR!    ERR! / ERR! |  GPU is lost         |    ERR!         ERR! |
|   2  NVIDIA A10           Off | 00000000:5F:00.0 Off |                  N/A |
|ERR!  ERR! ERR!    ERR! / ERR! |  Unknown Error       |    ERR!         ERR! |
";
        let mut parsed = Parsed::default();
        read(text, &mut parsed);
        // The first only has a broken fan.
        assert_eq!(parsed.devices[&0].get("error"), None);
        assert_eq!(
            Value::from(parsed.devices[&1].clone()),
            json!({ "error": 15, "pci_bus_id": "00000000:5E:00.0" })
        );
        assert_eq!(parsed.devices[&2]["error"], 999);
    }

    #[test]
    fn cards_instances_and_processes_are_read_from_the_table() {
        let mut parsed = Parsed::default();
        read(TABLE, &mut parsed);
        let card = &parsed.devices[&0];
        assert_eq!(card["name"], "NVIDIA A100-SXM4-40GB");
        assert_eq!(card["persistence"], false);
        assert_eq!(card["ecc_uncorrected"], 2);
        assert_eq!(card["performance_state"], "Zero");
        assert_eq!(card["compute_mode"], "exclusive_process");
        assert_eq!(card["mig_mode"], true);
        assert_eq!(card["mig_instances"], 2);
        assert_eq!(card["memory"]["total"], 40960u64 << 20);
        let held = json!([{ "pid": 4242, "name": "/opt/my env/bin/python", "memory": 20400u64 << 20 }]);
        assert_eq!(card["processes"], held);
        assert_eq!(card["graphics_processes"][0]["pid"], 1100);
    }
}
