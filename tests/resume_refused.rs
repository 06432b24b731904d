//! What cannot be resumed is refused before a rank is started, with a message that says what the file is and what
//! of the run is still of use.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use user::{Finished, TRAIN, User};

/// A finished run of two epochs, whose `epoch1.pt` is the state at its end.
fn finished_run() -> (User, PathBuf) {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --noplots --epochs 2 --save-period 1")).succeeded();
    let run = user.path().join("runs/train/exp");
    (user, run)
}

/// Refused, without a trace in the run.
#[track_caller]
fn refused(user: &User, run: &Path, named: &str, said: &[&str]) -> Finished {
    let files = || {
        ["plan.json", "logs/rank0.log", "results.csv"]
            .map(|file| std::fs::read(run.join(file)).unwrap_or_default())
    };
    let before = files();
    let output = user.run(&format!("train --resume {named}")).failed_with(1, said);
    assert!(files() == before, "the run was touched: {}", output.stderr);
    output
}

fn cut_short(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn a_finished_run_is_refused() {
    let (user, run) = finished_run();
    for named in ["runs/train/exp", "runs/train/exp/weights/last.pt", ""] {
        let said =
            ["weights/last.pt is finished, so there is nothing to resume", "`--weights ", "another run"];
        refused(&user, &run, named, &said);
    }
    // While a run finishes, best.pt is done before last.pt.
    std::fs::copy(run.join("weights/epoch1.pt"), run.join("weights/last.pt")).unwrap();
    let said = ["best.pt is finished", "resume the run from its last checkpoint: `--resume ", "exp`"];
    refused(&user, &run, "runs/train/exp/weights/best.pt", &said);
}

#[test]
fn a_damaged_checkpoint_is_refused_and_another_one_is_offered() {
    let (user, run) = finished_run();
    let weights = run.join("weights");
    cut_short(&weights.join("last.pt"));
    let what = "the run cannot be resumed: ";
    let said = [what, "last.pt is truncated: it begins like a PyTorch checkpoint", "`--resume "];
    let output = refused(&user, &run, "runs/train/exp", &said);
    assert!(
        output.stderr.contains("weights/epoch1.pt`; what came after it is repeated"),
        "{}",
        output.stderr
    );
    std::fs::remove_file(weights.join("epoch1.pt")).unwrap();
    std::fs::remove_file(weights.join("epoch0.pt")).unwrap();
    // best.pt is stripped, so only its weights are left.
    let offer = "start a new run from the weights that it has: `--weights ";
    refused(&user, &run, "runs/train/exp", &[what, offer, "best.pt`"]);
    // That of another run in this folder is not of this one.
    std::fs::rename(weights.join("best.pt"), weights.join("last_of_earlier_run.pt")).unwrap();
    refused(
        &user,
        &run,
        "runs/train/exp",
        &[what, "no other checkpoint that can be read, so start a new run"],
    );
}

#[test]
fn a_run_that_has_lost_its_last_checkpoint_does_not_start_again() {
    let (user, run) = finished_run();
    std::fs::remove_file(run.join("weights/last.pt")).unwrap();
    let said = ["the run cannot be resumed: ", "weights/last.pt", "`--resume ", "weights/epoch1.pt`"];
    refused(&user, &run, "runs/train/exp", &said);
}

#[test]
fn what_is_no_checkpoint_is_refused() {
    let (user, run) = finished_run();
    std::fs::copy(run.join("weights/epoch1.pt"), run.join("weights/last.pt")).unwrap();
    let by_folder = "resume the run by its folder: `--resume ";
    refused(&user, &run, "runs/train/exp/opt.yaml", &["opt.yaml is a text file", by_folder]);
    std::fs::create_dir(user.path().join("empty")).unwrap();
    let name_a_run = "name the folder of a run, such as runs/train/exp, or its weights/last.pt";
    refused(&user, &run, "empty", &["there is no weights/last.pt in this folder", name_a_run]);
    let neither = "this is neither the folder of a run nor a checkpoint";
    refused(&user, &run, "squares/squares.yaml", &[neither, name_a_run]);
    user.run("train --resume runs/train/exp").succeeded();
}
