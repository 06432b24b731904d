//! `yolo compare` as a user runs it, on folders of runs that are written here: it reads files and starts nothing.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use scraper::{Html, Selector};
use serde_json::{Value, json};
use user::User;
use yolo_plan::results::COLUMNS;

/// Writes a run as YOLOv5 leaves it: only `opt.yaml`, `hyp.yaml` and `results.csv`.
fn write_run(user: &User, name: &str, options: &str, metrics: &[f64]) {
    let folder = user.path().join("runs/train").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let mut csv = COLUMNS.map(|column| format!("{column:>20}")).join(",") + "\n";
    for (epoch, metric) in metrics.iter().enumerate() {
        csv.push_str(&format!(
            "{epoch:>20},0.1,0.2,0.3,0.5,0.4,{metric},{},0.1,0.2,0.3,0.01,0.01,0.01\n",
            metric / 2.0
        ));
    }
    std::fs::write(folder.join("results.csv"), csv).unwrap();
    std::fs::write(
        folder.join("opt.yaml"),
        format!("weights: yolov5s.pt\nimgsz: 640\n{options}save_dir: {name}\n"),
    )
    .unwrap();
    std::fs::write(folder.join("hyp.yaml"), "lr0: 0.01\nlrf: 0.01\n").unwrap();
}

#[test]
fn runs_are_shown_side_by_side() {
    let user = User::new();
    write_run(&user, "exp", "data: data/birds.yaml\nepochs: 3\n", &[0.1, 0.5, 0.4]);
    write_run(&user, "exp2", "data: birds.yaml\nepochs: 2\ncos_lr: true\n", &[0.2, 0.6]);
    let compared = user.run("compare runs/train/exp runs/train/exp2").succeeded();
    assert!(!compared.stderr.contains("warning"), "{}", compared.stderr);
    insta::assert_snapshot!(compared.stdout);

    let compared = user.run("compare runs/train/exp runs/train/exp2 --json --html page.html").succeeded();
    let json: Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["runs"][0]["best"]["epoch"], 2);
    assert_eq!(json["runs"][1]["last"]["map50"], 0.6);
    assert_eq!(json["settings"][0], json!({ "name": "epochs", "values": ["3", "2"] }));
    let html = Html::parse_document(&std::fs::read_to_string(user.path().join("page.html")).unwrap());
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    let texts = |selector: &str| -> Vec<String> {
        html.select(&Selector::parse(selector).unwrap()).map(|element| element.text().collect()).collect()
    };
    assert_eq!(texts("h1"), ["Comparison of train/exp and train/exp2"]);
    assert_eq!(texts("h2"), ["Metrics", "Curves", "Settings"]);
    assert_eq!(
        texts("#metrics th[scope=col]")[..3],
        ["Run", "mAP50-95", "Fitness"],
        "a phone shows the first columns"
    );
    assert_eq!(texts("figcaption").len(), 8);
}

#[test]
fn long_names_and_values_keep_their_ends() {
    let user = User::new();
    write_run(&user, "exp", "data: /mnt/storage/of/the/laboratory/birds.yaml\nepochs: 3\ncfg: ''\n", &[0.1]);
    let long = "a-name-that-nobody-wants-to-read-in-full";
    write_run(&user, long, "data: fish.yaml\nepochs: 2\ncfg: high.yaml\n", &[0.2]);
    let compared = user.run(&format!("compare runs/train/exp runs/train/{long}")).succeeded();
    let line = |name: &str| compared.stdout.lines().find(|line| line.starts_with(name)).unwrap();
    assert_eq!(line("Setting"), "Setting                     train/exp  …obody-wants-to-read-in-full");
    assert_eq!(line("data"), "data     …f/the/laboratory/birds.yaml                     fish.yaml");
    assert_eq!(line("cfg"), "cfg                                 –                     high.yaml");
    assert!(line("…obody-wants-to-read-in-full    1/1").ends_with("0.1100"), "{}", compared.stdout);
    let widest = compared.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}: {}", compared.stdout);

    // Two runs whose names end alike keep them.
    let other = format!("b{}", &long[1..]);
    write_run(&user, &other, "data: fish.yaml\nepochs: 2\ncfg: high.yaml\n", &[0.3]);
    let compared = user.run(&format!("compare runs/train/{long} runs/train/{other}")).succeeded();
    for name in [long, &other] {
        assert!(compared.stdout.contains(&format!("train/{name}    1/1")), "{}", compared.stdout);
    }
}

#[test]
fn runs_on_different_data_sets_are_compared_with_a_warning() {
    let user = User::new();
    write_run(&user, "exp", "data: birds.yaml\n", &[0.1]);
    write_run(&user, "exp2", "data: fish.yaml\n", &[0.2]);
    let compared = user.run("compare runs/train/exp runs/train/exp2").succeeded();
    let warning = "warning: the runs have different data sets (train/exp: birds and train/exp2: fish), so their metrics \
                   cannot be compared";
    assert!(compared.stderr.contains(warning), "{}", compared.stderr);
}

#[test]
fn what_is_no_run_is_named() {
    let user = User::new();
    write_run(&user, "exp", "data: birds.yaml\n", &[0.1, 0.2]);
    user.run("compare runs/train/exp").failed_with(2, &["RUN"]);
    user.run("compare runs/train/exp gone")
        .failed_with(1, &["gone does not exist", "hint: name the folder of a run"]);
    user.run("compare runs/train/exp runs")
        .failed_with(1, &["runs is no folder of a training run: it has no results.csv"]);
    user.run("compare runs/train/exp runs/train/exp --html gone/a.html")
        .failed_with(1, &["cannot write gone/a.html", "the folder gone does not exist"]);
    let report = user.path().join("runs/train/exp/report.json");
    for (content, why) in [("{\"version\": 9}", "it has version 9"), ("{", "EOF while parsing")] {
        std::fs::write(&report, content).unwrap();
        let said = format!("cannot read the report.json of runs/train/exp: {why}");
        user.run("compare runs/train/exp runs/train/exp")
            .failed_with(1, &[&said, "hint: use the version of yolo that wrote it, or remove report.json"]);
    }
    std::fs::remove_file(&report).unwrap();
    let csv = user.path().join("runs/train/exp/results.csv");
    let text = std::fs::read_to_string(&csv).unwrap();
    std::fs::write(&csv, text.replacen("0.1,0.2", "0.1,oops", 1)).unwrap();
    user.run("compare runs/train/exp runs/train/exp").failed_with(
        1,
        &[
            "runs/train/exp/results.csv is damaged",
            "line 2 is not a row of 14 numbers",
            "hint: restore the file",
        ],
    );
}
