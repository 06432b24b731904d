//! Whether NCCL can let the switches of NVLink add up (NVLink SHARP, NVLS). Where Fabric Manager cannot form a group of GPUs
//! for it (multicast), NCCL stops at its start although nvidia-smi and the fabric look healthy; a restart of Fabric Manager
//! under a loaded driver is the usual reason (nccl#976, nccl#1488).

use std::time::Duration;

use super::fabric::{SERVICE, has_switch, is_on_switches};
use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Can NCCL use the multicast of NVSwitch?",
    reports: &["gpu.nvls"],
    preflight: true,
    run,
};

const SWITCH: &str = "NCCL_NVLS_ENABLE";
/// NCCL uses it from so many GPUs of a machine on.
const LEAST: usize = 3;
/// Seconds after the start of the machine from which a start of the service is not the one that belongs to it.
const LATE: f64 = 600.0;
/// A busy journal must not delay the doctor.
const BUDGET: Duration = Duration::from_millis(500);

fn run(host: &Host, intent: &Intent) -> Answer {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo") && !intent.is_one_process();
    let is_too_few = intent.run && (1..LEAST).contains(&intent.ranks_on_gpus());
    let is_off = nccl_files::setting(host, SWITCH).is_some_and(|setting| setting.value.trim() == "0");
    if !uses_nccl || is_too_few || is_off || !super::is_native_linux(host) {
        return Ok(Vec::new());
    }
    // Two GPUs work, whatever the log of a larger run says.
    if let Some(line) = failure(host) {
        let title = "NCCL cannot use the multicast of NVSwitch (NVLink SHARP), and stops at its start";
        return Ok(vec![with_remedy(Finding::new("gpu.nvls", title).status(Status::Error).seen(line))]);
    }
    // The check of the driver says if it is unknown.
    if host.is_container() || host.nvml_state() != Ok(NvmlState::Ready) {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    if gpus.len() < LEAST || !gpus.iter().all(is_on_switches) || !has_switch(host).unwrap_or(false) {
        return Ok(Vec::new());
    }
    let Some(line) = restarted_service(host) else { return Ok(Vec::new()) };
    let title = "Fabric Manager was restarted while the driver stayed loaded: NVLink SHARP may fail until the GPUs are reset";
    Ok(vec![with_remedy(Finding::new("gpu.nvls", title).seen(line))])
}

fn with_remedy(finding: Finding) -> Finding {
    finding
        .remedy(
            "set the variable; NCCL then uses ordinary NVLink, which is as fast for a YOLO model",
        )
        .machine_remedy(
            "to get NVLink SHARP back, stop the programs on all GPUs and reset all of them at once (`sudo nvidia-smi -r`), or restart \
             the machine; Fabric Manager has to have the driver's version",
        )
        .command(format!("export {SWITCH}=0"))
}

/// What NCCL said when it stopped, in the output of any recorded command.
fn failure(host: &Host) -> Option<String> {
    let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    outputs
        .filter_map(|text| text.lines().find(|line| is_failure(line)).map(|line| line.trim().to_owned()))
        .next()
}

/// `transport/nvls.cc:251 NCCL WARN Cuda failure 1 'invalid argument'`, or from NCCL 2.28 on `Failed to bind NVLink SHARP (NVLS)
/// Multicast memory of size 2097152 : CUDA error 401 …`.
fn is_failure(line: &str) -> bool {
    let has = |words: &str| line.contains(words);
    has("nvls.cc:") && (has("Cuda failure") || has("CUDA error") || has("-> 1"))
        || has("NVLink SHARP (NVLS)") && has("Failed to")
}

/// The line that says when Fabric Manager stopped, if it was started again in this boot and the driver was not loaded since.
fn restarted_service(host: &Host) -> Option<String> {
    let journal = if host.is_recorded() {
        let outputs = host.recorded_outputs("journalctl").into_iter();
        outputs.filter(|(line, _)| !line.contains("-b -1")).map(|(_, output)| output.text()).collect()
    } else {
        // Only a start that is late has a stop before it.
        let entered = host
            .command(&["systemctl", "show", SERVICE, "--property=ActiveEnterTimestampMonotonic"])
            .ok()
            .flatten()
            .map(|output| output.text())?;
        let micros: f64 = entered.trim().split_once('=')?.1.parse().ok()?;
        if micros / 1e6 < LATE {
            return None;
        }
        // With the kernel's lines, so that a driver that was loaded again since is seen.
        let unit = format!("UNIT={SERVICE}.service");
        let lines = [
            "journalctl",
            "-b",
            "-q",
            "--no-pager",
            "-g",
            "NVRM: loading|abric",
            "_TRANSPORT=kernel",
            "+",
            &unit,
        ];
        host.command_within(&lines, BUDGET).ok().flatten()?.text()
    };
    stop_before_start(&journal)
}

/// The last line in which systemd stopped the service, before it started it.
fn stop_before_start(journal: &str) -> Option<String> {
    let mut stop = None;
    let mut found = None;
    for line in journal.lines() {
        // A driver that is loaded anew is set up anew.
        if line.contains("NVRM: loading") {
            (stop, found) = (None, None);
        }
        let is_of_service = line.contains("systemd[") && line.to_ascii_lowercase().contains("fabric");
        if is_of_service && (line.contains(": Stopped ") || line.contains("Deactivated successfully")) {
            stop = Some(line.trim().to_owned());
        } else if is_of_service && line.contains(": Started ") {
            found = stop.take().or(found);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nccl_words_the_failure_in_several_ways() {
        for line in [
            "node23:12098:12141 [2] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'",
            "node004:27907:27907 [1] NCCL INFO transport/nvls.cc:409 -> 1",
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be \
             performed in the present state'.",
        ] {
            assert!(is_failure(line), "{line}");
        }
        for line in [
            "node23:1:1 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
            "node23:1:1 [0] NCCL INFO transport/nvls.cc:178 NVLS Bind mem 0x7f",
        ] {
            assert!(!is_failure(line), "{line}");
        }
    }

    #[test]
    fn a_start_without_a_stop_is_that_of_the_machine() {
        let start = "Mar 01 10:00:00 n1 systemd[1]: Started NVIDIA fabric manager service.\n";
        let stop = "Mar 01 12:00:00 n1 systemd[1]: Stopped NVIDIA fabric manager service.\n";
        assert_eq!(stop_before_start(start), None);
        assert_eq!(stop_before_start(&format!("{start}{stop}")), None);
        assert_eq!(stop_before_start(&format!("{start}{stop}{start}")).as_deref(), Some(stop.trim()));
        let load = "Mar 01 12:30:00 n1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07\n";
        assert_eq!(stop_before_start(&format!("{start}{stop}{load}{start}")), None);
    }

    proptest! {
        #[test]
        fn any_journal_is_read(text in "(systemd\\[1\\]|fabric|: Stopped |: Started |nvls.cc:|-> 1|\n|\\PC){0,16}") {
            let _ = (stop_before_start(&text), is_failure(&text));
        }
    }
}
