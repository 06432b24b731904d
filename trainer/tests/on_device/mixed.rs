//! Training in mixed precision: losses and gradients are those of double precision within the rounding of 16 bits,
//! everything that is kept has 32, and a step that overflows changes nothing but the scale. float16 is
//! tested on the CPU as well, on which no run uses it.

use tch::{Kind, Tensor};
use tch_train::{ScalerState, host_waits};
use torch_checkpoint::Value;
use yolo_plan::options::Optimizer as Algorithm;
use yolo_plan::precision::Precision;
use yolo_plan::schedule::StepSettings;
use yolo_trainer::learner::{Ema, Learner, Optimizer};
use yolo_trainer::model::{Model, images_tensor};
use yolo_trainer::precision::why_not_fp16;

use crate::compare::{Closest, device, double, largest};
use crate::models::{in_double, model, twin};
use crate::reference_loss::{SETTINGS, items, total};
use crate::scenes::{Scenes, images_in_double};

/// A format, and how far it may be from double precision.
struct Mixed {
    precision: Precision,
    /// Of the loss, relative to it.
    loss: f64,
    /// All gradients together have at least this cosine with the exact ones.
    cosine: f64,
    /// Of the length of all gradients together, relative to it.
    length: f64,
}

/// With the pretrained yolov5n, bfloat16 had cosines of 0.973 on a CPU and 0.981 on an H200, and lengths of 1.003 and 0.944;
/// float16 had 0.999 and 0.987 on the H200.
const MIXED: [Mixed; 2] = [
    Mixed { precision: Precision::Fp16, loss: 0.01, cosine: 0.98, length: 0.05 },
    Mixed { precision: Precision::Bf16, loss: 0.05, cosine: 0.95, length: 0.1 },
];

/// A scale with which gradients cannot overflow. The first one is larger, and finds out by skipping steps.
const SCALE: f64 = 64.0;

pub(crate) fn learner(model: Model, algorithm: Algorithm, precision: Precision) -> Learner {
    let optimizer = Optimizer::new(algorithm, model.state(), 0.01, 0.9, 5e-4).unwrap();
    let ema = Ema::new(&model).unwrap();
    let learner = Learner::new(model, optimizer, Some(ema), SETTINGS, None, false).unwrap();
    let mut learner = learner.with_precision(precision).unwrap();
    learner.restore_scaler(ScalerState { scale: SCALE, growth_tracker: 0 }).unwrap();
    learner
}

/// All gradients in one tensor, on the CPU in double precision.
fn gradients(model: &Model) -> Tensor {
    let all: Vec<Tensor> =
        model.state().parameters().map(|entry| double(&entry.tensor.grad()).reshape([-1])).collect();
    Tensor::cat(&all, 0)
}

/// The scale and the good steps since it changed; `None` without a scaler.
fn scale(learner: &Learner) -> Option<(f64, i64)> {
    let state = learner.scaler_state().unwrap();
    Some((state.get("scale")?.as_f64()?, state.get("_growth_tracker")?.as_i64()?))
}

/// Everything that a step may change, as it is in a checkpoint.
fn kept(learner: &Learner) -> (Vec<Vec<f64>>, Value) {
    let values = |tensor: &Tensor| Vec::try_from(double(tensor).reshape([-1])).unwrap();
    let weights = learner.model().state().parameters().map(|entry| values(&entry.tensor)).collect();
    (weights, learner.optimizer().state_dict().unwrap())
}

#[test]
fn losses_and_gradients_are_those_of_double_precision() {
    let cpu = model();
    let batch = Scenes::new(4, cpu.spec().nc).batch();
    let exact = in_double(&cpu);
    let heads = exact.forward_train(&images_in_double(&batch)).unwrap();
    let want = items(&heads, &batch.targets, exact.anchors().unwrap());
    total(&want, batch.items.len()).backward();
    let want_gradients = gradients(&exact);

    for Mixed { precision, loss, cosine: least, length } in MIXED {
        let mut learner = learner(twin(&cpu, device()), Algorithm::Sgd, precision);
        let heads = learner.forward(&images_tensor(&batch, device()).unwrap()).unwrap();
        let kind = if precision == Precision::Fp16 { Kind::Half } else { Kind::BFloat16 };
        assert!(
            heads.iter().all(|head| head.kind() == kind),
            "{precision}: the network runs in another format"
        );
        let got = learner.loss_of(&heads, &batch.targets).unwrap();
        assert_eq!((got.total.kind(), got.items.kind()), (Kind::Float, Kind::Float));
        learner.add_gradients(&got).unwrap();

        let mut closest = Closest::default();
        closest.check(&format!("loss items in {precision}"), &got.items, &want, loss * largest(&want));
        closest.print();
        let gradients = gradients(learner.model());
        let product = (&gradients * &want_gradients).sum(Kind::Double);
        let cosine = (product / gradients.norm() / want_gradients.norm()).double_value(&[]);
        let longer = (gradients.norm() / want_gradients.norm()).double_value(&[]);
        println!(
            "{precision}: the cosine of the gradients is {cosine:.5}, they are {longer:.3} times as long"
        );
        assert!(cosine > least, "{precision}: the cosine of the gradients is {cosine}");
        let scale = scale(&learner).map_or(1.0, |(scale, _)| scale);
        assert!(
            (longer / scale - 1.0).abs() < length,
            "{precision}: {longer} times as long, with scale {scale}"
        );

        let _norm = learner.update().unwrap();
        let ema = learner.ema().unwrap().model();
        for entry in learner.model().state().iter().chain(ema.state()) {
            assert!(!matches!(entry.tensor.kind(), Kind::Half | Kind::BFloat16), "{}", entry.name);
        }
    }
}

