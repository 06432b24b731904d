//! The errors of a rank whose peer dies, hangs or never joins.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a rank reports to its test on stdout")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{FLOAT, join, rank, start, wait_at_most};
use tch::{Kind, Tensor};
use tch_distributed::{ErrorKind, GlooOptions, ProcessGroup, Reducer, ReducerOptions, TcpStore};

/// Trains until a call fails, and prints the error and how long the call took.
fn train_until_failure(timeout: Duration) {
    let (_store, group) = join(timeout);
    let weight = Tensor::ones([64, 64], FLOAT).set_requires_grad(true);
    let mut reducer = Reducer::new(&group, &[&weight], ReducerOptions::default()).unwrap();
    for step in 0.. {
        let start = Instant::now();
        let result = reducer.prepare_forward().and_then(|()| {
            let loss = Tensor::ones([64, 64], FLOAT).matmul(&weight).sum(Kind::Float);
            reducer.backward(&loss)
        });
        if let Err(error) = result {
            println!("\nFAILED {:?} {} {error}", error.kind(), start.elapsed().as_millis());
            break;
        }
        if step == 5 {
            println!("\nRUNNING");
        }
    }
    // Dropping a broken group must not hang.
    drop(reducer);
    drop(group);
    println!("\nDROPPED");
}

/// Starts two ranks, sends `signal` to rank 1 once both train, and returns the kind, the duration in
/// milliseconds and the message that rank 0 printed.
fn survivor_of(test: &str, signal: &str, limit: Duration) -> (String, u64, String) {
    let mut ranks = start(test, 2);
    let (mut victim, mut survivor) = (ranks.pop().unwrap(), ranks.pop().unwrap());
    let mut output = BufReader::new(survivor.stdout.take().unwrap());
    let mut victim_output = BufReader::new(victim.stdout.take().unwrap());
    wait_for_line(&mut output, "RUNNING");
    wait_for_line(&mut victim_output, "RUNNING");
    let kill = Command::new("kill").args([signal, &victim.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let status = wait_at_most(&mut survivor, limit);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(status.is_some_and(|status| status.success()), "{status:?} {rest}");
    assert!(rest.contains("DROPPED"), "{rest}");
    let line = rest.lines().find_map(|line| line.strip_prefix("FAILED ")).expect(&rest);
    let mut fields = line.splitn(3, ' ');
    let mut next = || fields.next().unwrap().to_owned();
    (next(), next().parse().unwrap(), next())
}

fn wait_for_line(output: &mut impl BufRead, wanted: &str) {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if line.trim() == wanted {
            return;
        }
        line.clear();
    }
    panic!("{wanted} was not printed");
}

#[test]
fn a_killed_rank_is_a_lost_peer_at_once() {
    if rank().is_some() {
        return train_until_failure(Duration::from_secs(120));
    }
    let (kind, milliseconds, message) =
        survivor_of("a_killed_rank_is_a_lost_peer_at_once", "-KILL", Duration::from_secs(20));
    assert_eq!(kind, "PeerLost", "{message}");
    assert!(milliseconds < 5000, "{milliseconds} ms");
    assert!(message.contains("rank 0 of 2") && !message.contains("pair.cc"), "{message}");
}

#[test]
fn a_stopped_rank_is_a_timeout_at_the_limit_of_the_group() {
    if rank().is_some() {
        return train_until_failure(Duration::from_secs(3));
    }
    let (kind, milliseconds, message) = survivor_of(
        "a_stopped_rank_is_a_timeout_at_the_limit_of_the_group",
        "-STOP",
        Duration::from_secs(30),
    );
    assert_eq!(kind, "Timeout", "{message}");
    assert!((2500..10_000).contains(&milliseconds), "{milliseconds} ms");
}

#[test]
fn a_rank_that_never_joins_is_a_timeout() {
    let store = TcpStore::bind(([127, 0, 0, 1], 0).into(), Duration::from_secs(2)).unwrap();
    let options = GlooOptions { timeout: Duration::from_secs(2), ..GlooOptions::default() };
    let start = Instant::now();
    let error = ProcessGroup::gloo(&store, 0, 2, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn impossible_ranks_are_refused() {
    let store = TcpStore::bind(([127, 0, 0, 1], 0).into(), Duration::from_secs(2)).unwrap();
    let error = ProcessGroup::gloo(&store, 2, 2, &GlooOptions::default()).unwrap_err();
    assert!(error.to_string().contains("rank must be less than the world size"), "{error}");
}
