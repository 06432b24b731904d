//! `yolo doctor --compare` as users and programs see it. What differs, and what matters, is tested in
//! `checks/tests/compare/`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::Path;

use serde_json::{Value, json};
use user::{Finished, User};

fn base(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("checks/tests/hosts/bases");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Writes a recording under a short name.
fn write(user: &User, name: &str, recording: &Value) {
    std::fs::write(user.path().join(name), recording.to_string()).unwrap();
}

fn compare(user: &User, arguments: &str) -> Finished {
    user.run(&format!("doctor --compare {arguments}"))
}

/// A server, the same server after someone worked on it, and a PC with WSL.
fn machines() -> User {
    let user = User::new();
    let mut server = base("linux-8-gpus");
    server["yolo"] = json!("0.1.0");
    write(&user, "a.json", &server);
    server["nvml"]["driver_version"] = json!("550.54.14");
    server["nvml"]["cuda_version"] = json!(12040);
    server["system"]["kernel"] = json!("6.8.0-60-generic");
    server["files"]["/proc/sys/kernel/osrelease"] = json!("6.8.0-60-generic\n");
    server["filesystems"]["/dev/shm"]["total"] = json!(67_108_864);
    server["filesystems"]["/dev/shm"]["available"] = json!(67_000_000);
    server["env"]["NCCL_P2P_DISABLE"] = json!("1");
    write(&user, "b.json", &server);
    write(&user, "pc.json", &base("wsl2"));
    write(&user, "windows.json", &base("windows"));
    user
}

#[test]
fn two_servers() {
    let output = compare(&machines(), "a.json b.json");
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    insta::assert_snapshot!(output.stdout);
}

#[test]
fn a_server_and_a_pc_with_wsl() {
    let output = compare(&machines(), "a.json pc.json").succeeded();
    insta::assert_snapshot!(output.stdout);
}

#[test]
fn three_machines_for_one_run() {
    let output = compare(&machines(), "a.json pc.json windows.json -- --nnodes 3 --device 0");
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    insta::assert_snapshot!(output.stdout);
}

#[test]
fn equal_machines_are_said_to_be_equal() {
    let user = machines();
    std::fs::copy(user.path().join("a.json"), user.path().join("copy.json")).unwrap();
    let output = compare(&user, "a.json copy.json").succeeded();
    insta::assert_snapshot!(output.stdout);
    let output = compare(&user, "a.json copy.json -v").succeeded();
    assert!(output.stdout.contains("\nEqual\n"), "{}", output.stdout);
    assert!(output.stdout.contains("  NVIDIA driver               580.95.05\n"), "{}", output.stdout);
}

#[test]
fn verbose_says_why_facts_are_unknown() {
    let user = machines();
    let mut server = base("linux-8-gpus");
    server.as_object_mut().unwrap().remove("interfaces");
    write(&user, "c.json", &server);
    let output = compare(&user, "a.json c.json");
    assert!(
        output.stdout.contains("kinds of network, network interfaces (-v shows why)"),
        "{}",
        output.stdout
    );
    let output = compare(&user, "a.json c.json --verbose");
    let reason = "c.json: the recording does not include the";
    assert!(output.stdout.contains(reason), "{}", output.stdout);
}

#[test]
fn the_text_fits_into_80_columns() {
    let user = machines();
    for arguments in ["a.json b.json", "a.json pc.json windows.json", "a.json b.json -v"] {
        let output = compare(&user, arguments);
        assert!(!output.stdout.contains('\u{1b}'));
        for line in output.stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn json_matches_the_schema() {
    let schema = std::fs::read_to_string("src/doctor/compare.schema.json").unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let user = machines();
    for arguments in ["a.json b.json", "a.json pc.json", "a.json b.json pc.json windows.json"] {
        let output = compare(&user, &format!("{arguments} --json"));
        let comparison: Value = serde_json::from_str(&output.stdout).unwrap();
        let problems: Vec<String> =
            validator.iter_errors(&comparison).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{arguments}: {problems:?}");
        let machines = comparison["machines"].as_array().unwrap().len();
        assert_eq!(machines, arguments.split(' ').count());
        for difference in comparison["differences"].as_array().unwrap() {
            assert_eq!(difference["values"].as_array().unwrap().len(), machines);
        }
        let errors = comparison["summary"]["errors"].as_u64().unwrap();
        assert_eq!(output.code, Some(i32::from(errors > 0)), "{arguments}");
    }
    assert!(!validator.is_valid(&json!({ "schema": 1 })));
}

#[test]
fn a_recording_has_every_fact_of_this_machine_that_is_compared() {
    let user = User::new();
    let _ = user.run("doctor --only shell --record one.json");
    let _ = user.run("doctor --only shell --record two.json -- --device cpu");
    for file in ["one.json", "two.json"] {
        let recording = std::fs::read_to_string(user.path().join(file)).unwrap();
        for fact in ["\"interfaces\"", "\"nvml\"", "\"kernel\"", "\"yolo\""] {
            assert!(recording.contains(fact), "{fact} is not in {file}");
        }
    }
    let output = compare(&user, "one.json two.json --json");
    let comparison: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(comparison["differences"], json!([]), "{}", output.stdout);
    let compared = comparison["equal"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
    let compared: Vec<&str> = compared.collect();
    assert!(["yolo", "os", "arch", "memory", "cores"].iter().all(|id| compared.contains(id)), "{compared:?}");
}

#[test]
fn unusable_files_end_with_one_message() {
    let user = machines();
    let refused = |arguments: &str, texts: &[&str]| {
        compare(&user, arguments).failed_with(2, texts);
    };
    refused("a.json missing.json", &["missing.json", "--record"]);
    refused("a.json a.json", &["--compare names a.json twice", "each machine"]);
    refused("a.json ./a.json", &["./a.json is a.json"]);
    std::fs::write(user.path().join("text.json"), "Ubuntu").unwrap();
    refused("a.json text.json", &["text.json is not a recording", "not valid JSON"]);
    write(&user, "newer.json", &json!({ "version": 2 }));
    refused("a.json newer.json", &["newer.json", "its \"version\" is 2, but this yolo reads version 1"]);
    let report = user.run("doctor --json --replay a.json").stdout;
    std::fs::write(user.path().join("report.json"), report).unwrap();
    refused("report.json a.json", &["report.json is not a recording", "`yolo doctor --json`", "--record"]);
    std::fs::create_dir(user.path().join("folder")).unwrap();
    refused("a.json folder", &["folder is not a recording"]);
}

#[test]
fn options_that_make_no_sense_with_it_are_refused() {
    let user = machines();
    for option in [
        "--replay a.json",
        "--record c.json",
        "--list",
        "--explain gpu",
        "--deep",
        "--fix",
        "--only gpu",
        "--skip gpu",
    ] {
        let output = compare(&user, &format!("a.json b.json {option}"));
        assert_eq!(output.code, Some(2), "{option}: {}", output.stdout);
        assert!(output.stderr.contains("cannot be used with"), "{}", output.stderr);
    }
    let output = compare(&user, "a.json");
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("2 values required"), "{}", output.stderr);
    assert!(!user.path().join("c.json").exists());
}
