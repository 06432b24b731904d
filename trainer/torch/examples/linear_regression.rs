//! Fits y = x · w with fused SGD under bfloat16 autocast: `cargo run --example linear_regression`.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use tch::{Device, Kind, Tensor};
use tch_train::{Sgd, autocast, clip_grad_norm, foreach_zero, fused_sgd, set_num_threads};

const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    set_num_threads(1)?;
    tch::manual_seed(0);
    let target = Tensor::f_arange(8, FLOAT)?.f_view([8, 1])?;
    let weight = Tensor::f_zeros([8, 1], FLOAT)?.set_requires_grad(true);
    let momentum = weight.f_detach()?.f_zeros_like()?;
    let sgd = Sgd { lr: 0.05, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: true };
    for step in 0..=100 {
        let x = Tensor::f_randn([32, 8], FLOAT)?;
        let y = autocast(Device::Cpu, Kind::BFloat16, || x.f_matmul(&weight))??;
        let loss = y.f_to_kind(Kind::Float)?.f_mse_loss(&x.f_matmul(&target)?, tch::Reduction::Mean)?;
        loss.f_backward()?;
        let gradient = weight.f_grad()?;
        let norm = clip_grad_norm(&[&gradient], 10.0)?;
        fused_sgd(&[&weight], &[&gradient], &[&momentum], &sgd, false)?;
        foreach_zero(&[&gradient])?;
        if step % 20 == 0 {
            let (loss, norm) = (loss.f_double_value(&[])?, norm.f_double_value(&[])?);
            println!("step {step:3}  loss {loss:.6}  gradient norm {norm:.4}");
        }
    }
    Ok(())
}
