//! Measures the all-reduce of two processes on this machine over gloo:
//! `cargo run --release --example all_reduce [-- BYTES [REPEATS]]`. The program starts itself again as rank 1.
//! Rank 0 prints the median and the fastest time of one all-reduce in milliseconds.
//! `tests/benches/compare_all_reduce.py` in the repository runs it side by side with Python.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

use tch::{Device, Kind, Tensor};
use tch_distributed::{GlooOptions, ProcessGroup, TcpStore};

type AnyError = Box<dyn std::error::Error>;
const TIMEOUT: Duration = Duration::from_secs(30);
const WARM_UP: usize = 20;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| -> Result<usize, AnyError> {
        Ok(arguments.get(index).map(|text| text.parse()).transpose()?.unwrap_or(default))
    };
    let (bytes, repeats, port) = (number(0, 7_000_000)?, number(1, 200)?, number(2, 0)?);
    if port > 0 {
        return measure(&TcpStore::client("127.0.0.1", u16::try_from(port)?, TIMEOUT)?, 1, bytes, repeats);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let arguments = [bytes, repeats, usize::from(port)].map(|number| number.to_string());
    let mut peer = Command::new(std::env::current_exe()?).args(arguments).spawn()?;
    measure(&TcpStore::master(listener, TIMEOUT)?, 0, bytes, repeats)?;
    let status = peer.wait()?;
    if status.success() { Ok(()) } else { Err(format!("rank 1 ended with {status}").into()) }
}

fn measure(store: &TcpStore, rank: usize, bytes: usize, repeats: usize) -> Result<(), AnyError> {
    tch::set_num_threads(1);
    // Python does not compare calls either.
    let options = GlooOptions { timeout: TIMEOUT, check_calls: false, ..Default::default() };
    let group = ProcessGroup::gloo(store, rank, 2, &options)?;
    let tensor = Tensor::f_zeros([(bytes / 4) as i64], (Kind::Float, Device::Cpu))?;
    let mut times = Vec::new();
    for repeat in 0..WARM_UP + repeats {
        let start = Instant::now();
        group.all_reduce(&tensor)?;
        if repeat >= WARM_UP {
            times.push(start.elapsed());
        }
    }
    times.sort_unstable();
    if rank == 0 {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let (median, fastest) = (milliseconds(times[times.len() / 2]), milliseconds(times[0]));
        println!("all-reduce of {bytes} bytes  median {median:.3} ms  fastest {fastest:.3} ms");
    }
    group.barrier(None)?;
    Ok(())
}
