//! The doctor on this machine: its findings, what `--deep` measures, and a recording for replays.

use serde_json::Value;

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
    stage.check("`yolo doctor --json` prints its report", true, ended.how());
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

fn deep(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let device = stage.session.scale.device.clone();
    let ended = stage.run(stage.session.yolo().args(&format!("doctor --deep --json --device {device}")))?;
    stage.require_success("`yolo doctor --deep` finds every result correct", &ended)?;
    let report: Value = serde_json::from_str(&ended.stdout)
        .map_err(|error| Stop::Failed(format!("`yolo doctor --deep --json` printed no JSON: {error}")))?;
    let measured = report["ranks"][0]["measured"].as_object().cloned().unwrap_or_default();
    stage.check("the device is measured", !measured.is_empty(), format!("{} values", measured.len()));
    for (measure, unit) in [
        ("matrix-product", "TFLOP/s"),
        ("memory-copy", "GB/s"),
        ("pinned-copy", "GB/s"),
        ("disk-read", "MB/s"),
        ("decode", "images/s per thread"),
    ] {
        if let Some(value) = measured.get(measure).and_then(Value::as_f64) {
            stage.figure(measure.replace('-', " "), value, unit);
        }
    }
    Ok(())
}
