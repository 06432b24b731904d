//! `yolo train --evolve` as a user runs it: the files that it leaves, that it can be interrupted and killed at any
//! moment and then continues, and what it refuses.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use serde_json::Value;
use user::{Finished, SIGINT, SIGKILL, TRAIN, User, is_alive, masked, wait_for};

/// A generation takes about a second.
fn evolve(generations: &str) -> String {
    format!("{TRAIN} --epochs 1 --noautoanchor --evolve {generations}")
}

fn folder(user: &User) -> PathBuf {
    user.path().join("runs/evolve/exp")
}

fn table(user: &User) -> String {
    std::fs::read_to_string(folder(user).join("evolve.csv")).unwrap()
}

/// The names in the folder of the search.
fn names(user: &User) -> Vec<String> {
    let entries = std::fs::read_dir(folder(user)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The text without the working folder, the numbers and the punctuation after them.
fn plain(user: &User, text: &str) -> String {
    let here = user.path().canonicalize().unwrap();
    let text = text.replace(here.to_str().unwrap(), "").replace(user.path().to_str().unwrap(), "");
    masked(&text.replace([',', ')', ';'], " "))
}

#[test]
fn two_generations_leave_their_table_the_best_and_a_plot() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(&evolve("2")).succeeded();
    assert_eq!(names(&user), ["data.json", "evolve.csv", "evolve.svg", "hyp_evolve.yaml", "options.json"]);
    // What is continued with other options is said, also if nothing is left to train.
    let other = evolve("2").replace("--imgsz 64", "--imgsz 96");
    let continued = user.run(&format!("{other} --resume")).succeeded();
    let warning = "--imgsz differs from when the evolution began";
    assert!(continued.stderr.contains(warning), "{}", continued.stderr);
    let same = user.run(&format!("{} --resume", evolve("2"))).succeeded();
    assert!(!same.stderr.contains("the evolution began"), "{}", same.stderr);
    let table = table(&user);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("   metrics/precision,      metrics/recall,     metrics/mAP_0.5,"));
    // The first generation has the hyperparameters as they are, the second a mutation.
    let values = |line: &str| line.split(',').skip(7).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(values(lines[1])[..4], ["0.01", "0.01", "0.937", "0.0005"]);
    assert_ne!(values(lines[1]), values(lines[2]));
    let plot = std::fs::read_to_string(folder(&user).join("evolve.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("lr0"), "{plot}");
    let best = if finished.stdout.contains("generation 1,") { 1 } else { 2 };
    let output = plain(&user, &finished.stdout);
    assert_eq!(
        output,
        "best of N generations: generation N fitness N (mAP50 N mAP50-95 N\n\
         generations: /runs/evolve/exp/evolve.csv\n\
         hyperparameters: /runs/evolve/exp/hyp_evolve.yaml\n\
         plot: /runs/evolve/exp/evolve.svg\n\
         to train with the best add to your command\n\
         --hyp /runs/evolve/exp/hyp_evolve.yaml"
    );
    let hyp = std::fs::read_to_string(folder(&user).join("hyp_evolve.yaml")).unwrap();
    assert!(hyp.contains(&format!("# Best generation: {}\n# Last generation: 1\n", best - 1)), "{hyp}");
    for text in
        ["generation 1 of 2: hyperparameters as given", "generation 2 of 2: a mutation of generation 1"]
    {
        assert!(finished.stderr.contains(text), "{}", finished.stderr);
    }
    // The last line of the output works as it stands, with the other options.
    user.run(&format!("{TRAIN} --epochs 1 --noplots --hyp runs/evolve/exp/hyp_evolve.yaml")).succeeded();

    // What is complete is not trained again; a larger number continues.
    let again = user.run(&format!("{} --resume", evolve("2"))).succeeded();
    assert!(
        again.stderr.contains("it has 2 generations already; an --evolve above 2 continues it"),
        "{}",
        again.stderr
    );
    assert_eq!((self::table(&user), again.stdout), (table.clone(), finished.stdout));
    user.run(&format!("{} --resume-evolve runs/evolve/exp/evolve.csv", evolve("3"))).succeeded();
    let longer = self::table(&user);
    assert!(longer.starts_with(&table) && longer.lines().count() == 4, "{longer}");
}

#[test]
fn an_interrupted_search_continues_as_if_it_had_not_been() {
    let whole = User::new();
    whole.write_data_set();
    whole.run(&evolve("6")).succeeded();

    let user = User::new();
    user.write_data_set();
    let running = user.start(&evolve("6"));
    wait_for("the first generation", || table_has(&user, 1).then_some(()));
    wait_for("the second training", || (!running.ranks().is_empty()).then_some(()));
    running.signal(SIGINT);
    let interrupted = running.wait();
    assert_eq!(interrupted.code, Some(130), "{}", interrupted.stderr);
    assert!(interrupted.stderr.contains("--resume-evolve "), "{}", interrupted.stderr);
    assert_eq!(names(&user), ["data.json", "evolve.csv", "evolve.svg", "hyp_evolve.yaml", "options.json"]);
    assert!(table(&whole).starts_with(&table(&user)));

    // A folder of the user is not taken for that of a generation.
    std::fs::create_dir(folder(&user).join("generation-notes")).unwrap();
    let running = user.start(&format!("{} --resume", evolve("6")));
    let before = table(&user).lines().count();
    wait_for("another generation", || table_has(&user, before).then_some(()));
    let ranks = wait_for("a rank", || Some(running.ranks()).filter(|ranks| !ranks.is_empty()));
    running.signal(SIGKILL);
    running.wait();
    wait_for("the end of the ranks", || ranks.iter().all(|rank| !is_alive(*rank)).then_some(()));
    assert!(table(&whole).starts_with(&table(&user)));

    user.run(&format!("{} --resume", evolve("6"))).succeeded();
    assert_eq!(table(&user), table(&whole));
    assert_eq!(
        names(&user),
        ["data.json", "evolve.csv", "evolve.svg", "generation-notes", "hyp_evolve.yaml", "options.json"]
    );
}

/// Whether the table has at least so many generations.
fn table_has(user: &User, generations: usize) -> bool {
    let text = std::fs::read_to_string(folder(user).join("evolve.csv")).unwrap_or_default();
    text.lines().count() > generations
}

#[test]
fn ranks_and_programs_take_part() {
    let user = User::new();
    user.write_data_set();
    let finished = user.run(&format!("{} --nproc-per-node 2 --json", evolve("2"))).succeeded();
    let schema = std::fs::read_to_string("src/printer/run_events.schema.json").unwrap();
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let events: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        assert!(validator.is_valid(event), "{event}");
    }
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!(named("planned").len(), 1);
    assert_eq!(named("rank").len(), 4, "two ranks in each of two generations");
    let generations = named("generation");
    assert_eq!(generations.len(), 2);
    assert_eq!((&generations[0]["parent"], &generations[1]["parent"]), (&Value::Null, &Value::from(1)));
    assert_eq!(generations[0]["hyperparameters"]["lr0"], 0.01);
    assert!(generations[1]["metrics"]["map50"].is_number());
    assert_eq!(events.last().unwrap()["event"], "evolved");
    assert!(named("finished").is_empty());
}

#[test]
fn a_population_is_trained_first() {
    let user = User::new();
    user.write_data_set();
    std::fs::create_dir(user.path().join("first")).unwrap();
    let hyp = |lr0: &str| {
        let low = serde_json::to_value(yolo_plan::hyp::HyperParameters::low()).unwrap();
        let lines = low.as_object().unwrap().iter().map(|(key, value)| format!("{key}: {value}\n"));
        lines.collect::<String>() + "lr0: " + lr0 + "\n"
    };
    for (name, lr0) in [("a.yaml", "0.005"), ("b.yaml", "0.02")] {
        std::fs::write(user.path().join("first").join(name), hyp(lr0)).unwrap();
    }
    user.run(&format!("{} --evolve_population first", evolve("2"))).succeeded();
    let table = table(&user);
    let lr0: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').nth(7).unwrap().trim()).collect();
    assert_eq!(lr0, ["0.005", "0.02"]);
}

/// A trainer that fails in these generations.
fn failing_trainer(user: &User, generations: &[usize]) -> PathBuf {
    let trainer = std::env::var_os("YOLO_TRAINER")
        .map_or_else(|| Path::new(env!("CARGO_BIN_EXE_yolo")).with_file_name("yolo-trainer"), PathBuf::from);
    let fails = generations.iter().map(|number| format!("*/generation{number}-*) exit 3 ;; "));
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in {}esac\nexec '{}' \"$@\"\n",
        fails.collect::<String>(),
        trainer.display()
    );
    user.write_program("failing-trainer", &script)
}

