//! The device by itself: a matrix product whose result is known, copies within its memory and, on a
//! GPU, from pinned memory of the machine.

use tch::{Device, Kind, Tensor};
use yolo_plan::event::Measure;

use super::{seconds_of, tell};
use crate::error::TrainError;
use crate::rank::Rank;

/// Rows of the square matrices: enough work for each kind of device, and a second at most.
fn side(device: Device) -> i64 {
    if device.is_cuda() { 8192 } else { 1024 }
}

/// Numbers in the memory that is copied: 1 GB on a GPU, 128 MB elsewhere.
fn numbers(device: Device) -> i64 {
    if device.is_cuda() { 1 << 28 } else { 1 << 25 }
}

/// Numbers that are pinned, 32 MB: WSL gives little.
const PINNED: i64 = 1 << 23;
const BYTES: f64 = 4.0;

pub(super) fn measure(context: &Rank) -> Result<(), TrainError> {
    let device = context.device;
    context.reporter.phase("multiplying matrices");
    tell(context, Measure::MatrixProduct, matrix_product(device)?);
    context.reporter.phase("copying in the device's memory");
    let from = Tensor::f_ones([numbers(device)], (Kind::Float, device))?;
    let mut to = Tensor::f_empty([numbers(device)], (Kind::Float, device))?;
    let seconds = seconds_of(device, || Ok(to.f_copy_(&from)?))?;
    tell(context, Measure::MemoryCopy, 2.0 * BYTES * numbers(device) as f64 / seconds / 1e9);
    if device.is_cuda() {
        pinned(context)?;
    }
    Ok(())
}

/// 10^12 operations a second. Every column of the product of a matrix of ones with another is the
/// sum of that one's column: whole numbers, which every device must get exactly.
fn matrix_product(device: Device) -> Result<f64, TrainError> {
    let side = side(device);
    let ones = Tensor::f_ones([side, side], (Kind::Float, device))?;
    let numbers = Tensor::f_arange(side * side, (Kind::Int64, device))?
        .f_remainder(5)?
        .f_to_kind(Kind::Float)?
        .f_reshape([side, side])?;
    let sums = numbers.f_sum_dim_intlist([0_i64].as_slice(), true, Kind::Float)?;
    let mut product = Tensor::f_empty([side, side], (Kind::Float, device))?;
    let seconds = seconds_of(device, || {
        product = ones.f_matmul(&numbers)?;
        Ok(())
    })?;
    let off = product.f_sub(&sums)?.f_abs()?.f_max()?.f_double_value(&[])?;
    if off != 0.0 {
        return Err(TrainError::new(format!(
            "{device:?} computes wrongly: a product of matrices of {side} rows is off by {off}"
        ))
        .with_hint("the device or its memory is faulty: leave it out of --device, and have it tested"));
    }
    Ok(2.0 * (side as f64).powi(3) / seconds / 1e12)
}

fn pinned(context: &Rank) -> Result<(), TrainError> {
    context.reporter.phase("copying from pinned memory");
    let device = context.device;
    let host = Tensor::f_ones([PINNED], (Kind::Float, Device::Cpu))?;
    let host = match host.f_pin_memory(device) {
        Ok(host) => host,
        Err(error) => {
            // A run does without, only slower.
            let error = TrainError::from(error);
            context.reporter.warning(format!("32 MB of memory cannot be pinned: {error}"));
            return Ok(());
        }
    };
    let mut there = Tensor::f_empty([PINNED], (Kind::Float, device))?;
    let seconds = seconds_of(device, || Ok(there.f_copy_(&host)?))?;
    tell(context, Measure::PinnedCopy, BYTES * PINNED as f64 / seconds / 1e9);
    Ok(())
}
