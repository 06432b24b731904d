//! The way to the other ranks: a sum over all of them whose result is known, then the rate of a
//! large one. The group tells when a peer does not come in time.

use std::time::Instant;

use tch::{Device, Kind, Tensor};
use yolo_plan::event::Measure;

use super::tell;
use crate::error::TrainError;
use crate::rank::Rank;

/// Numbers of the sum that is checked, 4 MB.
const CHECKED: i64 = 1 << 20;
/// Numbers of the sum that is timed, 64 MB: the gradients of a yolov5m.
const TIMED: i64 = 1 << 24;
/// All ranks must time the same number of sums.
const TIMES: u32 = 5;

pub(super) fn measure(context: &Rank) -> Result<(), TrainError> {
    let Some(group) = &context.group else { return Ok(()) };
    context.reporter.phase("summing over all ranks");
    let (rank, world) = (context.rank as i64, context.world as i64);
    // Every rank adds its number and the place in the tensor: whole numbers, so that the sum is exact.
    let places = Tensor::f_arange(CHECKED, (Kind::Float, Device::Cpu))?.f_remainder(13)?;
    let sum = places.f_add_scalar(rank + 1)?;
    let began = Instant::now();
    group.all_reduce(&sum)?;
    let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
    let expected = places.f_mul_scalar(world)?.f_add_scalar(world * (world + 1) / 2)?;
    let wrong = sum.f_ne_tensor(&expected)?.f_sum(Kind::Int64)?.f_int64_value(&[])?;
    if wrong > 0 {
        return Err(TrainError::new(format!(
            "{wrong} of {CHECKED} numbers are wrong in a sum over {world} ranks"
        ))
        .with_hint("the link or a device's memory is faulty"));
    }
    tell(context, Measure::AllReduce, milliseconds);
    context.reporter.phase("measuring the rate of sums over all ranks");
    let large = Tensor::f_zeros([TIMED], (Kind::Float, Device::Cpu))?;
    group.all_reduce(&large)?;
    let began = Instant::now();
    for _ in 0..TIMES {
        group.all_reduce(&large)?;
    }
    let seconds = began.elapsed().as_secs_f64() / f64::from(TIMES);
    // In a ring each rank sends 2 (n - 1) / n of the tensor.
    let sent = 2.0 * (world - 1) as f64 / world as f64 * 4.0 * TIMED as f64;
    tell(context, Measure::AllReduceRate, sent / seconds / 1e9);
    Ok(())
}
