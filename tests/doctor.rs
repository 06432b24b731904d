//! `yolo doctor` as a user and as a program sees it. What is found on recorded hosts is tested in
//! `checks`; here a recording stands in where the answer must not depend on this machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use serde_json::Value;
use user::User;

fn checks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("checks")
}

/// `--replay` of a recorded machine on which nothing is wrong.
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
fn people_get_groups_and_a_summary() {
    let user = User::new();
    let answer = user.types("doctor");
    assert!(matches!(answer.code, Some(0 | 1)), "{}", answer.stderr);
    for word in ["System", "Memory", "Disk", "Network", "error", "checks in"] {
        assert!(answer.stdout.contains(word), "{word} is not in:\n{}", answer.stdout);
    }
}

#[test]
fn a_machine_in_order_is_a_short_report() {
    let user = User::new();
    let answer = user.types(&format!("doctor {}", healthy(&user))).succeeded();
    assert!(answer.stdout.lines().count() <= 16, "{}", answer.stdout);
    assert!(answer.stdout.contains("no errors, no warnings"), "{}", answer.stdout);
}

#[test]
fn a_problem_says_why_and_what_to_do() {
    let user = User::new();
    let answer = user.types(&format!("doctor {} --only gpu.driver-not-loaded", sick(&user)));
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    let text = answer.stdout.split(" in 0.").next().unwrap().to_owned();
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
    for words in [sick(&user), format!("{} -v", sick(&user))] {
        let answer = user.types(&format!("doctor {words}"));
        assert!(!answer.stdout.contains('\u{1b}'));
        for line in answer.stdout.lines() {
            // Commands and paths are never broken.
            let is_whole = line.split_whitespace().count() <= 1 || line.starts_with("                 ");
            assert!(line.chars().count() <= 80 || is_whole, "{line}");
        }
    }
}

#[test]
fn v_shows_evidence_gpus_times_and_facts() {
    let user = User::new();
    let answer = user.types(&format!("doctor {} -v", healthy(&user))).succeeded();
    for word in ["seen: ", "GPUs\n", " ms  Does the NVIDIA driver work?", "files /proc/"] {
        assert!(answer.stdout.contains(word), "{word} is not in:\n{}", answer.stdout);
    }
    // The same unit as in the findings: 25133318144 of 25757220864 bytes.
    assert!(answer.stdout.contains("23.4 GiB of 24.0 GiB"), "{}", answer.stdout);
}

