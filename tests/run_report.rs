//! The report of a run as a user finds it: `report.html` after training, validation and an interruption.
//! The page itself is tested in the crate `yolo-report`.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use scraper::{Html, Selector};
use serde_json::Value;
use user::{SIGINT, TRAIN, User, wait_for};

const VAL: &str =
    "val --data squares/squares.yaml --weights runs/train/exp/weights/best.pt --imgsz 64 --device cpu";

/// The text of the elements of a page.
fn texts(user: &User, run: &str, selector: &str) -> Vec<String> {
    let html =
        Html::parse_document(&std::fs::read_to_string(user.path().join(run).join("report.html")).unwrap());
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    let selector = Selector::parse(selector).unwrap();
    html.select(&selector).map(|element| element.text().collect()).collect()
}

fn facts(user: &User, run: &str) -> Value {
    serde_json::from_slice(&std::fs::read(user.path().join(run).join("report.json")).unwrap()).unwrap()
}

#[test]
fn training_and_validation_leave_a_report() {
    let user = User::new();
    let yaml = user.write_data_set();
    // Names of classes are text, whatever they are.
    let named =
        std::fs::read_to_string(&yaml).unwrap().replace("[red, blue]", "['<script>red</script>', blue]");
    std::fs::write(&yaml, named).unwrap();
    std::fs::write(user.path().join("squares/labels/train/00.txt"), "0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0.2 0.2\n")
        .unwrap();
    user.run(&format!("{TRAIN} --epochs 1 --noval --noplots --name first")).succeeded();
    std::fs::copy(user.path().join("runs/train/first/hyp.yaml"), user.path().join("my.yaml")).unwrap();
    let trained =
        user.run(&format!("{TRAIN} --epochs 2 --device cpu,cpu --batch 8 --hyp my.yaml")).succeeded();
    assert!(trained.stdout.contains("report: "), "{}", trained.stdout);
    let run = "runs/train/exp";
    assert_eq!(texts(&user, run, "h1"), ["train/exp"]);
    assert_eq!(texts(&user, run, "script"), [""; 0]);
    let again = &texts(&user, run, "#repeat pre")[0];
    assert!(again.contains("runs/train/exp/hyp.yaml") && !again.contains("my.yaml"), "{again}");
    assert!(texts(&user, run, "tbody th").contains(&"<script>red</script>".to_owned()));
    let problems = texts(&user, run, "#data li");
    assert!(problems.iter().any(|problem| problem.contains("00.txt")), "{problems:?}");
    let facts_of_run = facts(&user, run);
    assert_eq!(facts_of_run["run"]["end"], "finished");
    assert_eq!(facts_of_run["run"]["ranks"].as_array().unwrap().len(), 2);
    assert_eq!(facts_of_run["splits"][0]["images"], 16);
    assert_eq!(facts_of_run["splits"][1]["boxes"], serde_json::json!([4, 4]));
    let doing = |phase: &Value| phase["doing"].as_str().unwrap().to_owned();
    let phases: Vec<String> = facts_of_run["run"]["phases"].as_array().unwrap().iter().map(doing).collect();
    assert!(
        ["training", "validating"].iter().all(|phase| phases.iter().any(|one| one == phase)),
        "{phases:?}"
    );

    let validated = user.run(VAL).succeeded();
    assert!(validated.stdout.contains("runs/val/exp/report.html"), "{}", validated.stdout);
    let headings = texts(&user, "runs/val/exp", "h2");
    assert!(
        headings.iter().any(|heading| heading.ends_with("runs/train/exp/weights/best.pt")),
        "{headings:?}"
    );
    let of = |run: &str| facts(&user, run)["validations"][0]["confusion"].clone();
    assert_eq!(of("runs/val/exp"), of(run));
}

#[test]
fn without_plots_there_is_no_report() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots")).succeeded();
    let run = user.path().join("runs/train/exp");
    assert!(run.join("results.csv").is_file());
    assert!(!run.join("report.html").exists() && !run.join("report.json").exists());
}

#[test]
fn an_interrupted_run_reports_what_was_there_and_its_continuation_all() {
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{TRAIN} --epochs 30"));
    let last = user.path().join("runs/train/exp/weights/last.pt");
    wait_for("the first checkpoint", || last.exists().then_some(()));
    running.signal(SIGINT);
    let stopped = running.wait();
    assert_eq!(stopped.code, Some(130), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("report of what was done: "), "{}", stopped.stderr);
    let run = "runs/train/exp";
    let summary = texts(&user, run, "#summary p");
    assert_eq!(summary[0], "The run was interrupted. This report shows what was there.");
    assert!(summary[1].contains(" of 30; the best is epoch "), "{summary:?}");
    let commands = texts(&user, run, "#repeat pre");
    assert!(commands.iter().any(|command| command.contains("yolo train --resume ")), "{commands:?}");
    assert!(texts(&user, run, "h2").iter().any(|heading| heading.starts_with("Results of epoch ")));

    let before = facts(&user, run);
    user.run(&format!("train --resume {run}")).succeeded();
    let after = facts(&user, run);
    assert_eq!(after["spent"]["starts"], 2);
    let images = |facts: &Value| facts["ranks"][0]["images"].as_u64().unwrap();
    assert_eq!(images(&after["spent"]), 30 * 16, "each image of each epoch counts once");
    assert_eq!(images(&after["run"]) + images(&before["run"]), 30 * 16);
    let seconds = |facts: &Value| facts["seconds"].as_f64().unwrap();
    assert!((seconds(&after["spent"]) - seconds(&before["run"]) - seconds(&after["run"])).abs() < 1e-6);
    let notes = texts(&user, run, "#speed .note");
    assert!(notes.iter().any(|note| note.contains("sums over 2 starts")), "{notes:?}");
}
