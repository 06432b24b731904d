//! One process with several devices, here the CPU twice: replicas of the model on parts of the batch (`--parallel
//! dp`), and a model whose layers are spread over the devices (`--parallel model`).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

mod support;

use support::alone;
use tch::{Device, Kind, Tensor, no_grad};
use yolo_plan::model::ModelSpec;
use yolo_plan::options::Optimizer as Algorithm;
use yolo_plan::schedule::StepSettings;
use yolo_trainer::learner::{Ema, Learner, Optimizer};
use yolo_trainer::loss::LossSettings;
use yolo_trainer::model::{Model, State};

const LOSS: LossSettings = LossSettings { box_gain: 0.05, class_gain: 0.5, ..LossSettings::NEUTRAL };
const TWO: [Device; 2] = [Device::Cpu; 2];
/// Side of the images.
const SIDE: i64 = 96;

/// The same model each time, with weights that need gradients.
fn model() -> Model {
    let _drawing = alone();
    tch::manual_seed(7);
    Model::new(&ModelSpec::load("yolov5n", 2, None).unwrap(), Device::Cpu).unwrap()
}

fn learner(model: Model, algorithm: Algorithm) -> Learner {
    let optimizer = Optimizer::new(algorithm, model.state(), 0.01, 0.9, 5e-4).unwrap();
    let ema = Ema::new(&model).unwrap();
    Learner::new(model, optimizer, Some(ema), LOSS, None, false).unwrap()
}

fn images(batch: i64, count: i64) -> Tensor {
    let _drawing = alone();
    tch::manual_seed(1000 + batch);
    Tensor::rand([count, 3, SIDE, SIDE], (Kind::Float, Device::Cpu))
}

/// One object in each image, of sizes that differ.
fn objects(count: i64) -> Vec<[f32; 6]> {
    let object = |image: i64| [image as f32, (image % 2) as f32, 0.4, 0.6, 0.2 + 0.1 * image as f32, 0.3];
    (0..count).map(object).collect()
}

/// Equal to the last bit.
#[track_caller]
fn assert_same(got: &State, want: &State) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got.name, want.name);
        assert!(got.tensor.equal(&want.tensor), "{} differs", got.name);
    }
}

/// The loss items and gradients of a batch whose parts run through models of their own.
fn by_hand(parts: &[Model], images: &Tensor, targets: &[[f32; 6]]) -> (Tensor, Vec<Tensor>) {
    let pieces = images.chunk(parts.len() as i64, 0);
    let heads: Vec<Vec<Tensor>> =
        parts.iter().zip(&pieces).map(|(model, part)| model.forward_train(part).unwrap()).collect();
    let level = |level: usize| Tensor::cat(&heads.iter().map(|heads| &heads[level]).collect::<Vec<_>>(), 0);
    let heads: Vec<Tensor> = (0..heads[0].len()).map(level).collect();
    let loss = learner(model(), Algorithm::Sgd).loss().compute(&heads, targets).unwrap();
    loss.total.backward();
    let mut sums: Vec<Tensor> =
        parts[0].state().parameters().map(|entry| entry.tensor.grad().copy()).collect();
    for part in &parts[1..] {
        for (sum, entry) in sums.iter_mut().zip(part.state().parameters()) {
            *sum += entry.tensor.grad();
        }
    }
    (loss.items, sums)
}

#[test]
fn replicas_have_the_gradients_of_the_parts_and_the_statistics_of_the_first() {
    let (images, targets) = (images(0, 4), objects(4));
    let mut replicas = learner(model(), Algorithm::Sgd).with_replicas(TWO.to_vec()).unwrap();
    let items = replicas.backward(&images, &targets).unwrap();

    let parts = [model(), model()];
    let (want_items, want) = by_hand(&parts, &images, &targets);
    assert!(items.equal(&want_items), "{items:?} {want_items:?}");
    for (entry, want) in replicas.model().state().parameters().zip(&want) {
        let off = support::relative(&entry.tensor.grad(), want);
        assert!(off < 1e-5, "the gradient of {} is off by {off:e}", entry.name);
    }
    let buffers = |model: &Model| -> Vec<(String, Tensor)> {
        model.state().buffers().map(|entry| (entry.name.clone(), entry.tensor.copy())).collect()
    };
    for ((name, own), (_, first)) in buffers(replicas.model()).iter().zip(&buffers(&parts[0])) {
        assert!(own.equal(first), "{name} is not that of the first part");
    }

    // Control: the whole batch has other statistics, so its gradients are others.
    let mut whole = learner(model(), Algorithm::Sgd);
    let _items = whole.backward(&images, &targets).unwrap();
    let farthest = whole
        .model()
        .state()
        .parameters()
        .zip(&want)
        .map(|(entry, want)| support::relative(&entry.tensor.grad(), want))
        .fold(0.0, f64::max);
    assert!(farthest > 1e-2, "statistics of the whole batch change gradients by {farthest:e} only");
}

