//! Whether a GPU in a confidential virtual machine was released for programs. Only nvidia-smi tells it, so it is asked in
//! such machines alone.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Is a GPU for confidential computing released?",
    reports: &["gpu.confidential-not-ready"],
    preflight: true,
    run,
};

/// What the kernel of a confidential virtual machine has.
const DEVICES: [&str; 3] = ["/dev/tdx_guest", "/dev/tdx-guest", "/dev/sev-guest"];
/// Whether it is on, and whether the GPUs are released.
const QUERIES: [&str; 2] = ["-f", "-grs"];

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || !super::is_native_linux(host) || host.nvml_state() != Ok(NvmlState::Ready) {
        return Ok(Vec::new());
    }
    let is_confidential = || DEVICES.iter().any(|device| host.exists(device) == Ok(true));
    let text = if host.is_recorded() {
        host.recorded_texts("conf-compute").join("\n")
    } else if is_confidential() && !host.gpus()?.is_empty() {
        let asked = QUERIES.map(|query| host.command(&["nvidia-smi", "conf-compute", query]));
        asked.into_iter().flatten().flatten().map(|output| output.all_text()).collect::<Vec<_>>().join("\n")
    } else {
        return Ok(Vec::new());
    };
    if !is_held(&text) {
        return Ok(Vec::new());
    }
    let title = "confidential computing is on, and the GPUs are not declared ready: CUDA will not start";
    let finding = Finding::new("gpu.confidential-not-ready", title)
        .seen("nvidia-smi conf-compute -grs: not ready")
        .command("sudo nvidia-smi conf-compute -srs 1");
    Ok(vec![finding])
}

/// `CC status: ON` and `Confidential Compute GPUs Ready state: not-ready`.
fn is_held(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let value = |name: &str| {
        text.lines().find_map(|line| Some(line.split_once(name)?.1.trim_start_matches([':', ' ']).trim()))
    };
    let is_off = value("cc status").is_some_and(|status| status.starts_with("off"));
    !is_off && value("ready state").is_some_and(|state| state.starts_with("not"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_held;

    #[test]
    fn a_released_gpu_is_no_problem() {
        assert!(is_held("CC status: ON\nConfidential Compute GPUs Ready state: not-ready\n"));
        assert!(is_held("Confidential Compute GPUs Ready state: not ready"));
        assert!(!is_held("CC status: ON\nConfidential Compute GPUs Ready state: ready\n"));
        assert!(!is_held("CC status: OFF\nConfidential Compute GPUs Ready state: not-ready\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(CC status|ready state|: |ON|OFF|not|\\PC|\n){0,12}") {
            let _ = is_held(&text);
        }
    }
}
