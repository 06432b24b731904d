//! Data parallelism in one process (`--parallel dp`), as PyTorch's `DataParallel` does it: each device runs a part of
//! the batch through a replica of the model, the outputs come together on the first device, and the loss is that
//! of the whole batch. Each part has batch statistics of its own; only those of the first device enter the running
//! ones. Gradients flow back through the copies of the parameters, so they add up on the first device by
//! themselves.

use std::sync::{Mutex, mpsc};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tch::{Device, Tensor};
use yolo_plan::precision::Precision;

use crate::error::TrainError;
use crate::model::{Model, Replica};
use crate::precision::in_precision;

/// The devices of the replicas. The first is that of the model itself.
#[derive(Debug)]
pub(super) struct Replicas {
    devices: Vec<Device>,
    /// A thread for each device but the first, with which GPUs work at the same time. They live as long as the run: cuDNN
    /// keeps its plans for each thread. `None` on the CPU, where they would only compete for the same cores.
    threads: Option<ThreadPool>,
}

/// The raw heads of a part of a batch.
type Heads = Vec<Tensor>;

impl Replicas {
    /// # Errors
    /// When the system refuses threads.
    pub(super) fn on(devices: Vec<Device>) -> Result<Self, TrainError> {
        let has_gpus = devices.iter().any(|device| device.is_cuda());
        let threads = if has_gpus { Some(threads(devices.len() - 1)?) } else { None };
        Ok(Self { devices, threads })
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
        let all = match &self.threads {
            Some(threads) => at_once(threads, model, &own, others, precision)?,
            None => in_turn(model, &own, others, precision)?,
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

/// Threads for this many replicas.
fn threads(count: usize) -> Result<ThreadPool, TrainError> {
    let pool =
        ThreadPoolBuilder::new().num_threads(count).thread_name(|index| format!("replica {}", index + 1));
    pool.build()
        .map_err(|error| TrainError::new(format!("cannot start {count} threads for replicas: {error}")))
}

/// The heads of all parts, each but the first from a thread of its own, the same in each step.
fn at_once(
    threads: &ThreadPool,
    model: &Model,
    own: &Tensor,
    others: Vec<(Replica, Tensor)>,
    precision: Precision,
) -> Result<Vec<Heads>, TrainError> {
    let (sender, results) = mpsc::channel();
    let others: Vec<Mutex<Option<(Replica, Tensor)>>> =
        others.into_iter().map(|part| Mutex::new(Some(part))).collect();
    let first = threads.in_place_scope(|scope| {
        let others = &others;
        scope.spawn_broadcast(move |_, thread| {
            let index = thread.index();
            let part = others.get(index).and_then(|part| part.lock().ok()?.take());
            if let Some((replica, part)) = part {
                let heads = in_precision(precision, part.device(), || replica.forward_train(&part));
                // The receiver lives until all threads are done.
                let _ = sender.send((index, heads));
            }
        });
        in_precision(precision, own.device(), || model.forward_train(own))
    });
    let mut all: Vec<(usize, Result<Heads, TrainError>)> = results.iter().collect();
    all.sort_by_key(|(index, _)| *index);
    std::iter::once(first).chain(all.into_iter().map(|(_, heads)| heads)).collect()
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
        let heads = |at_once: bool, precision| {
            let threads = at_once.then(|| super::threads(2).unwrap());
            let replicas = Replicas { devices: vec![Device::Cpu; 3], threads };
            replicas.forward(&model, &images, precision).unwrap()
        };
        for at_once in [false, true] {
            // The head is a convolution. All replicas must run it in 16 bits, or they could not be joined.
            let kinds: Vec<Kind> = heads(at_once, Precision::Bf16).iter().map(Tensor::kind).collect();
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
