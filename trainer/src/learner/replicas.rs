//! Data parallelism in one process (`--parallel dp`), as PyTorch's `DataParallel` does it: each device runs a part of
//! the batch through a replica of the model, the outputs come together on the first device, and the loss is that
//! of the whole batch. Each part has batch statistics of its own; only those of the first device enter the running
//! ones. Gradients flow back through the copies of the parameters, so they add up on the first device by
//! themselves.

use std::thread;

use tch::{Device, Tensor};
use yolo_plan::precision::Precision;

use crate::error::TrainError;
use crate::model::{Model, Replica};
use crate::precision::in_precision;

/// The devices of the replicas. The first is that of the model itself.
#[derive(Debug)]
pub(super) struct Replicas {
    devices: Vec<Device>,
    /// Whether each replica runs in a thread of its own. GPUs then work at the same time. On the CPU they
    /// would only compete for the same cores.
    threads: bool,
}

/// The raw heads of a part of a batch.
type Heads = Vec<Tensor>;

impl Replicas {
    pub(super) fn on(devices: Vec<Device>) -> Self {
        let threads = devices.iter().any(|device| device.is_cuda());
        Self { devices, threads }
    }

    /// The raw heads of a batch, on the device of the model. A batch with fewer images than devices uses only
    /// as many devices as it has images.
    pub(super) fn forward(
        &self,
        model: &Model,
        images: &Tensor,
        precision: Precision,
    ) -> Result<Heads, TrainError> {
        let mut parts = images.f_chunk(self.devices.len() as i64, 0)?.into_iter();
        let own = parts.next().ok_or_else(|| TrainError::new("a batch has no images"))?;
        // Made before the model runs, because its pass changes the running statistics.
        let others = parts
            .zip(self.devices.iter().skip(1))
            .map(|(part, &device)| Ok((model.replica(device)?, part.f_to_device(device)?)))
            .collect::<Result<Vec<_>, TrainError>>()?;
        let all = if self.threads {
            at_once(model, &own, others, precision)?
        } else {
            in_turn(model, &own, others, precision)?
        };
        together(&all, model.device())
    }
}

/// The heads of all parts, one after the other.
fn in_turn(
    model: &Model,
    own: &Tensor,
    others: Vec<(Replica, Tensor)>,
    precision: Precision,
) -> Result<Vec<Heads>, TrainError> {
    in_precision(precision, own.device(), || {
        let first = std::iter::once_with(|| model.forward_train(own));
        first.chain(others.iter().map(|(replica, part)| replica.forward_train(part))).collect()
    })
}

/// The heads of all parts, each but the first from a thread of its own.
fn at_once(
    model: &Model,
    own: &Tensor,
    others: Vec<(Replica, Tensor)>,
    precision: Precision,
) -> Result<Vec<Heads>, TrainError> {
    thread::scope(|scope| {
        let start = |(replica, part): (Replica, Tensor)| {
            scope.spawn(move || in_precision(precision, part.device(), || replica.forward_train(&part)))
        };
        let running: Vec<_> = others.into_iter().map(start).collect();
        let mut all = vec![in_precision(precision, own.device(), || model.forward_train(own))];
        for thread in running {
            let ended =
                thread.join().unwrap_or_else(|_| Err(TrainError::new("the thread of a replica panicked")));
            all.push(ended);
        }
        all.into_iter().collect()
    })
}

/// The heads of the whole batch, level by level.
fn together(parts: &[Heads], device: Device) -> Result<Heads, TrainError> {
    let levels = parts.first().map_or(0, Vec::len);
    let level = |level: usize| {
        let moved = parts.iter().map(|heads| heads[level].f_to_device(device));
        Ok(Tensor::f_cat(&moved.collect::<Result<Vec<_>, _>>()?, 0)?)
    };
    (0..levels).map(level).collect()
}

#[cfg(test)]
mod tests {
    use tch::Kind;
    use yolo_plan::model::ModelSpec;

    use super::*;

    #[test]
    fn threads_compute_what_one_thread_computes() {
        tch::manual_seed(3);
        let model = Model::new(&ModelSpec::load("yolov5n", 2, None).unwrap(), Device::Cpu).unwrap();
        let images = Tensor::rand([5, 3, 64, 64], (Kind::Float, Device::Cpu));
        let heads = |threads, precision| {
            let replicas = Replicas { devices: vec![Device::Cpu; 3], threads };
            replicas.forward(&model, &images, precision).unwrap()
        };
        for threads in [false, true] {
            // The head is a convolution. All replicas must run it in 16 bits, or they could not be joined.
            let kinds: Vec<Kind> = heads(threads, Precision::Bf16).iter().map(Tensor::kind).collect();
            assert_eq!(kinds, [Kind::BFloat16; 3]);
        }
        let (in_turn, at_once) = (heads(false, Precision::Fp32), heads(true, Precision::Fp32));
        assert_eq!(in_turn.iter().map(|head| head.size()[0]).collect::<Vec<_>>(), [5; 3]);
        for (one, other) in in_turn.iter().zip(&at_once) {
            // Another number of threads adds in another order.
            let off = (one - other).abs().max().double_value(&[]);
            assert!(other.requires_grad() && off < 1e-4, "{off:e}");
        }
    }
}
