//! The doctor on this machine: its findings, what `--deep` measures, and a recording for replays.

use serde_json::Value;
use yolo_base::format::count;

use crate::stage_run::{StageRun, Stop};

/// The doctor's recording of this machine.
pub const RECORDING: &str = "recording.json";

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    findings(stage)?;
    deep(stage)
}

fn findings(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let device = stage.session.scale.device.clone();
    let options = format!("doctor --json -v --record {RECORDING} -- --data shapes --device {device}");
    let ended = stage.run(stage.session.yolo().args(&options))?;
    let report: Option<Value> = serde_json::from_str(&ended.stdout).ok();
    let Some(report) = report else {
        stage.check_success("`yolo doctor --json` prints its report", &ended);
        return Err(Stop::Failed("`yolo doctor --json` printed no JSON".to_owned()));
    };
    let findings = report["findings"].as_array().map_or(0, Vec::len);
    // With -v it also lists what is as it should be, so an empty list is none.
    stage.check("`yolo doctor --json` prints its report", findings > 0, count(findings, "finding"));
    let titles = |status: &str| -> Vec<String> {
        let findings = report["findings"].as_array().into_iter().flatten();
        findings
            .filter(|finding| finding["status"] == status)
            .map(|finding| {
                let text = |field: &str| finding[field].as_str().unwrap_or_default();
                format!("{}: {}", text("id"), text("title"))
            })
            .collect()
    };
    // The stages after this one train on this machine, so an error would be a false alarm.
    let errors = titles("error");
    let detail = if errors.is_empty() { "no error".to_owned() } else { errors.join("; ") };
    stage.check("the doctor finds no error on a machine that trains", errors.is_empty(), detail);
    stage.figure("warnings of the doctor", titles("warning").len() as f64, "");
    let milliseconds = report["summary"]["milliseconds"].as_f64().unwrap_or_default();
    stage.figure("time of all checks", milliseconds, "ms");
    let is_whole = serde_json::from_str::<Value>(&stage.text(RECORDING)).is_ok();
    stage.check("the machine is recorded", is_whole, RECORDING);
    Ok(())
}

/// What `--deep` measures, with the units. All but the copy from page-locked memory, which a system may refuse, must
/// be there.
const MEASURES: [(&str, &str); 5] = [
    ("matrix-product", "TFLOP/s"),
    ("memory-copy", "GB/s"),
    (PINNED_COPY, "GB/s"),
    ("disk-read", "MB/s"),
    ("decode", "images/s per thread"),
];
const PINNED_COPY: &str = "pinned-copy";

fn deep(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    let device = &session.scale.device;
    // With a data set, it measures how fast that is read too.
    let invocation = session.yolo().args(&format!("doctor --deep --json -- --device {device}"));
    let ended = stage.run(session.bench_data(invocation))?;
    stage.require_success("`yolo doctor --deep` finds every result correct", &ended)?;
    let report: Value = serde_json::from_str(&ended.stdout)
        .map_err(|error| Stop::Failed(format!("`yolo doctor --deep --json` printed no JSON: {error}")))?;
    let measured = report["ranks"][0]["measured"].as_object().cloned().unwrap_or_default();
    let mut missing = Vec::new();
    for (measure, unit) in MEASURES {
        match measured.get(measure).and_then(Value::as_f64) {
            Some(value) => stage.figure(measure.replace('-', " "), value, unit),
            None if measure == PINNED_COPY => stage.skip(
                "the copy from page-locked memory is measured",
                session.scale.of("the system refuses to lock pages, so copies are slower", "there is no GPU"),
            ),
            None => missing.push(measure),
        }
    }
    let detail = match missing.as_slice() {
        [] => count(measured.len(), "value"),
        missing => format!("missing: {}", missing.join(", ")),
    };
    stage.check("device, disk and decoder are measured", missing.is_empty(), detail);
    Ok(())
}
