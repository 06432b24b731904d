//! Findings for programs: one versioned JSON object, described by `report.schema.json` next to this
//! file. Tests validate real reports against it.

use serde_json::{Value, json};
use yolo_checks::Status;

use super::inside::Inside;
use super::report::Report;

/// Incremented when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// The report as indented JSON; `fixed` is what `--fix` did, `inside` what the doctor in WSL says.
pub(super) fn render(report: &Report<'_>, fixed: Option<Value>, inside: Option<&Inside>) -> String {
    let checks: Vec<Value> = report
        .verdicts
        .iter()
        .map(|verdict| {
            json!({
                "question": verdict.check.question,
                "reports": verdict.check.reports,
                "preflight": verdict.check.preflight,
                "milliseconds": verdict.took.as_secs_f64() * 1000.0,
            })
        })
        .collect();
    let mut object = json!({
        "schema": SCHEMA,
        "yolo": env!("CARGO_PKG_VERSION"),
        "recorded": report.host.is_recorded(),
        "intent": report.intent,
        "summary": {
            "errors": report.count(Status::Error),
            "warnings": report.count(Status::Warning),
            "infos": report.count(Status::Info),
            "ok": report.count(Status::Ok),
            "skipped": report.count(Status::Skipped),
            "fixable": report.fixable(),
            "milliseconds": report.took.as_secs_f64() * 1000.0,
        },
        "findings": report.findings(),
        "checks": checks,
    });
    if let Some(inside) = inside {
        object["wsl"] = inside.json();
    }
    if let Some(fixed) = fixed {
        object["fixed"] = fixed;
    }
    format!("{object:#}")
}
