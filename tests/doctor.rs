//! `yolo doctor` as a user and as a program sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use user::User;

#[test]
fn people_get_groups_and_a_summary() {
    let user = User::new();
    let answer = user.types("doctor");
    assert!(matches!(answer.code, Some(0 | 1)), "{}", answer.stderr);
    for word in ["System", "Driver and GPUs", "libtorch", "Memory", "Disk", "Network", "error"] {
        assert!(answer.stdout.contains(word), "{word} is not in:\n{}", answer.stdout);
    }
}

#[test]
fn programs_get_json() {
    let user = User::new();
    let answer = user.types("doctor --json");
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(report["schema"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["id"].is_string() && finding["status"].is_string()));
    let failed = findings.iter().any(|finding| finding["status"] == "error");
    assert_eq!(answer.code, Some(i32::from(failed)));
}
