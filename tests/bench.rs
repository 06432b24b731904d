//! `yolo bench` as a user runs it: the JSON that programs read, the table, a selection, mistakes and
//! Ctrl-C.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/observed_trainer.rs"]
mod observed_trainer;
#[path = "support/user.rs"]
mod user;

use std::time::{Duration, Instant};

use observed_trainer::ObservedTrainer;
use serde_json::Value;
use user::{SIGINT, User, masked};

/// A benchmark of tiny images with one loader thread, a second per measurement.
const BENCH: &str = "bench --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 \
                     --device cpu --workers 1 --seconds 1";

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} is not a number in {value}"))
}

/// Fails unless a measurement counted images for about a second, and its rate follows from both.
fn check_rate(measurement: &Value) {
    let (images, seconds) = (number(measurement, "images"), number(measurement, "seconds"));
    assert!(images >= 8.0 && images.fract() == 0.0, "{measurement}");
    assert!((1.0..60.0).contains(&seconds), "{measurement}");
    let rate = number(measurement, "images_per_second");
    assert!((rate * seconds / images - 1.0).abs() < 1e-6, "{measurement}");
}

/// Fails unless a measurement has exactly these phases, and their shares add up to 1.
fn check_phases(measurement: &Value, names: &[&str]) {
    let phases = measurement["phases"].as_object().unwrap();
    let mut found: Vec<&str> = phases.keys().map(String::as_str).collect();
    let mut expected = names.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let shares = phases.values().map(|share| share.as_f64().unwrap());
    assert!(shares.clone().all(|share| (0.0..=1.0).contains(&share)), "{measurement}");
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-6, "{measurement}");
}

#[test]
fn the_json_has_all_four_measurements_with_plausible_numbers() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(&format!("{BENCH} --workers 2 --json")).succeeded();
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&report["version"], &report["program"]), (&1.into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!((&report["device"], &report["model"]), (&"cpu".into(), &"yolov5n".into()));
    assert_eq!((&report["image_size"], &report["batch"]), (&64.into(), &8.into()));
    assert_eq!((&report["precision"], &report["threads"]), (&"fp32".into(), &1.into()));

    let measurements = report["measurements"].as_array().unwrap();
    measurements.iter().for_each(check_rate);
    let (mut loaders, mut others) = (Vec::new(), Vec::new());
    for measurement in measurements {
        match measurement["what"].as_str().unwrap() {
            "loader" => {
                loaders.push(measurement["workers"].as_u64().unwrap());
                let stage = |name: &str| number(&measurement["stages"], name);
                let threads = stage("decode") + stage("augment") + stage("queue");
                assert!((threads - 1.0).abs() < 1e-6, "{measurement}");
                assert!(
                    stage("decode") > 0.0 && stage("augment") > 0.0 && stage("copy") > 0.0,
                    "{measurement}"
                );
            }
            what => others.push((what, measurement)),
        }
    }
    let [("training", files), ("training", synthetic), ("validation", validation)] = others[..] else {
        panic!("{report:#}")
    };
    // On a machine with one core, two threads are not allowed.
    let workers = files["workers"].as_u64().unwrap();
    assert!((1..=2).contains(&workers));
    assert_eq!(loaders, (1..=workers).collect::<Vec<_>>());
    let steps = ["wait", "copy", "forward", "loss", "backward", "optimizer"];
    check_phases(files, &steps);
    check_phases(synthetic, &steps);
    check_phases(validation, &["preprocess", "inference", "nms"]);
    assert_eq!((&files["source"], &synthetic["source"]), (&"files".into(), &"synthetic".into()));
    assert!(synthetic.get("workers").is_none(), "no loader takes part: {synthetic}");
    assert!(files.get("host_waits").is_none(), "a CPU does not wait for a GPU: {files}");
    assert!(synthetic.get("launch_share").is_none(), "nothing is launched on a CPU: {synthetic}");
    assert_eq!(number(&synthetic["phases"], "wait"), 0.0);
    for phase in ["forward", "loss", "backward", "optimizer"] {
        assert!(number(&files["phases"], phase) > 0.0, "{phase} takes no time: {files}");
    }

    let fastest_loader = measurements.iter().rfind(|one| one["what"] == "loader").unwrap();
    let loader_is_slower =
        number(fastest_loader, "images_per_second") < number(synthetic, "images_per_second");
    assert_eq!(report["limit"], if loader_is_slower { "loader" } else { "network" });
}