fn run_with(user: &User, trainer: &Path, arguments: &str) -> Finished {
    user.start_with(arguments, &[("YOLO_TRAINER", trainer.to_str().unwrap())]).wait()
}

#[test]
fn a_generation_that_fails_counts_as_nothing_and_the_search_goes_on() {
    let user = User::new();
    user.write_data_set();
    let trainer = failing_trainer(&user, &[2]);
    let finished = run_with(&user, &trainer, &evolve("3")).succeeded();
    let warning = "warning: generation 2 failed, so its fitness is 0: ";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
    let table = table(&user);
    let failed: Vec<&str> = table.lines().nth(2).unwrap().split(',').take(7).map(str::trim).collect();
    assert_eq!((table.lines().count(), failed), (4, vec!["0"; 7]));
    // The log of the one that failed is kept.
    let kept: Vec<String> = names(&user).into_iter().filter(|name| name.starts_with("generation")).collect();
    assert!(kept.len() == 1 && kept[0].starts_with("generation2-"), "{kept:?}");
}

#[test]
fn a_data_set_that_changes_is_said_and_one_that_cannot_be_used_ends_the_search() {
    let user = User::new();
    user.write_data_set();
    user.run(&evolve("1")).succeeded();
    let labels = user.path().join("squares/labels/train");
    std::fs::remove_file(user.path().join("squares/images/train/15.bmp")).unwrap();
    let continued = user.run(&format!("{} --resume", evolve("2"))).succeeded();
    let warning = "warning: the data set has changed since the generations before: the train split has 15 images with 15 \
                   objects now, and had 16 images with 16 objects";
    assert!(continued.stderr.contains(warning), "{}", continued.stderr);

    let good = std::fs::read(labels.join("03.txt")).unwrap();
    std::fs::write(labels.join("03.txt"), "7 0.5 0.5 0.2 0.2\n").unwrap();
    let parts = [
        "generation 3 cannot be trained with this data set: ",
        "03.txt:1: class 7",
        "then continue with the same command and --resume-evolve ",
    ];
    user.run(&format!("{} --resume", evolve("3"))).failed_with(1, &parts);
    assert_eq!(table(&user).lines().count(), 3, "a generation that could not be trained counts");
    std::fs::write(labels.join("03.txt"), good).unwrap();
    user.run(&format!("{} --resume", evolve("3"))).succeeded();
    assert_eq!(table(&user).lines().count(), 4);
}

