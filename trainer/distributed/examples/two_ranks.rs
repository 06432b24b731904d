//! Trains a small model on two processes of this machine: `cargo run --example two_ranks`. The
//! program starts itself again as rank 1. The Reducer averages the gradients of both ranks.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::Duration;

use tch::{Device, Kind, Tensor};
use tch_distributed::{GlooOptions, ProcessGroup, Reducer, ReducerOptions, TcpStore};

type AnyError = Box<dyn std::error::Error>;
const TIMEOUT: Duration = Duration::from_secs(30);
const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

fn main() -> Result<(), AnyError> {
    if let Some(port) = std::env::args().nth(1) {
        return train(&TcpStore::client("127.0.0.1", port.parse()?, TIMEOUT)?, 1);
    }
    // The socket is bound before its port is announced, so no other program can take the port.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let mut peer = Command::new(std::env::current_exe()?).arg(port.to_string()).spawn()?;
    train(&TcpStore::master(listener, TIMEOUT)?, 0)?;
    let status = peer.wait()?;
    if status.success() { Ok(()) } else { Err(format!("rank 1 ended with {status}").into()) }
}

/// Fits y = x · w to random batches, which differ between the ranks.
fn train(store: &TcpStore, rank: usize) -> Result<(), AnyError> {
    tch::set_num_threads(1);
    let group = ProcessGroup::gloo(store, rank, 2, &GlooOptions { timeout: TIMEOUT, ..Default::default() })?;
    tch::manual_seed(rank as i64);
    let target = Tensor::f_arange(8, FLOAT)?.f_view([8, 1])?;
    let weight = Tensor::f_randn([8, 1], FLOAT)?.set_requires_grad(true);
    group.broadcast(&[&weight], 0)?;
    let mut reducer = Reducer::new(&group, &[&weight], ReducerOptions::default())?;
    for step in 0..=100 {
        reducer.prepare_forward()?;
        let x = Tensor::f_randn([16, 8], FLOAT)?;
        let loss = x.f_matmul(&weight)?.f_mse_loss(&x.f_matmul(&target)?, tch::Reduction::Mean)?;
        reducer.backward(&loss)?;
        let mut gradient = weight.f_grad()?;
        let update = gradient.f_mul_scalar(-0.1)?;
        let _ = tch::no_grad(|| weight.shallow_clone().f_add_(&update))?;
        let _ = gradient.f_zero_()?;
        if rank == 0 && step % 20 == 0 {
            println!("step {step:3}  loss {:.6}", loss.f_double_value(&[])?);
        }
    }
    group.barrier(None)?;
    Ok(())
}
