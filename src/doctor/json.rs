//! Findings for programs: one versioned JSON object.

use serde_json::json;
use yolo_checks::Finding;

/// Raised when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

/// The report as indented JSON.
pub(super) fn render(findings: &[Finding]) -> String {
    format!("{:#}", json!({ "schema": SCHEMA, "yolo": env!("CARGO_PKG_VERSION"), "findings": findings }))
}
