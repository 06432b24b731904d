//! The kit on a machine without a GPU: programs that hang, fail or lie, reports that are joined, and the
//! documentation that is generated from a report.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gpu_kit::gpus::{Gpu, GpuMonitor};
use gpu_kit::invocation::signal;
use gpu_kit::report::{self, Outcome, Report};
use gpu_kit::stage::Stage;
use gpu_kit::{docs, processes, stages};
use rustix::process::Signal;
use support::{FakeKit, a_report};

fn run(kit: &FakeKit, arguments: &str) -> Output {
    command(kit, arguments).output().unwrap()
}

fn command(kit: &FakeKit, arguments: &str) -> Command {
    let mut command = Command::new(kit.path().join("bin/gpu-kit"));
    command.args(arguments.split_whitespace()).env("LIBTORCH", kit.libtorch()).current_dir(kit.path());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The report of a run in this folder.
fn report_in(folder: &Path) -> Report {
    report::read(&folder.join("gpu-report/report.json")).unwrap()
}

#[test]
fn a_program_that_hangs_is_killed_and_named() {
    let kit = FakeKit::new("trap '' TERM INT; sleep 600");
    let session = kit.session();
    let began = Instant::now();
    let report = stages::perform(Stage::Doctor, &session, began + Duration::from_secs(1));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(report.outcome, Outcome::TimedOut);
    let why = report.why.unwrap();
    assert!(why.contains("the stage ran out of time during `yolo doctor --json"), "{why}");
    assert!(processes::alive(&session.mark).is_empty(), "a process is left");
}

#[test]
fn ctrl_c_stops_the_kit_and_what_it_started() {
    let kit = FakeKit::new(
        "pwd >\"$(dirname \"$0\")/working\"; echo $$ >\"$(dirname \"$0\")/pid\"; exec sleep 600",
    );
    let running = command(&kit, "--rehearse --only train").stderr(Stdio::piped()).spawn().unwrap();
    let pid = kit.path().join("bin/pid");
    let began = Instant::now();
    while std::fs::read_to_string(&pid).unwrap_or_default().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "the stage does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(running.id(), Signal::INT);
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let message = text(&ended.stderr);
    assert!(message.ends_with("interrupted: every program that the kit started was stopped\n"), "{message}");
    let pid = std::fs::read_to_string(pid).unwrap();
    let is_alive = || {
        std::fs::read_to_string(format!("/proc/{}/comm", pid.trim())).is_ok_and(|name| name.trim() == "sleep")
    };
    while is_alive() {
        assert!(began.elapsed() < Duration::from_secs(30), "the program still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    let working = std::fs::read_to_string(kit.path().join("bin/working")).unwrap();
    assert!(!Path::new(working.trim()).exists(), "the working folder is left");
}

#[test]
fn a_program_that_fails_is_quoted() {
    let kit = FakeKit::new("echo 'error: the GPU is on fire' >&2; echo 'hint: put it out' >&2; exit 1");
    let output = run(&kit, "--rehearse --only train");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = report_in(kit.path());
    let train = report.stages.iter().find(|stage| stage.stage == Stage::Train).unwrap();
    assert_eq!(train.outcome, Outcome::Failed);
    let detail = &train.checks[1].detail;
    assert_eq!(detail, "exit status 1: error: the GPU is on fire; hint: put it out");
    assert!(report.stages.iter().filter(|stage| stage.stage != Stage::Train).all(|stage| {
        stage.outcome == Outcome::Skipped && stage.why.as_deref() == Some("left out by --only or --skip")
    }));
}

#[test]
fn a_program_that_succeeds_without_results_does_not_pass() {
    let kit = FakeKit::new("exit 0");
    for stage in [Stage::Doctor, Stage::Train, Stage::Resume, Stage::Memory, Stage::Speed, Stage::Ranks] {
        let session = kit.session();
        let report = stages::perform(stage, &session, Instant::now() + Duration::from_secs(30));
        assert_eq!(report.outcome, Outcome::Failed, "{stage:?} passed: {report:#?}");
    }
}

#[test]
fn a_device_that_computes_something_else_does_not_pass() {
    let kit = FakeKit::new(
        "mkdir -p runs/train/weights && touch runs/train/weights/best.pt runs/train/weights/last.pt
         printf '0,2,1,1,0,0,0,0,0\n1,1,1,1,0,0,0,0,0\n' >runs/train/results.csv",
    );
    let train = || stages::perform(Stage::Train, &kit.session(), Instant::now() + Duration::from_secs(30));
    assert_eq!(train().outcome, Outcome::Passed, "{:#?}", train());
    kit.write_program(
        "tests/yolo-trainer",
        "echo 'test loss_and_gradients_agree ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed'; exit 101",
    );
    let train = train();
    assert_eq!(train.outcome, Outcome::Failed);
    assert_eq!(train.checks[0].what, "loss and gradients of one batch are those of the CPU");
    assert_eq!(train.lines[0], "test loss_and_gradients_agree ... FAILED");
}

#[test]
fn a_test_program_without_tests_does_not_pass() {
    let kit = FakeKit::new("exit 0");
    kit.write_program("tests/tch-train", "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'");
    let report = stages::perform(Stage::Tests, &kit.session(), Instant::now() + Duration::from_secs(30));
    assert_eq!(report.outcome, Outcome::Failed);
    kit.write_program("tests/tch-train", "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'");
    let report = stages::perform(Stage::Tests, &kit.session(), Instant::now() + Duration::from_secs(30));
    assert_eq!(report.outcome, Outcome::Passed);
}

#[test]
fn a_stage_whose_feature_does_not_exist_does_not_pass() {
    let kit = FakeKit::new(
        "case \"$*\" in *two-gloo*) echo 'error: --device is invalid' >&2; exit 2;; esac
         name=$(echo \"$*\" | sed 's/.*--name \\([^ ]*\\).*/\\1/')
         mkdir -p runs/$name && echo 0,1,1,1,0,0,0,0,0 >runs/$name/results.csv",
    );
    let output = run(&kit, "--rehearse --only ranks");
    let report = report_in(kit.path());
    let ranks = report.stages.iter().find(|stage| stage.stage == Stage::Ranks).unwrap();
    assert_eq!(ranks.outcome, Outcome::NotBuilt, "{ranks:#?}");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("0 of 1 stages passed, 7 did not run"));
}

#[test]
fn equal_runs_must_have_equal_losses_and_weights() {
    // Trains, with losses that may depend on the run, and compares weights.
    let script = |losses: &str, differing: &str| {
        format!(
            r#"case "$*" in
              *weights*--diff*) echo '{{"tensors":{{"only_in":[[],[]],"shapes":[],"types":0,"equal":3,"values":[{differing}]}}}}'; exit;;
              *) name=$(echo "$*" | sed 's/.*--name \([^ ]*\).*/\1/')
                 mkdir -p runs/$name && echo "0,{losses},1,1,0,0,0,0,0" >runs/$name/results.csv;;
            esac"#
        )
    };
    let judged = |script: &str| {
        let kit = FakeKit::new(script);
        let session = kit.session_on_a_gpu();
        let report = stages::perform(Stage::Resume, &session, Instant::now() + Duration::from_secs(60));
        let what = "two undisturbed runs have equal losses and weights";
        let check = report.checks.iter().find(|check| check.what == what).unwrap();
        (check.outcome, check.detail.clone())
    };
    let equal = "1 epoch, all numbers are equal".to_owned();
    assert_eq!(judged(&script("0.5", "")), (Outcome::Passed, equal));
    let (outcome, detail) = judged(&script("0.${#name}", ""));
    assert_eq!(outcome, Outcome::Failed);
    assert!(detail.contains("the first difference is in epoch 0"), "{detail}");
    let (outcome, detail) = judged(&script("0.5", "{}"));
    assert_eq!(
        (outcome, detail.as_str()),
        (Outcome::Failed, "1 epoch with equal losses, but the weights differ in 1 tensor")
    );
}

#[test]
fn the_batch_that_must_not_fit_follows_the_memory_of_the_gpu() {
    let kit =
        FakeKit::new("echo \"$*\" >>calls; echo 'error: CUDA out of memory; lower --batch' >&2; exit 1");
    let h200 = Gpu { memory: 150_754_820_096, ..support::h100() };
    let session = kit.session_with(GpuMonitor::made_up(h200, 0, Some(0)));
    let report = stages::perform(Stage::Memory, &session, Instant::now() + Duration::from_secs(60));
    let check = &report.checks[0];
    assert_eq!(check.what, "a batch that does not fit ends in one message that says what to lower");
    assert_eq!(check.outcome, Outcome::Passed, "{check:?}");
    let calls = std::fs::read_to_string(session.work.join("calls")).unwrap();
    let first = calls.lines().next().unwrap();
    assert!(first.contains("--cfg yolov5x --weights= --imgsz 1280 --batch 151 "), "{first}");
}

#[test]
fn a_batch_that_every_gpu_can_hold_must_fit() {
    let kit = FakeKit::new("echo 'error: CUDA out of memory' >&2; exit 1");
    for stage in [Stage::Speed, Stage::Memory] {
        let session = kit.session_on_a_gpu();
        let report = stages::perform(stage, &session, Instant::now() + Duration::from_secs(60));
        assert_eq!(report.outcome, Outcome::Failed, "{report:#?}");
    }
}

#[test]
fn every_combination_of_ranks_on_one_gpu_is_tried() {
    let kit = FakeKit::new(
        "case \"$*\" in
           *'--device cpu'*) name=$(echo \"$*\" | sed 's/.*--name \\([^ ]*\\).*/\\1/')
             mkdir -p runs/$name && echo 0,1,1,1,0,0,0,0,0 >runs/$name/results.csv;;
           *) echo \"${*##*--imgsz 320 --batch 16 }\" >>ranks; echo 'error: refused' >&2; exit 2;;
         esac",
    );
    std::fs::create_dir(kit.path().join("nccl")).unwrap();
    std::fs::write(kit.path().join("nccl/libnccl.so.2"), "").unwrap();
    let session = kit.session_on_a_gpu();
    let report = stages::perform(Stage::Ranks, &session, Instant::now() + Duration::from_secs(60));
    assert_eq!(report.outcome, Outcome::NotBuilt, "{report:#?}");
    let tried = std::fs::read_to_string(session.work.join("ranks")).unwrap();
    let tried = tried.replace(&*kit.path().to_string_lossy(), "KIT");
    insta::assert_snapshot!(tried, @r"
    --device 0,0 --backend gloo --data shapes --cfg yolov5n --weights=
    --device 0 --backend nccl --data shapes --cfg yolov5n --weights=
    --device 0,0 --backend nccl --data shapes --cfg yolov5n --weights= --nccl KIT/nccl/libnccl.so.2
    --device 0,0 --parallel dp --data shapes --cfg yolov5n --weights=
    --device 0,0 --parallel model --data shapes --cfg yolov5n --weights=
    ");
}

#[test]
fn a_machine_without_the_gpu_is_told_what_is_missing() {
    let output = run(&FakeKit::new("exit 0"), "--device 4096");
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    let is_named = message.contains("driver is not installed") || message.contains("there is no GPU 4096");
    assert!(is_named, "{message}");
}

#[test]
fn no_stage_starts_without_enough_time() {
    let kit = FakeKit::new("exit 0");
    let output = run(&kit, "--rehearse --limit 0");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("0 of 8 stages passed, 8 not finished"));
    let stages = report_in(kit.path()).stages;
    assert!(stages.iter().all(|stage| stage.outcome == Outcome::Unfinished));
    let why =
        "only 0 s of the 0 s of --limit were left, and it needs 30 s; run it first with `--only doctor`";
    assert_eq!(stages[0].why.as_deref(), Some(why));
}