#[test]
fn programs_get_json_as_its_schema_says() {
    let schema = std::fs::read_to_string("src/doctor/report.schema.json").unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let user = User::new();
    for words in [String::new(), healthy(&user), sick(&user), "-- --device 0,1 --batch 64".to_owned()] {
        let answer = user.types(&format!("doctor --json {words}"));
        let report: Value = serde_json::from_str(&answer.stdout).unwrap();
        let problems: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{words}: {problems:?}");
        let failed = report["findings"].as_array().unwrap().iter().any(|one| one["status"] == "error");
        assert_eq!(answer.code, Some(i32::from(failed)));
        assert_eq!(report["summary"]["errors"].as_u64().unwrap() > 0, failed);
    }
    let mut wrong = serde_json::json!({ "schema": 2 });
    assert!(!validator.is_valid(&wrong));
    wrong = Value::Null;
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn a_recording_is_judged_as_the_machine_was() {
    let user = User::new();
    let words = "-- --device 0,1 --data birds.yaml";
    let live: Value =
        serde_json::from_str(&user.types(&format!("doctor --json --record host.json {words}")).stdout)
            .unwrap();
    let replayed: Value =
        serde_json::from_str(&user.types("doctor --json --replay host.json").stdout).unwrap();
    let told = |report: &Value| -> Vec<(String, String)> {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.map(|one| (one["id"].to_string(), one["status"].to_string())).collect()
    };
    assert_eq!(told(&live), told(&replayed));
    assert_eq!(live["intent"], replayed["intent"]);
    assert_eq!(replayed["recorded"], true);
}

#[test]
fn only_and_skip_choose() {
    let user = User::new();
    let ids = |words: &str| -> Vec<String> {
        let answer = user.types(&format!("doctor --json {} {words}", healthy(&user)));
        let report: Value = serde_json::from_str(&answer.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        findings.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert!(ids("--only gpu").iter().all(|id| id.starts_with("gpu.")));
    assert!(ids("--only gpu,disk.free --skip gpu.driver").contains(&"disk.free".to_owned()));
    assert!(!ids("--skip gpu").iter().any(|id| id.starts_with("gpu.")));
}

#[test]
fn misuse_is_told_apart_from_errors_found() {
    let user = User::new();
    user.types("doctor --only gpu.driver-mising").refused(2, &["gpu.driver-mising", "`gpu.driver-missing`"]);
    user.types("doctor --explain shm-to-small").refused(2, &["shm-to-small", "--list"]);
    user.types("doctor --replay not-there.json").refused(2, &["not-there.json", "--record"]);
    std::fs::write(user.path().join("text.json"), "Ubuntu").unwrap();
    user.types("doctor --replay text.json").refused(2, &["text.json", "recording.md"]);
    assert_eq!(user.types("doctor --no-such-word").code, Some(2));
    assert_eq!(user.types("doctor -- --no-such-word").code, Some(2));
}

#[test]
fn list_names_what_explain_explains() {
    let user = User::new();
    let list = user.types("doctor --list").succeeded().stdout;
    let ids: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(ids.len() > 10 && ids.contains(&"gpu.driver-missing"), "{list}");
    let page = user.types("doctor --explain gpu.driver-missing").succeeded().stdout;
    for word in ["The NVIDIA driver is not installed", "gpu.driver-missing", "why", "do ", "findings.md#"] {
        assert!(page.contains(word), "{page}");
    }
    // A known failure's own name leads to the finding that detects it.
    let page = user.types("doctor --explain disk-full").succeeded().stdout;
    assert!(page.contains("disk.full"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    // Who reads it through a pipe wants whole titles.
    assert!(!list.contains('…'), "{list}");
}

#[test]
fn an_area_is_explained_by_its_findings() {
    let user = User::new();
    let page = user.types("doctor --explain gpu").succeeded().stdout;
    assert!(page.contains("  gpu.driver-missing ") && !page.contains("  disk.full "), "{page}");
    assert!(page.contains("`gpu` is an area"), "{page}");
}

#[test]
#[cfg(unix)]
fn only_a_file_of_a_sane_size_is_replayed() {
    let user = User::new();
    let made = std::process::Command::new("mkfifo").arg(user.path().join("pipe")).status().unwrap();
    assert!(made.success());
    user.types("doctor --replay pipe").refused(2, &["pipe", "not a regular file"]);
    // It takes no room on the disk.
    let large = std::fs::File::create(user.path().join("large.json")).unwrap();
    large.set_len(300 << 20).unwrap();
    user.types("doctor --replay large.json").refused(2, &["large.json", "larger than 64 MB"]);
}

#[test]
fn a_user_may_be_called_as_a_field_is() {
    let user = User::new();
    for name in ["model", "cache", "run", "project", "files", "system", "kind", "stdout"] {
        let types = |words: &str| {
            let mut command = user.command(words);
            let home = format!("/home/{name}");
            command.env("HOME", &home).env("USER", name).env("YOLO_HOME", format!("/data/home/{name}"));
            user::Answer::from(command.output().unwrap())
        };
        let live: Value =
            serde_json::from_str(&types("doctor --json --record r.json -- --device cpu").stdout).unwrap();
        let answer = user.types("doctor --json --replay r.json");
        let replayed: Value =
            serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
        let told = |report: &Value| -> Vec<(String, String)> {
            let findings = report["findings"].as_array().unwrap().iter();
            findings.map(|one| (one["id"].to_string(), one["status"].to_string())).collect()
        };
        assert_eq!(told(&live), told(&replayed), "{name}");
        let recorded = std::fs::read_to_string(user.path().join("r.json")).unwrap();
        assert!(!recorded.contains(&format!("\"/home/{name}")), "{recorded}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn words_of_other_processes_are_not_recorded() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    // A process named like Python that waits for a line which never comes.
    let script = user.path().join("python3");
    std::fs::write(&script, "#!/bin/sh\nread line\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut child = std::process::Command::new(&script)
        .args(["train.py", "--password", "hunter2", "--token=abc123tok", "mail@kowalska.org"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let _ = user.types("doctor --record r.json");
    child.kill().unwrap();
    child.wait().unwrap();
    let recorded = std::fs::read_to_string(user.path().join("r.json")).unwrap();
    assert!(recorded.contains("python3 train.py …") || recorded.contains("sh train.py …"), "{recorded}");
    for secret in ["hunter2", "abc123tok", "kowalska"] {
        assert!(!recorded.contains(secret), "{recorded}");
    }
}

#[test]
fn the_built_in_data_set_is_judged_with_its_own_defaults() {
    let user = User::new();
    let text = std::fs::read_to_string(checks().join("tests/hosts/bases/linux-gpu.json")).unwrap();
    let mut recording: Value = serde_json::from_str(&text).unwrap();
    let gigabyte = 1_u64 << 30;
    recording["nvml"]["devices"][0]["memory"] =
        serde_json::json!({ "total": 4 * gigabyte, "used": gigabyte / 4, "free": 15 * gigabyte / 4 });
    std::fs::write(user.path().join("small.json"), recording.to_string()).unwrap();
    let needs = |words: &str| {
        let answer =
            user.types(&format!("doctor --only run.gpu-memory --json --replay small.json -- {words}"));
        let report: Value = serde_json::from_str(&answer.stdout).unwrap();
        report["findings"].as_array().unwrap().len()
    };
    assert_eq!(needs("--device 0 --data shapes"), 0);
    assert_eq!(needs("--device 0"), 1);
}

#[cfg(not(windows))]
fn folder_to_touch(path: &Path) -> std::fs::File {
    std::fs::File::open(path).unwrap()
}

/// Windows opens folders only for those who say that they mean one.
#[cfg(windows)]
fn folder_to_touch(path: &Path) -> std::fs::File {
    use std::os::windows::fs::OpenOptionsExt as _;
    const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
    let mut options = std::fs::OpenOptions::new();
    options.access_mode(FILE_WRITE_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    options.open(path).unwrap()
}

/// A home of a user in which half a download has lain since 2024.
fn home_with_half_a_download(user: &User) -> PathBuf {
    let half = user.path().join("home/data/weights/.incoming-yolov5s.pt");
    std::fs::create_dir_all(half.join("parts")).unwrap();
    // 1 May 2024.
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_714_521_600);
    folder_to_touch(&half).set_modified(then).unwrap();
    half
}

fn fixes(user: &User, words: &str) -> user::Answer {
    let mut command = user.command(&format!("doctor --only disk.unfinished --fix {words}"));
    let command = command.env("YOLO_HOME", user.path().join("home")).stdin(std::process::Stdio::null());
    user::Answer::from(command.output().unwrap())
}

#[test]
fn fix_changes_nothing_without_confirmation() {
    let user = User::new();
    let half = home_with_half_a_download(&user);
    // A question is never asked about changes that --quiet hides.
    for words in ["--dry-run", "", "--quiet"] {
        let answer = fixes(&user, words).succeeded();
        let shown = ["--fix will make these changes:", ".incoming-yolov5s.pt"];
        assert!(shown.iter().all(|text| answer.stderr.contains(text)), "{words}: {}", answer.stderr);
        assert!(half.exists());
    }
    assert!(fixes(&user, "").stderr.contains("--yes"));
}

#[test]
fn fix_changes_and_checks_again() {
    let user = User::new();
    let half = home_with_half_a_download(&user);
    let answer = fixes(&user, "--yes --json").succeeded();
    assert!(!half.exists(), "{}", answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(report["fixed"][0]["result"], "done");
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
    assert!(fixes(&user, "--yes").stderr.contains("nothing to change"));
}

#[test]
fn a_missing_home_is_created_and_can_be_undone() {
    let user = User::new();
    let home = user.path().join("new home");
    let mut command = user.command("doctor --only disk.own-folder-missing --fix --yes");
    let answer = user::Answer::from(command.env("YOLO_HOME", &home).output().unwrap()).succeeded();
    assert!(home.is_dir(), "{}", answer.stderr);
    let shell = if cfg!(windows) { "to undo: cmd /c \"" } else { "to undo: sh '" };
    assert!(answer.stderr.contains(shell), "{}", answer.stderr);
}

#[test]
#[cfg(unix)]
fn a_variable_is_written_once_and_then_only_needs_sourcing() {
    let user = User::new();
    let home = user.path().join("two words");
    let fixes = |words: &str| {
        let mut command = user.command(&format!("doctor --only shell {words}"));
        command.env("YOLO_HOME", &home).env("CUDA_LAUNCH_BLOCKING", "1");
        user::Answer::from(command.output().unwrap()).succeeded()
    };
    let first = fixes("--fix --yes");
    let line = format!("  . '{}'", home.join("config/env.sh").display());
    assert!(first.stderr.lines().any(|found| found == line), "{}", first.stderr);
    assert!(first.stdout.contains("has written a file that fixes this"), "{}", first.stdout);
    assert!(!first.stdout.contains("--fix` can"), "{}", first.stdout);
    let backups = || std::fs::read_dir(home.join("config/backups")).unwrap().count();
    assert_eq!(backups(), 1);
    let second = fixes("--fix --yes");
    assert!(second.stderr.contains("nothing to change"), "{}", second.stderr);
    assert_eq!(backups(), 1);
}

/// `YOLO_UPDATE_REFERENCE=1 cargo test -p yolo --test doctor reference` regenerates the page.
#[test]
fn the_reference_page_is_that_of_the_catalogue() {
    let page = User::new().types("doctor --reference").succeeded().stdout;
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
