//! Copies between each pair of devices, directly and by the host's memory, compared byte for byte: some drivers
//! and mainboards report success and deliver other bytes. One process has all devices, as CUDA's own copies need.
//! On the CPU, the same copies run between tensors.

use std::time::Instant;

use tch::{Device, Kind, Tensor};
use yolo_plan::event::Event;

use crate::error::TrainError;
use crate::rank::context::Context;
use crate::synchronize::synchronize;

/// Bytes of a copy: enough for the rate, and little to compare.
const BYTES: i64 = 32 << 20;
/// Times that a copy is repeated for its rate.
const TIMES: u32 = 4;

pub(super) fn measure(context: &Context) -> Result<(), TrainError> {
    let devices = &context.devices.all;
    for from in 0..devices.len() {
        for to in (0..devices.len()).filter(|to| *to != from) {
            for by_host in [false, true] {
                let how = if by_host { "by the host" } else { "directly" };
                let doing = format!("copying {how} from the device of rank {from} to that of rank {to}");
                context.reporter.phase(&doing);
                let (rate, wrong) = copy(devices[from], devices[to], by_host, from * devices.len() + to)?;
                context.reporter.send(&Event::Copied { from, to, by_host, rate, wrong });
            }
        }
    }
    Ok(())
}

/// Copies a pattern, and returns GB/s and how many bytes are wrong.
fn copy(from: Device, to: Device, by_host: bool, seed: usize) -> Result<(f64, u64), TrainError> {
    // Numbers that differ between pairs, so that bytes of an earlier copy are wrong ones.
    let expected = pattern(seed as i64)?;
    let source = expected.f_to_device(from)?;
    let mut target = Tensor::f_zeros([BYTES], (Kind::Uint8, to))?;
    let mut between = Tensor::f_zeros([BYTES], (Kind::Uint8, Device::Cpu))?;
    let mut once = || -> Result<(), TrainError> {
        if by_host {
            between.f_copy_(&source)?;
            target.f_copy_(&between)?;
        } else {
            target.f_copy_(&source)?;
        }
        Ok(())
    };
    once()?;
    let wait = || [from, to].into_iter().for_each(synchronize);
    wait();
    let began = Instant::now();
    for _ in 0..TIMES {
        once()?;
    }
    wait();
    let seconds = began.elapsed().as_secs_f64();
    let arrived = target.f_to_device(Device::Cpu)?;
    let wrong = arrived.f_ne_tensor(&expected)?.f_sum(Kind::Int64)?.f_int64_value(&[])?;
    Ok((BYTES as f64 * f64::from(TIMES) / seconds / 1e9, wrong.unsigned_abs()))
}

/// Bytes without a short period, by a fixed rule: whole numbers times a large odd one, which overflow.
fn pattern(seed: i64) -> Result<Tensor, TrainError> {
    let numbers = Tensor::f_arange(BYTES / 8, (Kind::Int64, Device::Cpu))?;
    let mixed = numbers.f_add_scalar(seed * 7919 + 1)?.f_mul_scalar(-7_046_029_254_386_353_131_i64)?;
    Ok(mixed.f_view_dtype(Kind::Uint8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_measured_and_compared() {
        for by_host in [false, true] {
            let (rate, wrong) = copy(Device::Cpu, Device::Cpu, by_host, 3).unwrap();
            assert!(rate > 0.0 && wrong == 0);
        }
    }

    #[test]
    fn patterns_of_pairs_differ_almost_everywhere() {
        let same = pattern(1).unwrap().f_eq_tensor(&pattern(2).unwrap()).unwrap();
        let same = same.f_sum(Kind::Int64).unwrap().f_int64_value(&[]).unwrap();
        assert!(same < BYTES / 50, "{same}");
    }
}