#[test]
fn a_step_that_overflows_changes_nothing_but_the_scale() {
    let cpu = model();
    let batch = Scenes::new(2, cpu.spec().nc).batch();
    let images = images_tensor(&batch, device()).unwrap();
    for algorithm in [Algorithm::Sgd, Algorithm::Adam, Algorithm::AdamW] {
        let mut learner = learner(twin(&cpu, device()), algorithm, Precision::Fp16);
        let train = |learner: &mut Learner, overflow: Option<f64>| {
            let _items = learner.backward(&images, &batch.targets).unwrap();
            if let Some(value) = overflow {
                let parameter = learner.model().state().parameters().nth(20).unwrap();
                let _ = parameter.tensor.grad().reshape([-1]).narrow(0, 1, 1).fill_(value);
            }
            learner.update().unwrap().double_value(&[])
        };
        assert!(train(&mut learner, None).is_finite());
        assert_eq!(scale(&learner), Some((SCALE, 1)), "{algorithm:?}");

        let before = kept(&learner);
        for (bad, halved) in [(f64::INFINITY, SCALE / 2.0), (f64::NAN, SCALE / 4.0)] {
            assert!(!train(&mut learner, Some(bad)).is_finite());
            assert!(kept(&learner) == before, "{algorithm:?}: {bad} changed something");
            assert_eq!(scale(&learner), Some((halved, 0)), "{algorithm:?}");
            assert_eq!(largest(&gradients(learner.model())), 0.0, "a bad gradient must not stay");
        }
        // As in YOLOv5, the average follows whether or not a step was taken.
        assert_eq!(learner.ema().unwrap().updates(), 3);

        assert!(train(&mut learner, None).is_finite());
        assert!(kept(&learner).0 != before.0, "{algorithm:?}: training does not go on");
        let state = learner.optimizer().state_dict().unwrap();
        let (_, first) = &state.get("state").unwrap().as_entries().unwrap()[0];
        let steps = first.get("step").and_then(Value::as_tensor).map(|steps| steps.to_f64());
        assert!(steps.is_none_or(|steps| steps == [2.0]), "{algorithm:?} counts skipped steps");
    }
}

#[test]
fn the_scale_doubles_after_its_interval_of_good_steps() {
    let cpu = model();
    let batch = Scenes::new(1, cpu.spec().nc).batch();
    let images = images_tensor(&batch, device()).unwrap();
    let mut learner = learner(twin(&cpu, device()), Algorithm::Sgd, Precision::Fp16);
    learner.restore_scaler(ScalerState { scale: SCALE, growth_tracker: 1998 }).unwrap();
    for want in [(SCALE, 1999), (2.0 * SCALE, 0), (2.0 * SCALE, 1)] {
        let _items = learner.backward(&images, &batch.targets).unwrap();
        let _norm = learner.update().unwrap();
        assert_eq!(scale(&learner), Some(want));
    }
}

#[test]
fn a_step_does_not_wait_for_the_device() {
    let cpu = model();
    let batch = Scenes::new(2, cpu.spec().nc).batch();
    let images = images_tensor(&batch, device()).unwrap();
    let settings = StepSettings { accumulate: 1, lr_bias: 0.01, lr_other: 0.01, momentum: 0.9 };
    for precision in [Precision::Fp32, Precision::Fp16, Precision::Bf16] {
        let mut learner = learner(twin(&cpu, device()), Algorithm::Sgd, precision);
        let mut last = -1;
        // Tests that run at the same time are counted too, and the first step initializes libraries.
        let waits = (0..5).map(|number| {
            let before = host_waits().unwrap();
            let _items = learner.step(&images, &batch.targets, &settings, number, &mut last).unwrap();
            host_waits().unwrap() - before
        });
        assert_eq!(waits.min(), Some(0), "{precision}");
    }
}

#[test]
fn this_device_computes_in_float16() {
    assert_eq!(why_not_fp16(&twin(&model(), device())).unwrap(), None);
}