#[test]
fn a_machine_that_cannot_run_any_stage_is_told_why() {
    let kit = FakeKit::new("exit 0");
    std::fs::write(kit.libtorch().join("build-version"), "2.7.1+cpu").unwrap();
    let output = run(&kit, "--rehearse");
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    assert!(message.contains("is 2.7.1+cpu, not 2.11.0"), "{message}");
    kit.write_program("tests/tch-train", "exit 0");
    let program = kit.path().join("tests/tch-train");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o644)).unwrap();
    let message = text(&run(&kit, "--rehearse").stderr);
    assert!(
        message.contains("the kit has no executable program at") && message.contains("tch-train"),
        "{message}"
    );
    std::fs::remove_file(kit.path().join("manifest.json")).unwrap();
    let message = text(&run(&kit, "--rehearse").stderr);
    assert!(message.contains("the kit has no manifest"), "{message}");
}

#[test]
fn what_would_lose_the_result_is_noticed_at_the_start() {
    let kit = FakeKit::new("touch \"$(dirname \"$0\")/started\"");
    std::fs::write(kit.path().join("file"), "").unwrap();
    let output = run(&kit, "--rehearse --out file/report");
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    assert!(message.contains("the report cannot be written: ") && message.contains("--out"), "{message}");

    let output = command(&kit, "--rehearse").env("TMPDIR", "/nonexistent/folder").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    assert!(message.contains("/nonexistent/folder") && message.contains("set TMPDIR"), "{message}");

    let output = run(&kit, "--rehearse --only train --skip train");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("select no stage"), "{}", text(&output.stderr));
    let output = run(&kit, "--rehearse --limit 99999999999999999999");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("whole number"), "{}", text(&output.stderr));
    assert!(!kit.path().join("bin/started").exists(), "a program was started");
}