#[test]
fn accumulated_gradients_of_replicas_are_their_sum_and_a_step_uses_them() {
    let settings = StepSettings { accumulate: 2, lr_bias: 0.01, lr_other: 0.01, momentum: 0.9 };
    let mut replicas = learner(model(), Algorithm::Sgd).with_replicas(TWO.to_vec()).unwrap();
    let mut last_update = -1;
    let targets = objects(4);
    let _items = replicas.step(&images(0, 4), &targets, &settings, 0, &mut last_update).unwrap();
    assert_eq!(last_update, -1);
    assert_eq!(replicas.ema().unwrap().updates(), 0);

    let first = replicas.model().copy().unwrap();
    let _items = replicas.step(&images(1, 4), &targets, &settings, 1, &mut last_update).unwrap();
    assert_eq!((last_update, replicas.ema().unwrap().updates()), (1, 1));
    let moved = replicas.model().state().parameters().zip(first.state().parameters());
    assert!(moved.into_iter().all(|(own, first)| !own.tensor.equal(&first.tensor)), "a weight has not moved");
}

#[test]
fn a_last_batch_with_fewer_images_than_devices_trains() {
    let targets = objects(1);
    let mut replicas = learner(model(), Algorithm::Sgd).with_replicas(vec![Device::Cpu; 3]).unwrap();
    let mut one = learner(model(), Algorithm::Sgd);
    let got = replicas.backward(&images(0, 1), &targets).unwrap();
    assert!(got.equal(&one.backward(&images(0, 1), &targets).unwrap()));
    assert_same(replicas.model().state(), one.model().state());
    // Three images on two devices: two on the first, one on the second.
    let (images, targets) = (images(1, 3), objects(3));
    let mut replicas = learner(model(), Algorithm::Sgd).with_replicas(TWO.to_vec()).unwrap();
    let items = replicas.backward(&images, &targets).unwrap();
    assert!(items.equal(&by_hand(&[model(), model()], &images, &targets).0));
}

#[test]
fn frozen_layers_stay_frozen_in_replicas() {
    let model = model();
    let frozen = model.freeze(&[0, 1, 2]).unwrap();
    let before = model.copy().unwrap();
    let mut replicas = learner(model, Algorithm::AdamW).with_replicas(TWO.to_vec()).unwrap();
    let _items = replicas.backward(&images(0, 4), &objects(4)).unwrap();
    let _norm = replicas.update().unwrap();
    for (own, before) in replicas.model().state().parameters().zip(before.state().parameters()) {
        assert_eq!(own.tensor.equal(&before.tensor), frozen.contains(&own.name), "{}", own.name);
    }
}

#[test]
fn a_spread_model_trains_as_on_one_device() {
    let layers = model().spec().layers.len();
    for algorithm in [Algorithm::Sgd, Algorithm::Adam] {
        let spread = model().spread_over(&vec![Device::Cpu; layers]).unwrap();
        let (mut spread, mut one) = (learner(spread, algorithm), learner(model(), algorithm));
        for step in 0..3 {
            let (images, targets) = (images(step, 2), objects(2));
            let got = spread.backward(&images, &targets).unwrap();
            let want = one.backward(&images, &targets).unwrap();
            assert!(got.equal(&want), "step {step}");
            assert!(spread.update().unwrap().equal(&one.update().unwrap()), "the norm of step {step}");
        }
        assert_same(spread.model().state(), one.model().state());
        assert_same(spread.ema().unwrap().model().state(), one.ema().unwrap().model().state());
        let saved = |learner: &Learner| learner.optimizer().state_dict().unwrap();
        assert_eq!(saved(&spread), saved(&one));
        let decoded = |learner: &Learner| {
            let fused = learner.ema().unwrap().model().fuse().unwrap();
            no_grad(|| fused.forward_eval(&images(9, 1)).unwrap().0)
        };
        assert!(decoded(&spread).equal(&decoded(&one)), "the averaged models detect differently");
    }
}

#[test]
fn each_layer_needs_a_device() {
    let model = model();
    let error = model.spread_over(&TWO).unwrap_err().to_string();
    assert_eq!(error, "2 devices are given for 25 layers");
    let frozen = model.freeze(&[0, 3]).unwrap();
    let spread = model.spread_over(&[Device::Cpu; 25]).unwrap();
    for entry in spread.state().parameters() {
        assert_eq!(entry.tensor.requires_grad(), !frozen.contains(&entry.name), "{}", entry.name);
    }
    let fused = model.fuse().unwrap().placed_like(&spread).unwrap();
    assert!(fused.is_fused());
}
