//! Measures what `yolo.exe` adds to a command that runs in WSL: the same command through the same stand-in for `wsl.exe`,
//! typed as `wsl.exe -d Ubuntu --exec /opt/yolo/yolo train …` and as `yolo train …`, in turns. The Linux program plans a run
//! and stops at a data set that is missing. Also how long `yolo.exe` needs to start, next to a program that does nothing.
//! `.ci/windows --bench` runs it under Wine; on Linux, `cargo build --release --examples` comes before
//! `cargo bench --bench from_windows`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails by panicking")]

#[path = "../from_windows/pc.rs"]
mod pc;
#[path = "../support/user.rs"]
mod user;

use std::process::Command;
use std::time::{Duration, Instant};

use pc::{Pc, example};
use serde_json::json;

/// Measured pairs, after two that only warm the caches.
const RUNS: usize = 31;

/// What is typed.
const TYPED: [&str; 3] = ["train", "--data", "missing.yaml"];

fn main() {
    let Some(pc) = Pc::with_linux(false) else { return };
    let direct = || {
        let mut command = as_wsl(&pc);
        command.args(["-d", "Ubuntu", "--exec", "/opt/yolo/yolo"]).args(TYPED);
        command
    };
    println!("a run that stops at a missing data set, {RUNS} pairs:");
    for (name, prepared, calls) in
        [("as `yolo setup --wsl` leaves it", true, 1), ("with a list of distributions first", false, 2)]
    {
        prepare(&pc, prepared);
        let before = pc.calls().len();
        pc.run(&TYPED).failed_with(1, &["missing.yaml"]);
        assert_eq!(pc.calls().len() - before, calls, "calls of wsl.exe");
        println!("{name}, calls of wsl.exe: {calls}");
        let (mut alone, mut through, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..RUNS + 2 {
            let (one, other) = (time(direct(), 1), time(pc.command(&TYPED), 1));
            if run >= 2 {
                alone.push(one.as_secs_f64());
                through.push(other.as_secs_f64());
                added.push(other.as_secs_f64() - one.as_secs_f64());
            }
        }
        print("  wsl.exe … yolo train", alone);
        print("  yolo train", through);
        print("  difference of a pair", added);
    }
    println!("start-up, {RUNS} runs each, in turns:");
    let idle = Pc::answering(&[json!({ "words": "", "code": 0 })]);
    let (mut nothing, mut version) = (Vec::new(), Vec::new());
    for run in 0..RUNS + 2 {
        let (one, other) = (time(as_wsl(&idle), 0), time(idle.command(&["--version"]), 0));
        if run >= 2 {
            nothing.push(one.as_secs_f64());
            version.push(other.as_secs_f64());
        }
    }
    print("  the stand-in, answering", nothing);
    print("  yolo --version", version);
    let program = idle.command(&[]).get_program().to_owned();
    println!("size of the program: {} bytes", std::fs::metadata(program).unwrap().len());
}

/// The stand-in for `wsl.exe`, in the environment that `yolo` would give it.
fn as_wsl(pc: &Pc) -> Command {
    let typed = pc.command(&[]);
    let mut command = Command::new(example("stand_in_wsl"));
    command.current_dir(pc.work()).stdin(std::process::Stdio::null());
    for (name, value) in typed.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("WSLENV", "YOLO_OFFLINE:OMP_NUM_THREADS");
    command
}

/// Notes that a distribution is prepared, or forgets it.
fn prepare(pc: &Pc, prepared: bool) {
    let folder = pc.user.path().join(if cfg!(windows) { "roaming" } else { "config" }).join("yolo");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("wsl.json");
    match prepared {
        true => std::fs::write(file, r#"{"distribution":"Ubuntu"}"#).unwrap(),
        false => std::fs::remove_file(file).unwrap(),
    }
}

/// How long a command takes, which ends with this status.
fn time(mut command: Command, status: i32) -> Duration {
    let began = Instant::now();
    let output = command.output().unwrap();
    let took = began.elapsed();
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    took
}

fn print(name: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let at = |part: f64| seconds[((seconds.len() - 1) as f64 * part).round() as usize];
    println!(
        "{name:<28} {:>7.3} s median; {:.3} to {:.3} s, the middle half {:.3} to {:.3} s",
        at(0.5),
        at(0.0),
        at(1.0),
        at(0.25),
        at(0.75)
    );
}
