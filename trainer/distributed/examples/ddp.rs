//! Trains a small convolutional net with `DistributedDataParallel` on two processes of this machine:
//! `cargo run --example ddp`. The program starts itself again as rank 1. Gradients are accumulated over two
//! batches and exchanged as bfloat16, and batch normalization uses the batches of both ranks.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::Duration;

use tch::nn::OptimizerConfig as _;
use tch::{Device, Kind, Tensor, nn, nn::Module as _};
use tch_distributed::{
    CommHook, DdpOptions, DistributedDataParallel, GlooOptions, ProcessGroup, RunningStats, TcpStore,
    sync_batch_norm,
};

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

/// A convolution, batch normalization over all ranks, and a linear layer.
struct Net {
    convolution: nn::Conv2D,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    linear: nn::Linear,
}

impl Net {
    fn new(root: &nn::Path<'_>) -> Result<Self, AnyError> {
        let config = nn::ConvConfig { padding: 1, bias: false, ..Default::default() };
        Ok(Self {
            convolution: nn::conv2d(root / "convolution", 1, 8, 3, config),
            weight: (root / "norm").f_ones("weight", &[8])?,
            bias: (root / "norm").f_zeros("bias", &[8])?,
            mean: (root / "norm").f_zeros_no_train("running_mean", &[8])?,
            var: (root / "norm").f_ones_no_train("running_var", &[8])?,
            linear: nn::linear(root / "linear", 8 * 8 * 8, 2, Default::default()),
        })
    }

    fn forward(&self, group: &ProcessGroup, images: &Tensor) -> Result<Tensor, AnyError> {
        let running = RunningStats { mean: &self.mean, var: &self.var };
        let x = self.convolution.forward(images);
        let x = sync_batch_norm(group, &x, &self.weight, &self.bias, Some(running), 0.1, 1e-5)?;
        Ok(self.linear.forward(&x.f_relu()?.f_flatten(1, -1)?))
    }
}

/// Teaches the net to tell horizontal stripes from vertical ones.
fn train(store: &TcpStore, rank: usize) -> Result<(), AnyError> {
    tch::set_num_threads(1);
    let group = ProcessGroup::gloo(store, rank, 2, &GlooOptions { timeout: TIMEOUT, ..Default::default() })?;
    // Other weights and data on each rank; the weights become those of rank 0.
    tch::manual_seed(rank as i64);
    let variables = nn::VarStore::new(Device::Cpu);
    let net = Net::new(&variables.root())?;
    let mut optimizer = nn::Sgd { momentum: 0.9, ..Default::default() }.build(&variables, 0.02)?;
    let mut options = DdpOptions::default();
    options.reducer.hook = CommHook::Bf16Compress;
    options.reducer.static_graph = true;
    let mut ddp = DistributedDataParallel::from_var_store(&group, &variables, options)?;
    for step in 0..=40 {
        let (images, classes) = stripes(16)?;
        ddp.no_sync(|ddp| -> Result<(), AnyError> {
            let output = ddp.forward(|| net.forward(&group, &images))??;
            Ok(ddp.backward(&output.cross_entropy_for_logits(&classes))?)
        })?;
        let (images, classes) = stripes(16)?;
        let output = ddp.forward(|| net.forward(&group, &images))??;
        let loss = output.cross_entropy_for_logits(&classes);
        ddp.backward(&loss)?;
        optimizer.step();
        optimizer.zero_grad();
        if rank == 0 && step % 10 == 0 {
            println!("step {step:3}  loss {:.6}", loss.f_double_value(&[])?);
        }
    }
    group.barrier(None)?;
    Ok(())
}

/// Noisy images of 8 x 8 pixels, the second half of them with vertical stripes, and their classes.
fn stripes(count: i64) -> Result<(Tensor, Tensor), AnyError> {
    let rows =
        Tensor::f_arange(8, FLOAT)?.f_remainder(2.0)?.f_view([1, 1, 8, 1])?.f_expand([1, 1, 8, 8], false)?;
    let horizontal = rows.f_expand([count / 2, 1, 8, 8], false)?;
    let vertical = horizontal.f_transpose(2, 3)?;
    let noise = Tensor::f_randn([count, 1, 8, 8], FLOAT)?.f_mul_scalar(0.3)?;
    let classes =
        Tensor::f_arange(count, (Kind::Int64, Device::Cpu))?.f_ge(count / 2)?.f_to_kind(Kind::Int64)?;
    Ok((Tensor::f_cat(&[horizontal, vertical], 0)?.f_add(&noise)?, classes))
}
