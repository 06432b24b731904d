//! Which rank an error names when one of four is killed, stopped, late or gone, and how a group is aborted.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a rank reports to its test on stdout")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use std::io::Read as _;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{FLOAT, join, outputs, rank, start, wait_at_most};
use tch::Tensor;
use tch_distributed::{ErrorKind, GlooOptions, ProcessGroup, Result, TcpStore};

const WORLD: usize = 4;

/// The rank that fails.
const VICTIM: usize = 2;

/// What a rank said about its error.
#[derive(Debug)]
struct Said {
    kind: String,
    ranks: String,
    text: String,
    milliseconds: u64,
}

/// Prints an error for [`said`].
fn say(result: Result<()>, start: Instant) {
    let error = result.unwrap_err();
    let ranks: Vec<String> = error.ranks().iter().map(usize::to_string).collect();
    let elapsed = start.elapsed().as_millis();
    println!("\nSAID {:?} {} {elapsed} {error}", error.kind(), ranks.join(","));
}

fn said(output: &str) -> Said {
    let line = output.lines().find_map(|line| line.strip_prefix("SAID ")).expect(output);
    let mut fields = line.splitn(4, ' ');
    let mut next = || fields.next().unwrap().to_owned();
    let (kind, ranks, milliseconds) = (next(), next(), next().parse().unwrap());
    Said { kind, ranks, milliseconds, text: next() }
}

/// Reduces until a call fails, on a rank.
fn reduce_until_failure(timeout: Duration) {
    let (_store, group) = join(timeout);
    let tensor = Tensor::ones([1000], FLOAT);
    for step in 0.. {
        let start = Instant::now();
        let result = group.all_reduce(&tensor);
        if result.is_err() {
            return say(result, start);
        }
        if step == 5 {
            println!("\nRUNNING");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to one of four ranks that run `test`, and returns what the others said.
fn signal(test: &str, signal: &str) -> Vec<Said> {
    let mut ranks = start(test, WORLD);
    // Ranks are in lockstep, so all run when one says so.
    let mut victim_output = ranks[VICTIM].stdout.take().unwrap();
    let mut heard = String::new();
    let mut buffer = [0; 256];
    while !heard.contains("RUNNING") {
        let length = victim_output.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    let id = ranks[VICTIM].id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    let mut victim = ranks.remove(VICTIM);
    let said = ranks
        .into_iter()
        .map(|mut rank| {
            let status = wait_at_most(&mut rank, Duration::from_secs(40));
            let mut text = String::new();
            rank.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            assert!(status.is_some_and(|status| status.success()), "{status:?} {text}");
            said(&text)
        })
        .collect();
    victim.kill().unwrap();
    victim.wait().unwrap();
    said
}

#[test]
fn every_survivor_names_a_killed_rank() {
    if rank().is_some() {
        return reduce_until_failure(Duration::from_secs(120));
    }
    for said in signal("every_survivor_names_a_killed_rank", "-KILL") {
        assert_eq!((said.kind.as_str(), said.ranks.as_str()), ("PeerLost", "2"), "{said:?}");
        assert!(said.text.contains("rank 2 has ended or left the group"), "{said:?}");
        assert!(said.milliseconds < 5000, "{said:?}");
    }
}

#[test]
fn every_survivor_names_a_stopped_rank() {
    if rank().is_some() {
        return reduce_until_failure(Duration::from_secs(3));
    }
    for said in signal("every_survivor_names_a_stopped_rank", "-STOP") {
        assert_eq!(said.ranks, "2", "{said:?}");
        assert!(said.text.contains("rank 2 does not answer"), "{said:?}");
        assert!(said.milliseconds < 10_000, "{said:?}");
    }
}

#[test]
fn a_late_rank_is_named_with_what_it_did_last() {
    let test = "a_late_rank_is_named_with_what_it_did_last";
    if let Some(rank) = rank() {
        let (_store, group) = join(Duration::from_secs(2));
        group.barrier(None).unwrap();
        if rank == VICTIM {
            std::thread::sleep(Duration::from_secs(5));
        }
        let start = Instant::now();
        return say(group.all_reduce(&Tensor::ones([3], FLOAT)), start);
    }
    for (rank, said) in outputs(test, WORLD).iter().map(|output| said(output)).enumerate() {
        assert_eq!(said.ranks, "2", "rank {rank}: {said:?}");
        assert!(said.text.contains("rank 2 has made no call for"), "rank {rank}: {said:?}");
        assert!(said.text.contains("since call 1: barrier"), "rank {rank}: {said:?}");
    }
}

#[test]
fn a_monitored_barrier_names_all_that_do_not_come() {
    let test = "a_monitored_barrier_names_all_that_do_not_come";
    if let Some(rank) = rank() {
        let (_store, group) = join(Duration::from_secs(30));
        if rank == 1 || rank == 3 {
            std::thread::sleep(Duration::from_secs(4));
            return println!("\nSAID none 1,3 0 late");
        }
        let start = Instant::now();
        return say(group.monitored_barrier(Duration::from_secs(1)), start);
    }
    for (rank, said) in outputs(test, WORLD).iter().map(|output| said(output)).enumerate() {
        assert_eq!(said.ranks, "1,3", "rank {rank}: {said:?}");
        assert!(said.milliseconds < 4000, "rank {rank}: {said:?}");
    }
}

#[test]
fn a_rank_that_never_joins_is_named() {
    let store = TcpStore::bind(([127, 0, 0, 1], 0).into(), Duration::from_secs(2)).unwrap();
    let options = GlooOptions { timeout: Duration::from_millis(500), ..GlooOptions::default() };
    let error = ProcessGroup::gloo(&store, 0, 3, &options).unwrap_err();
    assert_eq!((error.kind(), error.ranks()), (ErrorKind::Timeout, &[1, 2][..]));
    assert_eq!(
        error.to_string(),
        "joining group \"default\" as rank 0 of 3: waiting for the other ranks: \
         ranks 1 and 2 did not come within 0.5 s"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn another_thread_aborts_a_collective() {
    let test = "another_thread_aborts_a_collective";
    if let Some(rank) = rank() {
        let (_store, group) = join(Duration::from_secs(60));
        if rank == VICTIM {
            let abort = group.abort_handle().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                abort.abort().unwrap();
            });
        } else if rank == 3 {
            // The call that the others wait for.
            std::thread::sleep(Duration::from_secs(2));
            assert_eq!(group.failure(), Some((vec![VICTIM], "rank 2 aborted the group".to_owned())));
        }
        let start = Instant::now();
        return say(group.all_reduce(&Tensor::ones([3], FLOAT)), start);
    }
    for (rank, said) in outputs(test, WORLD).iter().map(|output| said(output)).enumerate() {
        assert_eq!(said.ranks, "2", "rank {rank}: {said:?}");
        assert!(said.text.contains("rank 2 aborted the group"), "rank {rank}: {said:?}");
        assert!(said.milliseconds < 10_000, "rank {rank}: {said:?}");
    }
}
