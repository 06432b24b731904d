//! Two ranks for a test: the test binary starts itself again, once a rank, and
//! each child runs only the test that started it. Loopback only.

use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tch::{Device, Kind, Tensor};
use tch_distributed::{GlooOptions, ProcessGroup, TcpStore};

pub(crate) const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

const RANK: &str = "TCHD_TEST_RANK";
const PORT: &str = "TCHD_TEST_PORT";

/// Which rank this process is, or `None` in the test that starts them.
pub(crate) fn rank() -> Option<usize> {
    std::env::var(RANK).ok().map(|rank| rank.parse().unwrap())
}

/// Starts both ranks of `test`, which sees [`rank`]. The socket of the store is
/// bound here and handed to rank 0 as its standard input, so no port is raced.
pub(crate) fn start(test: &str) -> [Child; 2] {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut socket = Some(OwnedFd::from(listener));
    [0, 1].map(|rank| {
        Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(RANK, rank.to_string())
            .env(PORT, port.to_string())
            .stdin(socket.take().map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    })
}

/// Runs `body` on two ranks, each with a group; the parent waits and shows what
/// a failed rank printed.
pub(crate) fn on_two_ranks(test: &str, body: impl FnOnce(&ProcessGroup)) {
    on_two_ranks_with_store(test, |_, group| body(group));
}

/// As [`on_two_ranks`]; the store is there for making further groups.
pub(crate) fn on_two_ranks_with_store(test: &str, body: impl FnOnce(&TcpStore, &ProcessGroup)) {
    if rank().is_some() {
        let (store, group) = join(Duration::from_secs(60));
        body(&store, &group);
        group.barrier(None).unwrap();
        return;
    }
    for (rank, child) in start(test).into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "rank {rank} failed\n{}", text(&output));
        // A child that ran no test would pass as well.
        assert!(text(&output).contains("1 passed"), "rank {rank} ran no test\n{}", text(&output));
    }
}

/// Joins the group of this test, within a rank.
pub(crate) fn join(timeout: Duration) -> (TcpStore, ProcessGroup) {
    tch::set_num_threads(1);
    let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
    let rank = rank().unwrap();
    let wait = Duration::from_secs(60);
    let store = if rank == 0 {
        let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        TcpStore::master(TcpListener::from(socket), wait)
    } else {
        TcpStore::client("127.0.0.1", port, wait)
    }
    .unwrap();
    let options = GlooOptions { timeout, ..GlooOptions::default() };
    let group = ProcessGroup::gloo(&store, rank, 2, &options).unwrap();
    (store, group)
}

/// All that a process printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The largest difference of two tensors; NaN fails.
pub(crate) fn difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    let difference = (a - b).abs().max().double_value(&[]);
    assert!(difference.is_finite());
    difference
}

/// Waits for a process, but not longer than `limit`; kills it then.
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
