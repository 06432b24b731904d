//! `yolo bench --scaling` and `--batches` as a user runs them: the numbers, the files, rows that fail,
//! Ctrl-C, and mistakes.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use serde_json::Value;
use user::{SIGINT, User, masked, wait_for};

/// Tables of tiny images on two ranks, a second per row.
const BENCH: &str = "bench --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 \
                     --device cpu,cpu --workers 1 --seconds 1";

fn user() -> User {
    let user = User::new();
    user.write_data_set();
    user
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} is not a number in {value}"))
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 1e-6
}

/// Fails unless the numbers of a measured row of 16 training images follow from each other.
fn check_row(row: &Value) {
    assert_eq!(row["status"], "measured", "{row}");
    let rate = &row["images_per_second"];
    let [min, median, max] = ["min", "median", "max"].map(|name| number(rate, name));
    assert!(0.0 < min && min <= median && median <= max, "{row}");
    assert_eq!(row["images"], 16);
    assert!(near(number(row, "seconds"), 16.0 / median), "{row}");
    // A trainer takes more than 50 MB and less than 8 GB.
    assert!((5e7..8e9).contains(&number(row, "memory")), "{row}");
    assert_eq!(
        number(row, "batch_per_device") * row["devices"].as_array().unwrap().len() as f64,
        number(row, "batch")
    );
}

#[test]
fn scaling_compares_one_and_two_ranks() {
    let user = user();
    let finished =
        user.run(&format!("{BENCH} --scaling --json --csv tables.csv --plot tables.svg")).succeeded();
    let tables: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&tables["version"], &tables["rounds"]), (&1.into(), &5.into()));
    assert_eq!((&tables["source"], &tables["interrupted"]), (&"files".into(), &false.into()));
    assert_eq!(tables["batches"], Value::Array(Vec::new()));
    let [one, two] = &tables["scaling"].as_array().unwrap()[..] else { panic!("{tables:#}") };
    for row in [one, two] {
        check_row(row);
        let validation = number(&row["validation_images_per_second"], "median");
        assert!(near(number(row, "validation_seconds"), 8.0 / validation), "{row}");
    }
    assert_eq!((&one["batch"], &two["batch"]), (&8.into(), &16.into()));
    // The user sets the threads of each rank, so two ranks have twice as many.
    let speed_up = number(&two["images_per_second"], "median") / number(&one["images_per_second"], "median");
    assert!(near(number(two, "speed_up"), speed_up) && near(number(two, "efficiency"), speed_up / 2.0));
    assert_eq!((number(one, "speed_up"), number(one, "efficiency")), (1.0, 1.0));

    let csv = std::fs::read_to_string(user.path().join("tables.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines[2].starts_with("scaling,2,cpu cpu,16,8,1,1,measured,"), "{csv}");
    let plot = std::fs::read_to_string(user.path().join("tables.svg")).unwrap();
    assert!(plot.contains("Speed-up") && plot.trim_end().ends_with("</svg>"), "{plot}");
    // Each run has its plan and its logs.
    for (row, ranks) in [("row1", 1), ("row2", 2)] {
        let folder = user.path().join("runs/bench/exp").join(row);
        assert!(folder.join("plan.json").is_file());
        assert_eq!(std::fs::read_dir(folder.join("logs")).unwrap().count(), ranks);
    }
}

#[test]
fn batches_are_shown_side_by_side_up_to_the_size_of_the_split() {
    let user = user();
    let finished = user.run(&format!("{BENCH} --batches 8,32,16,64")).succeeded();
    let (table, notes) = finished.stdout.split_once("\n\n  1 device, batch 32: ").unwrap();
    insta::assert_snapshot!(masked(table), @r"
    yolov5n at N px, fp32, images of the data set

    one device two devices
    batch images/s spread s/epoch GiB each images/s spread s/epoch GiB each gain
    N N N N N N N N N N
    N N N N N N N N N N
    N not measured not measured –
    ");
    let notes = notes.replace('\n', " ");
    let cause = "not measured: the training split has 16 images";
    assert_eq!(notes.matches(cause).count(), 2, "{notes}");
    assert!(notes.contains("The gain is the images per second of two devices"), "{notes}");
    for progress in ["1 of 8: 1 device, batch 8", "1 device, batch 8: ", "6 of 8: 2 devices, batch 16"] {
        assert!(finished.stderr.contains(progress), "{progress} is not in:\n{}", finished.stderr);
    }
    assert!(finished.stdout.lines().all(|line| line.chars().count() <= 80), "{}", finished.stdout);

    let finished = user.run(&format!("{BENCH} --device cpu --batches 32 --json"));
    let finished = finished.failed_with(1, &["1 of 1 measurements failed"]);
    let tables: Value = serde_json::from_str(&finished.stdout).unwrap();
    let message = tables["batches"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("the training split has 16 images, less than a batch of 32"), "{message}");
    assert!(message.contains("--synthetic"), "{message}");
}

#[test]
fn a_synthetic_batch_has_no_limit() {
    let user = user();
    let finished = user.run(&format!("{BENCH} --device cpu --batches 32 --synthetic --json")).succeeded();
    let tables: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(tables["source"], "synthetic");
    check_row(&tables["batches"][0]);
}

/// A trainer that acts on some plans as `script` says, in which `$1` is the plan, and trains otherwise.
fn trainer(user: &User, script: &str) -> PathBuf {
    let trainer = Path::new(env!("CARGO_BIN_EXE_yolo")).with_file_name("yolo-trainer");
    user.write_program(
        "trainer",
        &format!("#!/usr/bin/env bash\n{script}\nexec '{}' \"$@\"\n", trainer.display()),
    )
}

/// Events of a rank whose memory runs out.
fn out_of_memory() -> String {
    use yolo_plan::event::{Event, PROTOCOL};
    let hello = Event::Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rank: 0,
        pid: 1,
        device: "cpu".to_owned(),
        threads: 1,
    };
    let failed = Event::Failed {
        of_data: false,
        message: "out of memory: 6.1 GiB could not be allocated".to_owned(),
        hint: None,
        doing: "measuring training".to_owned(),
        peer_lost: false,
        progress: None,
    };
    let lines = [hello, failed].map(|event| serde_json::to_string(&event).unwrap());
    format!("printf '%s\\n' '{}' '{}' >&$YOLO_EVENTS_FD; exit 1", lines[0], lines[1])
}

#[test]
fn rows_that_fail_do_not_lose_the_others() {
    let user = user();
    // One rank runs out of memory with 8 images, and rank 1 of two is killed with 4.
    let program = trainer(
        &user,
        &format!(
            "has() {{ grep -q \"\\\"$1\\\": $2,\" \"$3\"; }}\n\
             if has batch 8 \"$1\" && has world_size 1 \"$1\"; then {}; fi\n\
             if has batch 4 \"$1\" && [ \"$RANK\" = 1 ]; then kill -9 $$; fi",
            out_of_memory()
        ),
    );
    let variables = [("YOLO_TRAINER", program.to_str().unwrap())];
    let finished =
        user.start_with(&format!("{BENCH} --batches 4,8,16 --csv t.csv --json"), &variables).wait();
    let finished = finished.failed_with(1, &["1 of 5 measurements failed"]);
    let tables: Value = serde_json::from_str(&finished.stdout).unwrap();
    let rows: Vec<(u64, usize, &str)> = tables["batches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let devices = row["devices"].as_array().unwrap().len();
            (row["batch"].as_u64().unwrap(), devices, row["status"].as_str().unwrap())
        })
        .collect();
    // Memory ends the series of one device, so 16 images are measured on two only.
    let expected = [
        (4, 1, "measured"),
        (8, 1, "out-of-memory"),
        (4, 2, "failed"),
        (8, 2, "measured"),
        (16, 2, "measured"),
    ];
    assert_eq!(rows, expected, "{}", finished.stderr);
    let message = |index: usize| tables["batches"][index]["message"].as_str().unwrap();
    assert!(message(1).contains("out of memory: 6.1 GiB could not be allocated"), "{}", message(1));
    assert!(message(2).contains("rank 1 of 2") && message(2).contains("signal 9"), "{}", message(2));
    let csv = std::fs::read_to_string(user.path().join("t.csv")).unwrap();
    assert_eq!(csv.matches(",measured,").count(), 3, "{csv}");
}

