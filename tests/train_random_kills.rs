//! A hundred runs in which a rank or `yolo` itself is killed at a random moment, from the first process to
//! training. Whatever dies: the message names it, all ranks are gone within the time that is promised, and
//! nothing is left. The moments are drawn from fixed seeds.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use user::{SIGKILL, TRAIN, User, is_alive, send_signal, wait_for};

const RUNS: u64 = 100;

/// From the death of a rank to the end of the run: 5 s are promised, and a machine that is busy with other
/// tests needs some more.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// What is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Rank(usize),
    Supervisor,
}

/// Draws the victim, and when it dies after both ranks exist: half of the kills hit the start, which takes
/// about a second, the others training and validation.
fn draw(seed: u64) -> (Victim, Duration) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let victim = match below(5) {
        0 | 1 => Victim::Rank(0),
        2 | 3 => Victim::Rank(1),
        _ => Victim::Supervisor,
    };
    let longest = if below(2) == 0 { 800 } else { 2500 };
    (victim, Duration::from_millis(below(longest)))
}

fn run_and_kill(seed: u64) {
    let (victim, after) = draw(seed);
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{TRAIN} --epochs 10000 --noplots --nproc-per-node 2"));
    let ranks = wait_for("two ranks", || Some(running.ranks()).filter(|ranks| ranks.len() == 2));
    std::thread::sleep(after);
    let killed = Instant::now();
    match victim {
        Victim::Rank(rank) => send_signal(ranks[rank], SIGKILL),
        Victim::Supervisor => running.signal(SIGKILL),
    }
    let what = format!("seed {seed}: {victim:?} killed after {after:?}");
    let finished = running.wait();
    if let Victim::Rank(rank) = victim {
        assert_eq!(finished.code, Some(1), "{what}\n{}", finished.stderr);
        let named = format!("error: rank {rank} of 2 ");
        assert!(finished.stderr.contains(&named), "{what}\n{}", finished.stderr);
        assert!(finished.stderr.contains("was killed by signal 9"), "{what}\n{}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{what}\n{}", finished.stderr);
    }
    while ranks.iter().any(|&rank| is_alive(rank)) {
        assert!(killed.elapsed() < ENDS_WITHIN, "{what}: a rank is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(killed.elapsed() < ENDS_WITHIN, "{what}: took {:?}", killed.elapsed());
}

#[test]
fn whatever_dies_is_named_and_nothing_is_left() {
    let next = AtomicU64::new(0);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= RUNS {
                        break;
                    }
                    run_and_kill(seed);
                }
            });
        }
    });
}
