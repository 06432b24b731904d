//! Trains a small net on two processes of this machine:
//! `cargo run --release --example two_ranks`. The program starts itself again
//! for rank 1; the gradients of both are averaged while backward runs.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::Duration;

use tch::{Device, Kind, Tensor};
use tch_distributed::{
    GlooOptions, ProcessGroup, Reducer, ReducerOptions, Sgd, TcpStore, foreach_zero, fused_sgd,
    set_num_threads,
};

type AnyError = Box<dyn std::error::Error>;
const TIMEOUT: Duration = Duration::from_secs(30);

fn main() -> Result<(), AnyError> {
    if let Some(port) = std::env::args().nth(1) {
        return train(&TcpStore::client("127.0.0.1", port.parse()?, TIMEOUT)?, 1);
    }
    // Bound before its number is told, so that nobody can take it.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let mut peer = Command::new(std::env::current_exe()?).arg(port.to_string()).spawn()?;
    train(&TcpStore::master(listener, TIMEOUT)?, 0)?;
    let status = peer.wait()?;
    if status.success() { Ok(()) } else { Err(format!("rank 1 ended with {status}").into()) }
}

/// Learns y = x · w from this rank's own random batches.
fn train(store: &TcpStore, rank: usize) -> Result<(), AnyError> {
    set_num_threads(1)?;
    let group = ProcessGroup::gloo(store, rank, 2, &GlooOptions { timeout: TIMEOUT, ..Default::default() })?;
    let float = (Kind::Float, Device::Cpu);
    let wanted = Tensor::f_arange(8, float)?.f_view([8, 1])?;
    tch::manual_seed(rank as i64);
    let weight = Tensor::f_randn([8, 1], float)?.set_requires_grad(true);
    group.broadcast(&[&weight], 0)?;
    let momentum = weight.f_detach()?.f_zeros_like()?;
    let mut reducer = Reducer::new(&group, &[&weight], ReducerOptions::default())?;
    let sgd = Sgd { lr: 0.05, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    for step in 0..=100 {
        if step > 0 {
            foreach_zero(&[weight.f_grad()?])?;
        }
        reducer.prepare_forward()?;
        let x = Tensor::f_randn([16, 8], float)?;
        let loss = x.f_matmul(&weight)?.f_mse_loss(&x.f_matmul(&wanted)?, tch::Reduction::Mean)?;
        reducer.backward(&loss)?;
        fused_sgd(&[&weight], &[weight.f_grad()?], &[&momentum], &sgd, false)?;
        if rank == 0 && step % 20 == 0 {
            println!("step {step:3}  loss {:.6}", loss.f_double_value(&[])?);
        }
    }
    group.barrier(None)?;
    Ok(())
}
