//! Several ranks for a test: the test program starts itself once per rank, with the launcher's variables.
//! Each child runs only the test that started it.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Output, Stdio};
use std::rc::Rc;
use std::time::Duration;

use tch_distributed::ProcessGroup;
use yolo_base::env::{LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, YOLO_RENDEZVOUS_FD};
use yolo_plan::backend::Backend;
use yolo_plan::device::Device;
use yolo_plan::run::Ranks;
use yolo_trainer::rank::process_group::{self, Timeouts};

/// The rank of a child. The other variables are those of every run.
const CHILD: &str = "YOLO_TEST_RANK";

/// A test whose ranks wait longer than this for each other fails.
const TIMEOUTS: Timeouts =
    Timeouts { rendezvous: Duration::from_secs(120), collective: Duration::from_secs(60) };

/// Runs `body` in two processes; see [`on_ranks`].
pub fn on_two_ranks(test: &str, body: impl FnOnce(usize, &Rc<ProcessGroup>)) {
    on_ranks(test, 2, body);
}

/// Runs `body` in `world` processes, with their rank and group. If one fails, the test fails with its
/// output.
pub fn on_ranks(test: &str, world: usize, body: impl FnOnce(usize, &Rc<ProcessGroup>)) {
    if let Ok(rank) = std::env::var(CHILD) {
        tch_train::set_num_threads(1).unwrap();
        let rank = rank.parse().unwrap();
        let ranks = Ranks {
            devices: vec![Device::Cpu; world],
            further_devices: Vec::new(),
            device_memory: Vec::new(),
            first: 0,
            first_here: 0,
            here: None,
            world_size: world,
            backend: Some(Backend::Gloo),
            nccl: None,
            variables: BTreeMap::new(),
            threads: 1,
            cpus: Vec::new(),
            page_locked: None,
        };
        let joined = process_group::join(rank, &ranks, tch::Device::Cpu, TIMEOUTS).unwrap();
        let group = Rc::new(joined.group);
        body(rank, &group);
        group.barrier(None).unwrap();
        return;
    }
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, rank.to_string())
            .env(MASTER_ADDR, "127.0.0.1")
            .env(LOCAL_WORLD_SIZE, world.to_string())
            .env(MASTER_PORT, port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if rank == 0 {
            rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
            command.env(YOLO_RENDEZVOUS_FD, socket.as_raw_fd().to_string());
        }
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..world).map(start).collect();
    // Only rank 0 listens.
    drop(socket);
    for (rank, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "rank {rank} failed\n{said}");
        // A child that ran no test would succeed too.
        assert!(said.contains("1 passed"), "rank {rank} ran no test\n{said}");
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
