//! How messages name machines.

use yolo_base::format::list;

/// A machine as messages name it: `machine 1 (lab-2)`.
pub fn named(machine: usize, host: &str) -> String {
    format!("machine {machine} ({host})")
}

/// `machine 2 of 3 is missing`.
pub fn missing_in_words(missing: &[usize], machines: usize) -> String {
    let all: Vec<String> = missing.iter().map(usize::to_string).collect();
    match missing.len() {
        1 => format!("machine {} of {machines} is missing", all[0]),
        _ => format!("machines {} of {machines} are missing", list(&all)),
    }
}
