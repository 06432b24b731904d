//! Training steps with libtorch's deterministic algorithms, with which every run trains unless it asks for others: equal
//! steps give equal bits, and none waits for the device. On a GPU these are other kernels than those of the other tests.

use tch_train::{Determinism, host_waits, set_determinism};
use yolo_plan::options::Optimizer as Algorithm;
use yolo_plan::precision::Precision;
use yolo_plan::schedule::StepSettings;
use yolo_trainer::learner::Learner;
use yolo_trainer::model::{Model, images_tensor};
use yolo_trainer::tensor_io::tensor_data;

use crate::compare::device;
use crate::mixed::learner;
use crate::models::{model, twin};
use crate::scenes::Scenes;

/// Steps of a run. The first one initializes libraries.
const STEPS: i64 = 3;
/// The runs of which one must not wait: tests that run at the same time are counted too.
const RUNS: usize = 5;

/// Deterministic algorithms until this is dropped. They concern the whole process; to the tests that run at the same
/// time they make no difference, because these allow for rounding.
struct Deterministic;

impl Deterministic {
    /// As a rank selects them.
    fn select() -> Self {
        set_determinism(Determinism::Warn).unwrap();
        Self
    }
}

impl Drop for Deterministic {
    fn drop(&mut self) {
        let _ = set_determinism(Determinism::Off);
    }
}

/// Everything that a step changes in the model and its average, as it is in a checkpoint.
fn kept(learner: &Learner) -> Vec<Vec<u8>> {
    let average = learner.ema().unwrap().model();
    let all = learner.model().state().iter().chain(average.state());
    all.map(|entry| tensor_data(&entry.tensor).unwrap().bytes.to_vec()).collect()
}

/// What a run of some steps ends with, and how often the host waited after the first step.
fn run(cpu: &Model, scenes: &Scenes, precision: Precision) -> (Vec<Vec<u8>>, u64) {
    let batch = scenes.batch();
    let images = images_tensor(&batch, device()).unwrap();
    let settings = StepSettings { accumulate: 1, lr_bias: 0.01, lr_other: 0.01, momentum: 0.9 };
    let mut learner = learner(twin(cpu, device()), Algorithm::Sgd, precision);
    let (mut last, mut before) = (-1, 0);
    for number in 0..STEPS {
        let _items = learner.step(&images, &batch.targets, &settings, number, &mut last).unwrap();
        if number == 0 {
            before = host_waits().unwrap();
        }
    }
    let waits = host_waits().unwrap() - before;
    (kept(&learner), waits)
}

#[test]
fn equal_steps_give_equal_bits_and_do_not_wait() {
    let _ = device();
    let _deterministic = Deterministic::select();
    let cpu = model();
    let scenes = Scenes::new(2, cpu.spec().nc);
    let all = [Precision::Fp32, Precision::Fp16, Precision::Bf16];
    // The CPU computes in 16 bits slowly, and has no algorithms to choose from.
    let precisions = if device().is_cuda() { &all[..] } else { &all[..1] };
    for &precision in precisions {
        let (first, waits) = run(&cpu, &scenes, precision);
        let (second, more) = run(&cpu, &scenes, precision);
        let differ = first.iter().zip(&second).filter(|(one, other)| one != other).count();
        assert_eq!(differ, 0, "{precision}: so many of {} tensors differ after equal steps", first.len());
        let mut fewest = waits.min(more);
        for _ in 2..RUNS {
            if fewest > 0 {
                fewest = fewest.min(run(&cpu, &scenes, precision).1);
            }
        }
        assert_eq!(fewest, 0, "{precision}: waits of the host in {} steps", STEPS - 1);
    }
}