#[test]
fn a_stage_that_the_limit_cuts_short_is_not_called_failed() {
    let kit = FakeKit::new("exec sleep 600");
    let late = stages::perform(Stage::Doctor, &kit.session(), Instant::now() + Duration::from_secs(1));
    assert_eq!(late.outcome, Outcome::TimedOut);
    let doctor = late.cut_short(570);
    assert_eq!(doctor.outcome, Outcome::Unfinished);
    let why =
        "the 570 s of --limit were over; repeat it with `--only doctor`, and join the reports with `merge`";
    assert_eq!(doctor.why.as_deref(), Some(why));
    let kit = FakeKit::new("exit 1");
    let failed = stages::perform(Stage::Train, &kit.session(), Instant::now() + Duration::from_secs(60));
    assert_eq!(failed.cut_short(570).outcome, Outcome::Failed);
    // A check that failed before time was over counts.
    let kit = FakeKit::new("exec sleep 600");
    kit.write_program("tests/yolo-trainer", "echo 'test result: FAILED. 0 passed; 1 failed'; exit 101");
    let late = stages::perform(Stage::Train, &kit.session(), Instant::now() + Duration::from_secs(2));
    assert_eq!(late.outcome, Outcome::TimedOut);
    assert_eq!(late.cut_short(570).outcome, Outcome::Failed);
}

