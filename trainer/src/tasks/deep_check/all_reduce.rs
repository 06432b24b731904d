//! The connection to the other ranks: a sum over all ranks whose result is known, then the rate of
//! a large one. The group fails if a peer does not answer in time.

use std::time::Instant;

use tch::{Kind, Tensor};
use yolo_plan::event::Measure;

use super::measure::report;
use crate::error::TrainError;
use crate::rank::context::Context;
use crate::synchronize::synchronize;

/// Numbers in the checked sum, 4 MB.
const CHECKED: i64 = 1 << 20;
/// Numbers in the timed sum, 64 MB: the gradients of a yolov5m.
const TIMED: i64 = 1 << 24;
/// Number of timed sums, which must be the same on all ranks.
const TIMES: u32 = 5;

pub(super) fn measure(context: &Context) -> Result<(), TrainError> {
    let Some(group) = &context.group else { return Ok(()) };
    context.reporter.phase("summing over all ranks");
    let (rank, world) = (context.rank as i64, context.world as i64);
    // Every rank adds its number and a pattern. Both are whole numbers, so the sum is exact.
    let pattern = Tensor::f_arange(CHECKED, (Kind::Float, context.device))?.f_remainder(13)?;
    let sum = pattern.f_add_scalar(rank + 1)?;
    synchronize(context.device);
    let began = Instant::now();
    group.all_reduce(&sum)?;
    synchronize(context.device);
    let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
    let expected = pattern.f_mul_scalar(world)?.f_add_scalar(world * (world + 1) / 2)?;
    let wrong = sum.f_ne_tensor(&expected)?.f_sum(Kind::Int64)?.f_int64_value(&[])?;
    if wrong > 0 {
        return Err(TrainError::new(format!(
            "{wrong} of {CHECKED} numbers of a sum over {world} ranks are wrong"
        ))
        .with_hint("the network or the memory of a machine is faulty"));
    }
    report(context, Measure::AllReduce, milliseconds);
    context.reporter.phase("measuring the rate of sums over all ranks");
    let large = Tensor::f_zeros([TIMED], (Kind::Float, context.device))?;
    group.all_reduce(&large)?;
    synchronize(context.device);
    let began = Instant::now();
    for _ in 0..TIMES {
        group.all_reduce(&large)?;
    }
    synchronize(context.device);
    let seconds = began.elapsed().as_secs_f64() / f64::from(TIMES);
    // In a ring, each rank sends 2 (n - 1) / n of the tensor.
    let sent = 2.0 * (world - 1) as f64 / world as f64 * 4.0 * TIMED as f64;
    report(context, Measure::AllReduceRate, sent / seconds / 1e9);
    Ok(())
}
