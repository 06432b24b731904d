//! Runs of `yolo train` on two ranks that get signals: Ctrl-C twice, SIGTERM twice at once, Ctrl-Z and `fg`,
//! and deaths from which a run is restarted. Whatever happens, no process is left.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::process::{Command, Stdio};

use user::{
    SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM, SIGTSTP, TRAIN, User, is_alive, is_stopped,
    send_signal, wait_for,
};

fn two_ranks(user: &User, options: &str) -> (user::Running, Vec<u32>) {
    user.write_data_set();
    user.start_two_ranks(&format!("{TRAIN} {options}"), &[])
}

#[test]
fn a_second_ctrl_c_ends_the_run_at_once() {
    let user = User::new();
    let (running, ranks) = two_ranks(&user, "--epochs 500");
    // A stopped rank cannot save, so the first Ctrl-C alone would wait for it.
    send_signal(ranks[1], SIGSTOP);
    running.signal(SIGINT);
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("killed before they could save"), "{}", output.stderr);
    assert!(!output.stderr.contains("hung"), "{}", output.stderr);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn sigterm_sent_twice_saves_the_run() {
    let user = User::new();
    let (running, ranks) = two_ranks(&user, "--epochs 500");
    running.signal(SIGTERM);
    running.signal(SIGTERM);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("the run's state is saved"), "{}", output.stderr);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

/// Starts a run in a shell that ignores these signals, as `nohup` does with HUP, and a script that uses `&` with INT.
fn ignoring(user: &User, signals: &str, options: &str) -> user::Running {
    let yolo = user.command(&format!("{TRAIN} {options}"));
    let mut shell = Command::new("sh");
    let script = format!("trap '' {signals}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script]).arg(yolo.get_program()).args(yolo.get_args());
    shell.current_dir(user.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell.envs(yolo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    user::Running::of(shell.spawn().unwrap())
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let user = User::new();
    user.write_data_set();
    let running = ignoring(&user, "HUP", "--epochs 3");
    let rank = wait_for("a rank", || running.ranks().first().copied());
    running.signal(SIGHUP);
    let output = running.wait().succeeded();
    assert!(!output.stderr.contains("interrupted"), "{}", output.stderr);
    assert!(!is_alive(rank));
}

#[test]
fn a_script_can_interrupt_what_it_started_with_an_ampersand() {
    let user = User::new();
    user.write_data_set();
    let running = ignoring(&user, "INT", "--epochs 300");
    wait_for("a rank", || running.ranks().first().copied());
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("interrupted"), "{}", output.stderr);
}

#[test]
fn ctrl_z_stops_all_ranks_and_fg_continues_them() {
    let user = User::new();
    let (running, ranks) = two_ranks(&user, "--epochs 4");
    running.signal(SIGTSTP);
    let everybody: Vec<u32> = ranks.iter().copied().chain([running.pid()]).collect();
    wait_for("all processes to stop", || everybody.iter().all(|&pid| is_stopped(pid)).then_some(()));
    running.signal(SIGCONT);
    let output = running.wait().succeeded();
    assert!(!output.stderr.contains("no progress"), "{}", output.stderr);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_stopped_rank_does_not_outlive_its_killed_supervisor() {
    let user = User::new();
    let (running, ranks) = two_ranks(&user, "--epochs 500");
    send_signal(ranks[1], SIGSTOP);
    wait_for("the rank to stop", || is_stopped(ranks[1]).then_some(()));
    running.signal(SIGKILL);
    assert_eq!(running.wait().code, None);
    wait_for("the ranks to end", || ranks.iter().all(|&pid| !is_alive(pid)).then_some(()));
}

#[test]
fn a_killed_rank_is_restarted_from_the_last_checkpoint() {
    let user = User::new();
    let (running, ranks) = two_ranks(&user, "--epochs 4 --max-restarts 1");
    send_signal(ranks[0], SIGKILL);
    let output = running.wait().succeeded();
    assert!(output.stderr.contains("rank 0 of 2"), "{}", output.stderr);
    assert!(output.stderr.contains("last.pt (1 of 1 restart)"), "{}", output.stderr);
    let table = std::fs::read_to_string(user.path().join("runs/train/exp/results.csv")).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_run_that_fails_before_its_first_step_is_not_restarted() {
    let user = User::new();
    user.write_data_set();
    let broken = user.path().join("squares/images/train/00.bmp");
    std::fs::remove_dir_all(broken.parent().unwrap()).unwrap();
    let output = user.run(&format!("{TRAIN} --epochs 2 --max-restarts 3"));
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(!output.stderr.contains("restarting"), "{}", output.stderr);
}