#[test]
fn a_run_that_leaves_something_open_does_not_succeed() {
    let kit = FakeKit::new("exit 0");
    kit.write_program("tests/tch-train", "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'");
    let passed = run(&kit, "--rehearse --only tests");
    assert_eq!(passed.status.code(), Some(0), "{}", text(&passed.stderr));
    // The second stage needs more than is left.
    let open = run(&kit, "--rehearse --only tests,ranks --limit 80");
    assert_eq!(open.status.code(), Some(4), "{}", text(&open.stderr));
    assert!(text(&open.stdout).contains("1 of 2 stages passed, 1 not finished, 6 did not run"));
    let nothing = run(&kit, "--rehearse --only original");
    assert_eq!(nothing.status.code(), Some(3), "a stage that cannot run: {}", text(&nothing.stdout));
}

#[test]
fn programs_write_their_temporary_files_into_the_working_folder() {
    let kit = FakeKit::new("echo $TMPDIR >>\"$(dirname \"$0\")/temporary\"; exit 1");
    run(&kit, "--rehearse --only train");
    let folder = std::fs::read_to_string(kit.path().join("bin/temporary")).unwrap();
    assert!(folder.contains("/yolo-gpu-kit-") && folder.trim().ends_with("/tmp"), "{folder}");
    assert!(!Path::new(folder.trim()).exists(), "{folder} is left");
}