#[test]
fn ctrl_c_prints_the_rows_before_it() {
    let user = user();
    // The second run waits until it is ended.
    let program = trainer(&user, "if grep -q '\"batch\": 16,' \"$1\"; then touch waits; exec sleep 600; fi");
    let variables = [("YOLO_TRAINER", program.to_str().unwrap())];
    let running = user.start_with(&format!("{BENCH} --scaling --json"), &variables);
    wait_for("the second run", || user.path().join("waits").exists().then_some(()));
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert!(finished.stderr.ends_with("interrupted\n"), "{}", finished.stderr);
    let tables: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(tables["interrupted"], true);
    let [one] = &tables["scaling"].as_array().unwrap()[..] else { panic!("{tables:#}") };
    check_row(one);
}

#[test]
fn ctrl_c_before_the_first_row_prints_no_table() {
    let user = user();
    let running = user.start(&format!("{BENCH} --batches 4,8 --seconds 600"));
    let ranks = wait_for("a rank", || Some(running.ranks()).filter(|ranks| !ranks.is_empty()));
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert_eq!(finished.stdout, "", "nothing was measured");
    assert!(ranks.into_iter().all(|rank| !user::is_alive(rank)));
}

#[test]
fn mistakes_have_a_message_and_nothing_is_started() {
    let user = user();
    let ends = |status: i32, arguments: &str, parts: &[&str]| {
        let finished = user.run(&format!("{BENCH} {arguments}")).failed_with(status, parts);
        assert_eq!(finished.stdout, "");
    };
    let fails = |arguments: &str, parts: &[&str]| ends(2, arguments, parts);
    fails("--batches 4,x", &["--batches 4,x: \"x\" is not a number of images"]);
    fails(
        "--batches abc",
        &["--batches abc: \"abc\" is not a number of images", "hint: give the sizes with commas"],
    );
    fails("--batches 3", &["--batches 3: 3 images cannot be divided between two devices"]);
    fails("--scaling --workers auto", &["--workers auto does not go together"]);
    fails("--scaling --plot t.png", &["--plot t.png: plots are SVG images", "--plot t.svg"]);
    ends(
        1,
        "--scaling --csv gone/t.csv",
        &["cannot write gone/t.csv: the folder gone does not exist", "hint: name a file in a folder"],
    );
    fails("--scaling --csv t.svg --plot ./t.svg", &["--csv and --plot name the same file"]);
    fails("--device cpu --csv t.csv", &["--csv t.csv is for the tables of --scaling and --batches"]);
    ends(1, "--scaling --data gone.yaml", &["gone.yaml"]);
    fails("", &["--device cpu,cpu names 2 devices", "--scaling"]);
    user.run(&format!("{BENCH} --scaling --loader")).failed_with(2, &["--loader"]);
    assert!(!user.path().join("runs").exists() && !user.path().join("t.csv").exists());
}
