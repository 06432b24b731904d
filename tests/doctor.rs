//! `yolo doctor` as users and programs see it: text, JSON, recordings, options and fixes. The findings
//! themselves are tested in `checks`. Tests that must not depend on this machine replay a recording.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use serde_json::Value;
use user::User;

fn checks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("checks")
}

/// `--replay` of a healthy recorded machine.
fn healthy(user: &User) -> String {
    let name = "linux-gpu.json";
    std::fs::copy(checks().join("tests/hosts/bases").join(name), user.path().join(name)).unwrap();
    format!("--replay {name}")
}

/// `--replay` of the same machine without its driver.
fn sick(user: &User) -> String {
    let text = std::fs::read_to_string(checks().join("tests/hosts/bases/linux-gpu.json")).unwrap();
    let mut recording: Value = serde_json::from_str(&text).unwrap();
    recording["nvml"] = serde_json::json!({ "error": 9 });
    std::fs::write(user.path().join("sick.json"), recording.to_string()).unwrap();
    "--replay sick.json".to_owned()
}

#[test]
fn the_report_has_groups_and_a_summary() {
    let user = User::new();
    let output = user.run("doctor");
    assert!(matches!(output.code, Some(0 | 1)), "{}", output.stderr);
    for word in ["System", "Memory", "Disk", "Network", "error", "checks in"] {
        assert!(output.stdout.contains(word), "{word} is not in:\n{}", output.stdout);
    }
}

#[test]
fn the_report_of_a_healthy_machine_is_short() {
    let user = User::new();
    let output = user.run(&format!("doctor {}", healthy(&user))).succeeded();
    assert!(output.stdout.lines().count() <= 16, "{}", output.stdout);
    assert!(output.stdout.contains("no errors, no warnings"), "{}", output.stdout);
}

