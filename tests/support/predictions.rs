//! What the tests of `yolo predict` share: a user with a detector, and whether ffmpeg is there, which reads and writes
//! videos.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::user::{Running, SIGINT, TRAIN, User, wait_for};

/// Predicts with the detector of the user; the sources follow.
pub const PREDICT: &str =
    "predict --weights runs/train/exp/weights/last.pt --imgsz 64 --device cpu --conf-thres 0.05";

/// A training after which the detector finds objects with many confidences. After one epoch, it finds next to nothing.
pub const LONG: &str = "--epochs 30 --batch 4 --nbs 4 --optimizer AdamW";

/// A user with a detector, trained with these options, and the folder `squares/images/val` with eight pictures.
pub fn with_detector(options: &str) -> User {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} {options} --noplots --noval")).succeeded();
    user
}

/// Whether ffmpeg is installed, as it is in CI.
#[allow(clippy::print_stdout, reason = "CI lists the lines of skipped tests")]
pub fn has_ffmpeg() -> bool {
    let is_there = Command::new("ffmpeg").arg("-version").output().is_ok();
    assert!(is_there || std::env::var_os("CI").is_none(), "ffmpeg is not installed");
    if !is_there {
        println!("skipped: ffmpeg is not installed");
    }
    is_there
}

/// Runs ffmpeg in the user's folder.
pub fn ffmpeg(user: &User, arguments: &str) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]).args(arguments.split(' ')).current_dir(user.path());
    assert!(command.status().unwrap().success());
}

/// The names in a folder of results, except what every run has.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "logs" && name != "plan.json");
    names.sort();
    names
}

/// Waits until the frames of a stream are searched, interrupts, and returns what `yolo` said.
pub fn until_interrupted(user: &User, running: Running, name: &str) -> String {
    let folder = user.path().join("runs/detect").join(name);
    wait_for("frames", || {
        let labels = std::fs::read_dir(&folder).ok()?.filter_map(Result::ok);
        labels.into_iter().any(|entry| entry.path().extension().is_some_and(|it| it == "part")).then_some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    finished.stderr
}