#[test]
fn reports_of_short_runs_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.json"), folder.path().join("2.json"));
    let mut report = a_report();
    support::write(&report, &first);
    report.stages[0].outcome = Outcome::Skipped;
    report.stages[1].outcome = Outcome::Passed;
    support::write(&report, &second);
    let joined = report::merge(&[first.clone(), second.clone()]).unwrap();
    let outcomes: Vec<Outcome> = joined.stages.iter().map(|stage| stage.outcome).collect();
    assert_eq!(outcomes[..2], [Outcome::Passed, Outcome::Passed]);

    // A stage that was cut says nothing against an earlier run of it.
    report.stages[0].outcome = Outcome::Unfinished;
    let check = report.stages[1].checks[0].clone();
    report.stages[3].checks.push(check);
    support::write(&report, &second);
    let joined = report::merge(&[first.clone(), second.clone()]).unwrap();
    assert_eq!(joined.stages[0].outcome, Outcome::Passed);
    assert_eq!(joined.stages[3].checks.len(), 1, "of two that were cut, the one that says more is kept");
    let joined = report::merge(&[second.clone(), first.clone()]).unwrap();
    assert_eq!(joined.stages[3].checks.len(), 1);

    report.kit.commit = "0000000".to_owned();
    support::write(&report, &second);
    let message = report::merge(&[first.clone(), second]).unwrap_err().to_string();
    assert!(message.contains("cannot be joined: the kit differs: abc1234 and 0000000"), "{message}");

    let broken = folder.path().join("3.json");
    std::fs::write(&broken, "{}").unwrap();
    let message = report::merge(&[first, broken]).unwrap_err().to_string();
    assert!(message.contains("3.json is not a report of the GPU kit"), "{message}");
}

#[test]
fn a_report_follows_its_schema_and_its_page_is_readable() {
    let schema = serde_json::from_str(include_str!("../report.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let report = a_report();
    let value = serde_json::to_value(&report).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    insta::assert_snapshot!(report::page(&report));
}

#[test]
fn a_written_report_follows_the_schema_too() {
    let kit = FakeKit::new("exit 0");
    run(&kit, "--rehearse --only tests");
    let schema = serde_json::from_str(include_str!("../report.schema.json")).unwrap();
    let text = std::fs::read_to_string(kit.path().join("gpu-report/report.json")).unwrap();
    let value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let left: Vec<_> = std::fs::read_dir(kit.path().join("gpu-report")).unwrap().flatten().collect();
    assert!(left.len() <= 8, "more files than a borrowed machine gives back: {left:?}");
}

/// `docs/gpu.md` is generated; `YOLO_UPDATE_REFERENCE=1` writes it.
#[test]
fn the_documentation_shows_the_committed_reports() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let committed = std::fs::read_dir(root.join("docs/gpu")).into_iter().flatten();
    let reports: Vec<report::Report> = committed
        .map(|entry| {
            let path = entry.unwrap().path();
            let report = report::read(&path).unwrap();
            assert!(!report.rehearsal && report.has_run(), "{} is no report of a GPU", path.display());
            report
        })
        .collect();
    let (page, path) = (docs::page(reports), root.join("docs/gpu.md"));
    if std::env::var_os("YOLO_UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page, "docs/gpu.md is out of date");
}
