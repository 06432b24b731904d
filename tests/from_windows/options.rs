//! Mistakes in options at a Windows prompt: what the options alone show is reported in Windows, once, before WSL starts.
//! What depends on files and devices of the Linux side is reported there.

use super::mistakes;
use super::pc::Pc;
use super::user::Finished;

/// Runs the command, which fails without a call of `wsl.exe`.
fn refused(words: &[&str], parts: &[&str]) {
    let pc = Pc::answering(&[]);
    pc.run(words).failed_with(2, parts);
    assert_eq!(pc.calls(), Vec::<String>::new(), "{words:?}");
}

#[test]
fn malformed_values_and_unknown_options() {
    for (words, part) in [
        ("train --epochs many", "invalid value 'many' for '--epochs <N>': not a whole number"),
        ("train --epochs -1", "for '--epochs <N>': the number must not be negative"),
        ("train --epohcs 3", "a similar argument exists: '--epochs'"),
        ("train --backend mpi", "'mpi'"),
        ("train --resume=", "for '--resume [<LAST.PT>]': it is empty"),
        ("train --bucket gs://x", "--bucket"),
        ("val --conf-thres 0,5", "invalid value '0,5' for '--conf-thres <CONFIDENCE>': not a number"),
        ("setup --libtorch cu1", "'cu1'"),
        ("predict --conf-thres much photos", "'much'"),
    ] {
        refused(&words.split(' ').collect::<Vec<_>>(), &[part]);
    }
}

#[test]
fn options_that_cannot_be_right_on_any_machine() {
    for (options, part) in mistakes::OF_TRAINING {
        let words = format!("train {options}");
        refused(&words.split(' ').collect::<Vec<_>>(), &[part, "\nhint: "]);
    }
}

#[test]
fn options_of_a_validation_that_cannot_be_right_on_any_machine() {
    for (options, part) in mistakes::OF_VALIDATION {
        let words = format!("val --data shapes {options}");
        refused(&words.split(' ').collect::<Vec<_>>(), &[part, "\nhint: "]);
    }
}

#[test]
fn switches_in_variables_are_checked() {
    let pc = Pc::answering(&[]);
    let mut command = pc.command(&["train"]);
    Finished::from(command.env("YOLO_OFFLINE", "maybe").output().unwrap())
        .failed_with(2, &["invalid value 'maybe' for '--offline'", "YOLO_OFFLINE takes 1, true, yes or on"]);
    assert_eq!(pc.calls(), Vec::<String>::new());
}

#[test]
fn help_needs_no_wsl() {
    let pc = Pc::answering(&[]);
    assert!(pc.run(&["train", "--help"]).succeeded().stdout.contains("--distribution"));
    assert_eq!(pc.calls(), Vec::<String>::new());
}

/// For programs, the message is an event as well.
#[test]
fn a_refusal_is_an_event_for_programs() {
    let pc = Pc::answering(&[]);
    let output = pc.run(&["train", "--json", "--epochs", "0"]).failed_with(2, &["--epochs 0"]);
    assert_eq!(output.stdout.matches("--epochs 0").count(), 1, "{}", output.stdout);
    assert_eq!(pc.calls(), Vec::<String>::new());
}

/// One message, with the status of a usage error.
#[test]
fn what_only_linux_knows_is_reported_there_once() {
    let Some(pc) = Pc::with_linux(false) else { return };
    let data = pc.data_set();
    let train = |options: &str| {
        let rest = options.split(' ');
        let words = ["train", "--cfg", "yolov5n", "--weights=", "--data", &data].into_iter().chain(rest);
        pc.run(&words.collect::<Vec<_>>())
    };
    train("--device banana").failed_with(2, &["banana", "\nhint: "]);
    train("--batch 15 --nproc-per-node 2 --device cpu").failed_with(2, &["15", "--batch 14 or 16"]);
    train("--device cpu --freeze 9999").failed_with(2, &["--freeze 9999 is beyond the last layer"]);
    assert!(!pc.work().join("runs").exists(), "a rejected plan left a run folder");
}
