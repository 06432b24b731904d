//! Ranks for a test. The test binary starts itself again once per rank, and each child runs only the
//! test that started it. Everything listens on the loopback address.

use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tch::{Device, Kind, Tensor};
use tch_distributed::{GlooOptions, ProcessGroup, TcpStore};

pub(crate) const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

const RANK: &str = "TCHD_TEST_RANK";
const WORLD: &str = "TCHD_TEST_WORLD";
const PORT: &str = "TCHD_TEST_PORT";

/// The rank of this process, or `None` in the test that starts the ranks.
pub(crate) fn rank() -> Option<usize> {
    std::env::var(RANK).ok().map(|rank| rank.parse().unwrap())
}

/// Starts the ranks of `test`. The socket of the store is bound here, so that no other program can
/// take the port, and passed to rank 0 as its standard input.
pub(crate) fn start(test: &str, world: usize) -> Vec<Child> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut socket = Some(OwnedFd::from(listener));
    let mut start = |rank: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(RANK, rank.to_string())
            .env(WORLD, world.to_string())
            .env(PORT, port.to_string())
            .stdin(socket.take().map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    (0..world).map(&mut start).collect()
}

/// Runs `body` on two ranks; see [`on_ranks`].
pub(crate) fn on_two_ranks(test: &str, body: impl FnOnce(&ProcessGroup)) {
    on_ranks(test, 2, |_, group| body(group));
}

/// Runs `body` on `world` ranks, each with the store and a group. The parent waits for them and shows
/// the output of a rank that failed.
pub(crate) fn on_ranks(test: &str, world: usize, body: impl FnOnce(&TcpStore, &ProcessGroup)) {
    if rank().is_some() {
        let (store, group) = join(Duration::from_secs(60));
        body(&store, &group);
        group.barrier(None).unwrap();
        return;
    }
    let _ = outputs(test, world);
}

/// Starts the ranks of `test`, waits for them and returns what each printed. Fails with its output if
/// a rank failed.
pub(crate) fn outputs(test: &str, world: usize) -> Vec<String> {
    let finish = |(rank, child): (usize, Child)| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "rank {rank} failed\n{}", text(&output));
        // A child that runs no test also succeeds.
        assert!(text(&output).contains("1 passed"), "rank {rank} ran no test\n{}", text(&output));
        text(&output)
    };
    start(test, world).into_iter().enumerate().map(finish).collect()
}

/// Joins the group of this test. Call it in a rank.
pub(crate) fn join(timeout: Duration) -> (TcpStore, ProcessGroup) {
    tch::set_num_threads(1);
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (rank, world) = (number(RANK), number(WORLD));
    let wait = Duration::from_secs(60);
    let store = if rank == 0 {
        let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        TcpStore::master(TcpListener::from(socket), wait)
    } else {
        TcpStore::client("127.0.0.1", u16::try_from(number(PORT)).unwrap(), wait)
    }
    .unwrap();
    let options = GlooOptions { timeout, ..GlooOptions::default() };
    let group = ProcessGroup::gloo(&store, rank, world, &options).unwrap();
    (store, group)
}

/// Everything that a process printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The largest absolute difference of two tensors. NaN fails.
pub(crate) fn difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    let difference = (a - b).abs().max().double_value(&[]);
    assert!(difference.is_finite());
    difference
}

/// Waits for a process for at most `limit`, then kills it and returns `None`.
pub(crate) fn wait_at_most(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}
