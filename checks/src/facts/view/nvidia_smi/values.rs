//! Single values of `nvidia-smi`, as NVML reports them.

/// The NVML error for the text that replaces the values of a card that no longer responds.
pub(super) fn lost_words(value: &str) -> Option<i64> {
    match value.trim().trim_start_matches('[').trim_end_matches(']') {
        "GPU is lost" => Some(15),
        "GPU requires reset" => Some(16),
        _ => None,
    }
}

/// `24564 MiB`, or `24564` if the query asked for no units, in bytes.
pub(super) fn mebibytes(text: &str) -> Option<u64> {
    let number = text.trim().trim_end_matches("MiB").trim();
    number.parse::<u64>().ok()?.checked_mul(1 << 20)
}

/// `450.00 W` in milliwatts.
pub(super) fn milliwatts(text: &str) -> Option<u64> {
    let watts: f64 = text.trim().trim_end_matches('W').trim().parse().ok()?;
    (watts > 0.0).then_some((watts * 1000.0) as u64)
}

/// The leading number: `16x` is 16, `45 C` is 45.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// `P8` as NVML's enumeration writes it.
pub(super) fn performance_state(text: &str) -> Option<&'static str> {
    const STATES: [&str; 16] = [
        "Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven",
        "Twelve", "Thirteen", "Fourteen", "Fifteen",
    ];
    STATES.get(text.trim().strip_prefix('P')?.parse::<usize>().ok()?).copied()
}

pub(super) fn compute_mode(text: &str) -> Option<&'static str> {
    Some(match text.trim() {
        "Default" => "default",
        "E. Process" | "Exclusive_Process" | "Exclusive Process" => "exclusive_process",
        "E. Thread" | "Exclusive_Thread" | "Exclusive Thread" => "exclusive_thread",
        "Prohibited" => "prohibited",
        _ => return None,
    })
}

/// `Enabled`, `On`, `Active` and `Yes` and their opposites; anything else is not supported.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "Enabled" | "On" | "Active" | "Yes" => Some(true),
        "Disabled" | "Off" | "Not Active" | "No" => Some(false),
        _ => None,
    }
}

/// The number of nvml.h for what nvidia-smi calls the recovery action.
pub(super) fn recovery_action(value: &str) -> Option<u64> {
    Some(match value {
        "None" => 0,
        "Reset" | "GPU Reset" => 1,
        "Reboot" | "Node Reboot" => 2,
        "Drain P2P" => 3,
        "Drain and Reset" => 4,
        _ => return None,
    })
}