#[test]
fn a_problem_is_reported_with_cause_and_remedy() {
    let user = User::new();
    let output = user.run(&format!("doctor {} --only gpu.driver-not-loaded", sick(&user)));
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let text = output.stdout.split_inclusive("1 check").next().unwrap().to_owned();
    insta::assert_snapshot!(text, @r"
    Driver and GPUs                 1 error
      error    the NVIDIA driver is installed, but its kernel module is not loaded
               why:  the module is normally loaded when the machine starts; after a
                     kernel update it may not have been rebuilt
               do:   load the module; if that fails, build it for the running
                     kernel, or restart
                       sudo modprobe nvidia
                       nvidia-smi
               [gpu.driver-not-loaded]

    1 error, 0 warnings; 1 check
    ");
}

#[test]
fn the_text_fits_into_80_columns_and_needs_no_colour() {
    let user = User::new();
    for arguments in [sick(&user), format!("{} -v", sick(&user))] {
        let output = user.run(&format!("doctor {arguments}"));
        assert!(!output.stdout.contains('\u{1b}'));
        for line in output.stdout.lines() {
            // Commands and paths are never broken.
            let is_whole = line.split_whitespace().count() <= 1 || line.starts_with("                 ");
            assert!(line.chars().count() <= 80 || is_whole, "{line}");
        }
    }
}

#[test]
fn verbose_shows_evidence_gpus_timings_and_facts() {
    let user = User::new();
    let output = user.run(&format!("doctor {} -v", healthy(&user))).succeeded();
    for word in ["seen: ", "GPUs\n", " ms  Does the NVIDIA driver work?", "files /proc/"] {
        assert!(output.stdout.contains(word), "{word} is not in:\n{}", output.stdout);
    }
    // The same unit as in the findings: 25133318144 of 25757220864 bytes.
    assert!(output.stdout.contains("23.4 GiB of 24.0 GiB"), "{}", output.stdout);
}

#[test]
fn json_reports_match_the_schema() {
    let schema = std::fs::read_to_string("src/doctor/report.schema.json").unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let user = User::new();
    for arguments in [String::new(), healthy(&user), sick(&user), "-- --device 0,1 --batch 64".to_owned()] {
        let output = user.run(&format!("doctor --json {arguments}"));
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let problems: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{arguments}: {problems:?}");
        let failed = report["findings"].as_array().unwrap().iter().any(|one| one["status"] == "error");
        assert_eq!(output.code, Some(i32::from(failed)));
        assert_eq!(report["summary"]["errors"].as_u64().unwrap() > 0, failed);
    }
    let mut wrong = serde_json::json!({ "schema": 2 });
    assert!(!validator.is_valid(&wrong));
    wrong = Value::Null;
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn a_replay_has_the_findings_of_the_recorded_machine() {
    let user = User::new();
    let arguments = "-- --device 0,1 --data birds.yaml";
    let live: Value =
        serde_json::from_str(&user.run(&format!("doctor --json --record host.json {arguments}")).stdout)
            .unwrap();
    let replayed: Value = serde_json::from_str(&user.run("doctor --json --replay host.json").stdout).unwrap();
    let findings = |report: &Value| -> Vec<(String, String)> {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.map(|one| (one["id"].to_string(), one["status"].to_string())).collect()
    };
    assert_eq!(findings(&live), findings(&replayed));
    assert_eq!(live["intent"], replayed["intent"]);
    assert_eq!(replayed["recorded"], true);
}

#[test]
fn only_and_skip_select_findings() {
    let user = User::new();
    let ids = |arguments: &str| -> Vec<String> {
        let output = user.run(&format!("doctor --json {} {arguments}", healthy(&user)));
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        findings.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert!(ids("--only gpu").iter().all(|id| id.starts_with("gpu.")));
    assert!(ids("--only gpu,disk.free --skip gpu.driver").contains(&"disk.free".to_owned()));
    assert!(!ids("--skip gpu").iter().any(|id| id.starts_with("gpu.")));
}

#[test]
fn usage_errors_exit_with_2() {
    let user = User::new();
    user.run("doctor --only gpu.driver-mising")
        .failed_with(2, &["gpu.driver-mising", "`gpu.driver-missing`"]);
    user.run("doctor --explain shm-to-small").failed_with(2, &["shm-to-small", "--list"]);
    user.run("doctor --replay not-there.json").failed_with(2, &["not-there.json", "--record"]);
    std::fs::write(user.path().join("text.json"), "Ubuntu").unwrap();
    user.run("doctor --replay text.json").failed_with(2, &["text.json", "recording.md"]);
    assert_eq!(user.run("doctor --no-such-word").code, Some(2));
    assert_eq!(user.run("doctor -- --no-such-word").code, Some(2));
}

#[test]
fn explain_accepts_every_listed_id() {
    let user = User::new();
    let list = user.run("doctor --list").succeeded().stdout;
    let ids: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(ids.len() > 10 && ids.contains(&"gpu.driver-missing"), "{list}");
    let page = user.run("doctor --explain gpu.driver-missing").succeeded().stdout;
    for word in ["The NVIDIA driver is not installed", "gpu.driver-missing", "why", "do ", "findings.md#"] {
        assert!(page.contains(word), "{page}");
    }
    // The name of a known failure leads to the finding that detects it.
    let page = user.run("doctor --explain disk-full").succeeded().stdout;
    assert!(page.contains("disk.full"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    // Titles are not wrapped in a pipe.
    assert!(!list.contains('…'), "{list}");
}

#[test]
fn explaining_an_area_lists_its_findings() {
    let user = User::new();
    let page = user.run("doctor --explain gpu").succeeded().stdout;
    assert!(page.contains("  gpu.driver-missing ") && !page.contains("  disk.full "), "{page}");
    assert!(page.contains("`gpu` is an area"), "{page}");
}

#[test]
#[cfg(unix)]
fn only_regular_files_of_reasonable_size_are_replayed() {
    let user = User::new();
    let made = std::process::Command::new("mkfifo").arg(user.path().join("pipe")).status().unwrap();
    assert!(made.success());
    user.run("doctor --replay pipe").failed_with(2, &["pipe", "not a regular file"]);
    // A sparse file, which takes no space on the disk.
    let large = std::fs::File::create(user.path().join("large.json")).unwrap();
    large.set_len(300 << 20).unwrap();
    user.run("doctor --replay large.json").failed_with(2, &["large.json", "larger than 64 MB"]);
}

#[test]
fn a_user_name_may_be_a_field_name() {
    let user = User::new();
    for name in ["model", "cache", "run", "project", "files", "system", "kind", "stdout"] {
        let run = |arguments: &str| {
            let mut command = user.command(arguments);
            let home = format!("/home/{name}");
            command.env("HOME", &home).env("USER", name).env("YOLO_HOME", format!("/data/home/{name}"));
            user::Finished::from(command.output().unwrap())
        };
        let live: Value =
            serde_json::from_str(&run("doctor --json --record r.json -- --device cpu").stdout).unwrap();
        let output = user.run("doctor --json --replay r.json");
        let replayed: Value =
            serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
        let findings = |report: &Value| -> Vec<(String, String)> {
            let findings = report["findings"].as_array().unwrap().iter();
            findings.map(|one| (one["id"].to_string(), one["status"].to_string())).collect()
        };
        assert_eq!(findings(&live), findings(&replayed), "{name}");
        let recorded = std::fs::read_to_string(user.path().join("r.json")).unwrap();
        assert!(!recorded.contains(&format!("\"/home/{name}")), "{recorded}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn arguments_of_other_processes_are_not_recorded() {
    let user = User::new();
    // A process named python3 that waits forever for input.
    let script = user.write_program("python3", "#!/bin/sh\nread line\n");
    let mut child = std::process::Command::new(&script)
        .args(["train.py", "--password", "hunter2", "--token=abc123tok", "mail@kowalska.org"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let _ = user.run("doctor --record r.json");
    child.kill().unwrap();
    child.wait().unwrap();
    let recorded = std::fs::read_to_string(user.path().join("r.json")).unwrap();
    assert!(recorded.contains("python3 train.py …") || recorded.contains("sh train.py …"), "{recorded}");
    for secret in ["hunter2", "abc123tok", "kowalska"] {
        assert!(!recorded.contains(secret), "{recorded}");
    }
}

#[test]
fn the_built_in_data_set_has_its_own_defaults() {
    let user = User::new();
    let text = std::fs::read_to_string(checks().join("tests/hosts/bases/linux-gpu.json")).unwrap();
    let mut recording: Value = serde_json::from_str(&text).unwrap();
    let gigabyte = 1_u64 << 30;
    recording["nvml"]["devices"][0]["memory"] =
        serde_json::json!({ "total": 4 * gigabyte, "used": gigabyte / 4, "free": 15 * gigabyte / 4 });
    std::fs::write(user.path().join("small.json"), recording.to_string()).unwrap();
    let needs = |arguments: &str| {
        let output =
            user.run(&format!("doctor --only run.gpu-memory --json --replay small.json -- {arguments}"));
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        report["findings"].as_array().unwrap().len()
    };
    assert_eq!(needs("--device 0 --data shapes"), 0);
    assert_eq!(needs("--device 0"), 1);
}

#[cfg(not(windows))]
fn folder_to_touch(path: &Path) -> std::fs::File {
    std::fs::File::open(path).unwrap()
}

/// Windows opens a folder only if the caller asks for one explicitly.
#[cfg(windows)]
fn folder_to_touch(path: &Path) -> std::fs::File {
    use std::os::windows::fs::OpenOptionsExt as _;
    const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
    let mut options = std::fs::OpenOptions::new();
    options.access_mode(FILE_WRITE_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    options.open(path).unwrap()
}

/// Creates a home folder with an incomplete download from 2024.
fn home_with_half_a_download(user: &User) -> PathBuf {
    let half = user.path().join("home/data/weights/.incoming-yolov5s.pt");
    std::fs::create_dir_all(half.join("parts")).unwrap();
    // 1 May 2024.
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_714_521_600);
    folder_to_touch(&half).set_modified(then).unwrap();
    half
}

fn run_fix(user: &User, arguments: &str) -> user::Finished {
    let mut command = user.command(&format!("doctor --only disk.unfinished --fix {arguments}"));
    let command = command.env("YOLO_HOME", user.path().join("home")).stdin(std::process::Stdio::null());
    user::Finished::from(command.output().unwrap())
}

#[test]
fn fix_changes_nothing_without_confirmation() {
    let user = User::new();
    let half = home_with_half_a_download(&user);
    // No confirmation is asked for changes that --quiet hides.
    for arguments in ["--dry-run", "", "--quiet"] {
        let output = run_fix(&user, arguments).succeeded();
        let shown = ["--fix will make these changes:", ".incoming-yolov5s.pt"];
        assert!(shown.iter().all(|text| output.stderr.contains(text)), "{arguments}: {}", output.stderr);
        assert!(half.exists());
    }
    assert!(run_fix(&user, "").stderr.contains("--yes"));
}

#[test]
fn fix_applies_changes_and_checks_again() {
    let user = User::new();
    let half = home_with_half_a_download(&user);
    let output = run_fix(&user, "--yes --json").succeeded();
    assert!(!half.exists(), "{}", output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["fixed"][0]["result"], "done");
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
    assert!(run_fix(&user, "--yes").stderr.contains("nothing to change"));
}

#[test]
fn a_missing_home_is_created_and_can_be_undone() {
    let user = User::new();
    let home = user.path().join("new home");
    let mut command = user.command("doctor --only disk.own-folder-missing --fix --yes");
    let output = user::Finished::from(command.env("YOLO_HOME", &home).output().unwrap()).succeeded();
    assert!(home.is_dir(), "{}", output.stderr);
    let shell = if cfg!(windows) { "or, without yolo: cmd /c \"" } else { "or, without yolo: sh '" };
    assert!(
        output.stderr.contains("to undo: yolo undo 1\n") && output.stderr.contains(shell),
        "{}",
        output.stderr
    );
}

#[test]
#[cfg(unix)]
fn a_variable_is_written_once_and_then_only_needs_sourcing() {
    let user = User::new();
    let home = user.path().join("two words");
    let fixes = |arguments: &str| {
        let mut command = user.command(&format!("doctor --only shell {arguments}"));
        command.env("YOLO_HOME", &home).env("CUDA_LAUNCH_BLOCKING", "1");
        user::Finished::from(command.output().unwrap()).succeeded()
    };
    let first = fixes("--fix --yes");
    let line = format!("  . '{}'", home.join("config/env.sh").display());
    assert!(first.stderr.lines().any(|found| found == line), "{}", first.stderr);
    assert!(first.stdout.contains("has written a file that fixes this"), "{}", first.stdout);
    assert!(!first.stdout.contains("--fix` can"), "{}", first.stdout);
    let backups = || {
        let entries = std::fs::read_dir(home.join("config/backups")).unwrap().flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    };
    assert_eq!(backups(), 1);
    let second = fixes("--fix --yes");
    assert!(second.stderr.contains("nothing to change"), "{}", second.stderr);
    assert_eq!(backups(), 1);
}

/// `YOLO_UPDATE_REFERENCE=1 cargo test -p yolo --test doctor reference` regenerates the page.
#[test]
fn the_reference_page_matches_the_catalogue() {
    let page = User::new().run("doctor --reference").succeeded().stdout;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/findings.md");
    if std::env::var_os("YOLO_UPDATE_REFERENCE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        page == written,
        "docs/findings.md does not match the catalogue: run this test with YOLO_UPDATE_REFERENCE=1"
    );
}
