//! The device alone: a matrix product whose result is known, copies within its memory and, on a
//! GPU, copies from pinned host memory, how much of it there is, and matrix products for some seconds.

use std::time::{Duration, Instant};

use tch::{Device, Kind, Tensor};
use yolo_plan::event::Measure;
use yolo_plan::run::DeepCheckTask;

use super::measure::{report, seconds_of};
use crate::error::TrainError;
use crate::rank::context::Context;
use crate::synchronize::synchronize;

/// Rows of the square matrices: enough work for the kind of device, and at most a second.
fn side(device: Device) -> i64 {
    if device.is_cuda() { 8192 } else { 1024 }
}

/// Numbers in a copy: 1 GB on a GPU, 128 MB elsewhere.
fn numbers(device: Device) -> i64 {
    if device.is_cuda() { 1 << 28 } else { 1 << 25 }
}

/// Numbers in pinned memory: 32 MB, since WSL gives little.
const PINNED: i64 = 1 << 23;
const BYTES: f64 = 4.0;
/// Rows of the matrices under load. The half precision of GPUs is an eighth of the work of single precision.
const LOADED: i64 = 8192;

pub(super) fn measure(context: &Context, task: &DeepCheckTask) -> Result<(), TrainError> {
    let device = context.device;
    context.reporter.phase("multiplying matrices");
    report(context, Measure::MatrixProduct, matrix_product(device)?);
    context.reporter.phase("copying in device memory");
    let from = Tensor::f_ones([numbers(device)], (Kind::Float, device))?;
    let mut to = Tensor::f_empty([numbers(device)], (Kind::Float, device))?;
    let seconds = seconds_of(device, || Ok(to.f_copy_(&from)?))?;
    report(context, Measure::MemoryCopy, 2.0 * BYTES * numbers(device) as f64 / seconds / 1e9);
    drop((from, to));
    if device.is_cuda() {
        pinned(context)?;
        pinned_memory(context, task.pinned)?;
        loaded(context, Duration::from_millis(task.load))?;
    }
    Ok(())
}

/// How much memory can be pinned at once: it is asked for in blocks, as the loader does, up to what it wants.
fn pinned_memory(context: &Context, wanted: u64) -> Result<(), TrainError> {
    context.reporter.phase("pinning memory");
    let block = PINNED * 4;
    let mut held = Vec::new();
    let reached = loop {
        let bytes = held.len() as u64 * block as u64;
        if bytes >= wanted {
            break bytes;
        }
        let pageable = Tensor::f_empty([block], (Kind::Uint8, Device::Cpu))?;
        match tch_train::page_locked(&pageable) {
            Ok(memory) => held.push(memory),
            Err(_) => break bytes,
        }
    };
    report(context, Measure::PinnedMemory, reached as f64 / f64::from(1 << 20));
    Ok(())
}

/// Computes without a pause, and reports the rate of the last part of the time: a card that gets too hot, or is
/// short of power, is slower by then.
fn loaded(context: &Context, time: Duration) -> Result<(), TrainError> {
    if time.is_zero() {
        return Ok(());
    }
    context.reporter.phase("computing without a pause");
    let device = context.device;
    let one = Tensor::f_rand([LOADED, LOADED], (Kind::Float, device))?.f_to_kind(Kind::Half)?;
    let mut product = one.f_matmul(&one)?;
    synchronize(device);
    let began = Instant::now();
    let (mut late, mut products) = (None, 0_u32);
    while began.elapsed() < time {
        for _ in 0..8 {
            product = one.f_matmul(&one)?;
        }
        synchronize(device);
        match late {
            None if began.elapsed() >= time / 2 => late = Some(Instant::now()),
            None => {}
            Some(_) => products += 8,
        }
    }
    drop(product);
    if let Some(seconds) = late.map(|late: Instant| late.elapsed().as_secs_f64()).filter(|_| products > 0) {
        let operations = 2.0 * (LOADED as f64).powi(3) * f64::from(products);
        report(context, Measure::LoadedProduct, operations / seconds / 1e12);
    }
    Ok(())
}

/// 10^12 operations per second. A matrix of ones times another matrix gives that matrix's column
/// sums: whole numbers, which every device must compute exactly.
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
            "{device:?} computes wrong results: a product of {side}×{side} matrices is off by {off}"
        ))
        .with_hint("the device or its memory is faulty: omit it from --device and have it tested"));
    }
    Ok(2.0 * (side as f64).powi(3) / seconds / 1e12)
}

fn pinned(context: &Context) -> Result<(), TrainError> {
    context.reporter.phase("copying from pinned memory");
    let device = context.device;
    let host = Tensor::f_ones([PINNED], (Kind::Float, Device::Cpu))?;
    let host = match tch_train::page_locked(&host) {
        Ok(host) => host,
        Err(error) => {
            // Training works without it, only slower.
            let error = TrainError::from(error);
            context.reporter.warning(format!("cannot pin 32 MB of memory: {error}"));
            return Ok(());
        }
    };
    let mut there = Tensor::f_empty([PINNED], (Kind::Float, device))?;
    let seconds = seconds_of(device, || Ok(there.f_copy_(&host)?))?;
    report(context, Measure::PinnedCopy, BYTES * PINNED as f64 / seconds / 1e9);
    Ok(())
}