#[test]
fn two_failures_at_the_start_end_the_search_with_the_first_message() {
    let user = User::new();
    user.write_data_set();
    let trainer = failing_trainer(&user, &[1, 2]);
    let parts = [
        "2 generations in a row failed, the first of them, generation 1, with: ",
        "exited with code 3",
        "the same command must work without --evolve first",
    ];
    run_with(&user, &trainer, &evolve("9")).failed_with(1, &parts);
    assert!(!folder(&user).join("evolve.csv").exists());
}

/// Runs the command, which must fail with one message.
#[track_caller]
fn refused(user: &User, arguments: &str, code: i32, message: &str) -> Finished {
    user.run(&format!("{} {arguments}", evolve("2"))).failed_with(code, &[message])
}

#[test]
fn options_and_tables_that_do_not_fit_are_refused() {
    let user = User::new();
    user.write_data_set();
    refused(&user, "--evolve 0", 2, "the number must be at least 1");
    refused(&user, "--evolve many", 2, "not a whole number");
    refused(&user, "--resume runs/train/exp/weights/last.pt", 2, "continues from its table, evolve.csv");
    refused(&user, "--resume --resume-evolve x.csv", 2, "--resume and --resume-evolve are both given");
    refused(
        &user,
        "--resume",
        1,
        "there is no evolution to resume: no evolve.csv in a folder of runs/evolve",
    );
    refused(&user, "--resume-evolve gone.csv", 1, "cannot read the evolution gone.csv: ");
    refused(&user, "--evolve-population gone", 1, "--evolve-population gone cannot be read");
    refused(
        &user,
        "--nnodes 2 --node-rank 0 --master-addr 127.0.0.1",
        2,
        "--evolve trains on the devices of one machine, and --nnodes 2 asks for several",
    );
    refused(
        &user,
        "--nnodes 2",
        2,
        "--evolve trains on the devices of one machine, and --nnodes 2 asks for several",
    );
    user.run(&format!("{TRAIN} --resume-evolve x.csv")).failed_with(2, &["--evolve"]);
    let variables = [
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("LOCAL_RANK", "0"),
        ("LOCAL_WORLD_SIZE", "1"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "29500"),
    ];
    let rank = user.start_with(&evolve("2").replacen("train", "rank", 1), &variables).wait();
    rank.failed_with(2, &["--evolve has no meaning in `yolo rank`"]);

    let genes = yolo_plan::evolve::Genes::new(false);
    let mut good = yolo_plan::evolve::Table::new(genes);
    let low = genes.of_hyp(&yolo_plan::hyp::HyperParameters::low());
    good.push(yolo_plan::evolve::Generation::failed(low));
    let good = good.to_csv();
    let csv = user.path().join("evolve.csv");
    std::fs::write(&csv, format!("{good}1,2\n")).unwrap();
    let damaged =
        refused(&user, "--resume-evolve evolve.csv", 1, "evolve.csv is damaged: line 3 has 2 values");
    assert!(damaged.stderr.contains("correct or delete that line"), "{}", damaged.stderr);
    std::fs::write(&csv, good.replace("mixup", "mixed")).unwrap();
    refused(&user, "--resume-evolve evolve.csv", 1, "has other columns than this search: it lacks mixup");
    std::fs::write(&csv, "epoch,loss\n").unwrap();
    refused(&user, "--resume-evolve evolve.csv", 1, "is no table of an evolution");
    assert!(!user.path().join("runs").exists(), "a refused search leaves no folder");
}