#[test]
fn the_table_shows_speeds_phases_and_the_limit() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(BENCH).succeeded();
    let (table, limit) = finished.stdout.trim_end().rsplit_once("\n\n").unwrap();
    // Which stage limits depends on the machine.
    let stages = ["decoding", "augmentation", "waiting for other threads", "copying to the device"];
    let named: Vec<_> =
        stages.iter().filter(|name| table.contains(&format!("\n{name} limits the loader"))).collect();
    let [stage] = named[..] else { panic!("{table}") };
    let table = table.replace(&format!("{stage} limits"), "STAGE limits");
    insta::assert_snapshot!(masked(&table), @r"
    yolov5n at N px, batch 8, fp32, device cpu, N CPU thread

    images/s images seconds
    training N N N
    training, synthetic N N N
    loader, N thread N N N
    validation N N N

    share of a step wait copy forward loss backward optimizer
    training N % N % N % N % N % N %
    training, synthetic N % N % N % N % N % N %

    share of the loader decode augment queue copy
    loader, N thread N % N % N % N %
    STAGE limits the loader with N thread

    share of validation preprocess inference NMS
    validation N % N % N %
    ");
    assert!(
        limit.starts_with("the network limits training: ")
            || limit.starts_with("the loader limits training: "),
        "{limit}"
    );
    // The folder has what every run needs, and no results.
    let mut names: Vec<String> = std::fs::read_dir(user.path().join("runs/bench/exp"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["logs", "plan.json"]);
}

#[test]
fn only_the_named_measurements_are_made() {
    let user = User::new();
    user.write_data_set();
    let whats = |arguments: &str| {
        let finished = user.run(&format!("{BENCH} --json {arguments}")).succeeded();
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(report["limit"], Value::Null, "only network and loader together tell the limit");
        let measurements = report["measurements"].as_array().unwrap();
        measurements.iter().map(|one| one["what"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(whats("--validation"), ["validation"]);
    assert_eq!(whats("--loader"), ["loader"]);
    assert_eq!(whats("--training"), ["training"]);
}

#[test]
fn training_and_the_loader_are_measured_in_whole_batches() {
    let user = User::new();
    user.write_data_set();
    // Of the 16 images, 4 are left over.
    let options = "--json --training --loader most --batch 12 --workers 2";
    let finished = user.run(&format!("{BENCH} {options}")).succeeded();
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let [training, loader] = &report["measurements"].as_array().unwrap()[..] else { panic!("{report:#}") };
    assert_eq!((number(training, "images") % 12.0, number(loader, "images") % 12.0), (0.0, 0.0));
    assert_eq!((&loader["what"], &loader["workers"]), (&"loader".into(), &2.into()), "not with 1 thread");
}

#[test]
fn workers_auto_measures_the_loader_until_it_suffices() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(&format!("{BENCH} --workers auto --json")).succeeded();
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let (advice, measurements) = (&report["workers"], report["measurements"].as_array().unwrap());
    let [network, loaders @ ..] = &measurements[..] else { panic!("{report:#}") };
    assert_eq!((&network["what"], &network["source"]), (&"training".into(), &"synthetic".into()));
    assert_eq!(advice["needed"], network["images_per_second"]);
    let counts: Vec<u64> = loaders.iter().map(|loader| loader["workers"].as_u64().unwrap()).collect();
    let doubled: Vec<u64> = (0..counts.len()).map(|power| 1 << power).collect();
    assert!(counts[..counts.len() - 1] == doubled[..counts.len() - 1], "{counts:?}");
    let chosen = loaders.iter().find(|loader| loader["workers"] == advice["count"]).unwrap();
    assert_eq!(advice["images_per_second"], chosen["images_per_second"]);
    let reasons = ["fast-enough", "no-gain", "most"];
    assert!(reasons.iter().any(|reason| advice["why"] == *reason), "{report:#}");

    let text = user.run(&format!("{BENCH} --workers auto")).succeeded().stdout;
    assert!(text.contains("\nuse --workers ") && !text.contains("limits training"), "{text}");
}

#[test]
fn a_synthetic_batch_may_be_larger_than_the_data_set() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(&format!("{BENCH} --json --training --synthetic --batch 20")).succeeded();
    let warning = "the training split has 16 images, less than a batch of 20, so training on files is measured with smaller batches";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let [files, synthetic] = [0, 1].map(|index| number(&report["measurements"][index], "images"));
    assert_eq!((files % 16.0, synthetic % 20.0), (0.0, 0.0), "{report:#}");
}

#[test]
fn mistakes_have_a_message_and_leave_no_folder() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{BENCH} --seconds 0")).failed_with(2, &["--seconds 0"]);
    user.run(&format!("{BENCH} --workers many")).failed_with(2, &["not a whole number, and not auto"]);
    user.run(&format!("{BENCH} --batch 0")).failed_with(2, &["--batch 0", "--batch 16"]);
    user.run(&format!("{BENCH} --data gone.yaml")).failed_with(1, &["gone.yaml"]);
    let finished = user.run(&format!("{BENCH} --json --weights gone.pt")).failed_with(1, &["gone.pt"]);
    assert_eq!(finished.stdout, "");
    assert!(!user.path().join("runs").exists());
}

#[test]
fn ctrl_c_ends_a_benchmark_at_once() {
    let user = User::new();
    user.write_data_set();
    let trainer = ObservedTrainer::new(&user);
    let running = trainer.start(&user, &format!("{BENCH} --seconds 600 --cache"));
    trainer.wait_for("measuring training");
    let began = Instant::now();
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert!(finished.stderr.ends_with("interrupted\n"), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
    // The measurement would have taken ten minutes.
    assert!(began.elapsed() < Duration::from_secs(180));
}
