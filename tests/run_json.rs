//! `yolo train --json`, `yolo val --json` and `yolo predict --json` as a program reads them: every line follows the schema, the
//! events come in the order of the run, and the last one says how it ended.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use serde_json::{Value, json};
use user::{Finished, SIGINT, SIGKILL, SIGTERM, TRAIN, User, free_port, wait_for};

/// The events on stdout, each of which follows the schema.
#[track_caller]
fn events(finished: &Finished) -> Vec<Value> {
    let schema = std::fs::read_to_string("src/printer/run_events.schema.json").unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let events: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        let problems: Vec<String> = validator.iter_errors(event).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{event}: {problems:?}");
    }
    assert!(!validator.is_valid(&json!({ "event": "step", "at": 1.0 })), "the schema accepts anything");
    events
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn a_run_is_told_from_its_plan_to_its_files() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(&format!("{TRAIN} --epochs 2 --nproc-per-node 2 --json")).succeeded();
    let events = events(&finished);
    let planned = &events[0];
    assert_eq!(planned["event"], "planned");
    assert_eq!((&planned["world_size"], &planned["backend"]), (&json!(2), &json!("gloo")));
    assert_eq!(
        (&planned["batch"], &planned["image_size"], &planned["epochs"]),
        (&json!(8), &json!(64), &json!(2))
    );
    let mut ranks: Vec<u64> =
        named(&events, "rank").iter().map(|event| event["rank"].as_u64().unwrap()).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [0, 1]);
    let epochs: Vec<&Value> = named(&events, "epoch").iter().map(|event| &event["epoch"]).collect();
    assert_eq!(epochs, [1, 2]);
    assert!(!named(&events, "step").is_empty());
    let validated = named(&events, "validated");
    assert_eq!(validated.last().unwrap()["rows"][0]["class"], "all");
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["epochs"]), (&json!("finished"), &json!(2)));
    let best = last["files"].as_array().unwrap().iter().find(|file| file["what"] == "best weights").unwrap();
    assert!(user.path().join(best["path"].as_str().unwrap()).is_file());
    let times: Vec<f64> = events.iter().map(|event| event["at"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_validation_is_told_too() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots")).succeeded();
    let validation = "val --data squares/squares.yaml --imgsz 64 --device cpu --json \
                      --weights runs/train/exp/weights/best.pt";
    let events = events(&user.run(validation).succeeded());
    assert_eq!((&events[0]["task"], &events[0]["batch"]), (&json!("validating"), &Value::Null));
    assert_eq!(named(&events, "validated").len(), 1);
    assert_eq!(events.last().unwrap()["event"], "finished");
}

#[test]
fn a_prediction_is_told_picture_by_picture() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots --noval")).succeeded();
    std::fs::write(user.path().join("squares/images/val/zz.jpg"), "").unwrap();
    let finished = user.run(
        "predict squares/images/val --weights runs/train/exp/weights/last.pt --imgsz 64 --conf-thres 0 \
         --max-det 3 --device cpu,cpu --json",
    );
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let events = events(&finished);
    assert_eq!(events[0]["task"], "predicting");
    let mut pictures: Vec<u64> =
        named(&events, "predicted").iter().map(|event| event["picture"].as_u64().unwrap()).collect();
    pictures.sort_unstable();
    assert_eq!(pictures, [1, 2, 3, 4, 5, 6, 7, 8]);
    for picture in named(&events, "predicted") {
        assert_eq!((&picture["width"], &picture["pictures"]), (&json!(64), &json!(9)));
        assert_eq!(picture["objects"].as_array().unwrap().len(), 3);
        assert!(std::path::Path::new(picture["saved"].as_str().unwrap()).is_file());
    }
    let skipped = named(&events, "skipped");
    assert_eq!((skipped.len(), &skipped[0]["picture"]), (1, &json!(9)));
    assert_eq!(events.last().unwrap()["event"], "finished");
}

#[test]
fn a_failure_names_the_rank_and_people_still_get_their_message() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 500 --json"), &[]);
    user::send_signal(ranks[1], SIGKILL);
    let finished = running.wait().failed_with(1, &["rank 1 of 2"]);
    let events = events(&finished);
    let failed = events.last().unwrap();
    assert_eq!(
        (&failed["event"], &failed["rank"], &failed["device"]),
        (&json!("failed"), &json!(1), &json!("cpu"))
    );
    assert!(failed["cause"].as_str().unwrap().contains("signal 9"), "{failed}");
    assert!(failed["hint"].as_str().unwrap().contains("--resume"), "{failed}");
}

#[test]
fn a_run_that_cannot_be_planned_is_one_event() {
    let user = User::new();
    let finished = user.run("train --data gone.yaml --device cpu --json").failed_with(1, &["gone.yaml"]);
    let events = events(&finished);
    assert_eq!((events.len(), &events[0]["event"]), (1, &json!("failed")));
    assert!(events[0]["message"].as_str().unwrap().contains("gone.yaml"));
    assert_eq!(events[0]["schema"], json!(1));
}

#[test]
fn a_command_line_that_is_wrong_is_one_event_too() {
    let user = User::new();
    user.write_data_set();
    for (command, message) in [
        (
            format!("{TRAIN} --json --epochs abc"),
            "invalid value 'abc' for '--epochs <N>': not a whole number",
        ),
        (
            "val --data shapes --no-such-option --json".to_owned(),
            "unexpected argument '--no-such-option' found",
        ),
        (format!("{TRAIN} --json --node-rank 0"), "--node-rank is given, but the run has one machine"),
        (format!("{TRAIN} --json --epochs 0"), "--epochs 0 is not a number from 1 to 1000000"),
    ] {
        let finished = user.run(&command).failed_with(2, &[message]);
        let events = events(&finished);
        assert_eq!((events.len(), &events[0]["event"]), (1, &json!("failed")), "{command}");
        assert_eq!((&events[0]["message"], &events[0]["schema"]), (&json!(message), &json!(1)));
        assert!(events[0]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{command}");
    }
    let help = user.run("train --json --help").succeeded();
    assert!(help.stdout.contains("--epochs <N>") && !help.stdout.contains("\"failed\""), "{}", help.stdout);
}

#[test]
fn a_warning_of_no_rank_names_none() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 4 --max-restarts 1 --json"), &[]);
    user::send_signal(ranks[1], SIGKILL);
    let events = events(&running.wait().succeeded());
    let restarting = |event: &&&Value| event["message"].as_str().unwrap().contains("restarting from");
    let warnings = named(&events, "warning");
    let restart = warnings.iter().find(restarting).unwrap();
    assert_eq!(restart["rank"], Value::Null, "{restart}");
}

#[test]
fn an_interrupt_says_where_to_resume() {
    let user = User::new();
    user.write_data_set();
    let (running, _) = user.start_two_ranks(&format!("{TRAIN} --epochs 500 --json"), &[]);
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    let events = events(&finished);
    let interrupted = events.last().unwrap();
    assert_eq!((&interrupted["event"], &interrupted["killed"]), (&json!("interrupted"), &json!(false)));
    assert!(interrupted["resume_from"].as_str().unwrap().ends_with("last.pt"));
}

#[test]
fn an_interrupt_before_all_machines_are_there_is_an_event_too() {
    let user = User::new();
    user.write_data_set();
    let port = free_port();
    let place = format!("--nnodes 2 --node-rank 0 --master-addr 127.0.0.1 --master-port {port}");
    let running = user.start(&format!("{TRAIN} --json {place}"));
    wait_for("the port", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    running.signal(SIGTERM);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert!(finished.stderr.contains("interrupted; the run had not begun"), "{}", finished.stderr);
    let events = events(&finished);
    assert_eq!((events.len(), &events[0]["event"]), (1, &json!("interrupted")));
    assert_eq!((&events[0]["schema"], &events[0]["resume_from"]), (&json!(1), &Value::Null));
}
