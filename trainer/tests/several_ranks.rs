//! Training on several ranks: gradients are exchanged only when an optimizer step is due, with the
//! sums of an exchange after each batch; no rank waits for another whose batch has no target; and ranks
//! with unequal shares of a batch have the gradients of one rank with the whole batch.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use std::rc::Rc;

use support::ranks::{on_ranks, on_two_ranks};
use support::relative;
use tch::{Device, Kind, Tensor, no_grad};
use tch_distributed::ProcessGroup;
use yolo_plan::model::ModelSpec;
use yolo_plan::options::Optimizer as Algorithm;
use yolo_plan::precision::Precision;
use yolo_plan::schedule::StepSettings;
use yolo_trainer::learner::{Learner, Optimizer};
use yolo_trainer::loss::LossSettings;
use yolo_trainer::model::Model;

type Targets = Vec<[f32; 6]>;

const LOSS: LossSettings = LossSettings { box_gain: 0.05, class_gain: 0.5, ..LossSettings::NEUTRAL };
/// Sums in another order.
const ROUNDING: f64 = 1e-4;
/// SyncBatchNorm also computes variances in another way than the normalization of one rank.
const SYNCHRONIZED: f64 = 2e-3;
/// Side of the images, and images per batch: enough values for the last normalizations.
const SIDE: i64 = 160;
const IMAGES: i64 = 2;

/// The model has the same weights on every rank.
fn learner(group: Option<&Rc<ProcessGroup>>, frozen: &[usize]) -> Learner {
    tch::manual_seed(7);
    let model = Model::new(&ModelSpec::load("yolov5n", 2, None).unwrap(), Device::Cpu).unwrap();
    model.freeze(frozen).unwrap();
    let optimizer = Optimizer::new(Algorithm::Sgd, model.state(), 0.01, 0.9, 0.0).unwrap();
    Learner::new(model, optimizer, None, LOSS, group, false).unwrap()
}

/// The images of a rank in a batch.
fn images(rank: usize, batch: i64) -> Tensor {
    tch::manual_seed(1000 * (rank as i64 + 1) + batch);
    Tensor::rand([IMAGES, 3, SIDE, SIDE], (Kind::Float, Device::Cpu))
}

/// One object of this relative size in each image.
fn objects(size: f32) -> Targets {
    (0..IMAGES).map(|image| [image as f32, (image % 2) as f32, 0.4, 0.6, size, size]).collect()
}

fn gradients(learner: &Learner) -> Vec<(String, Tensor)> {
    let trained = learner.model().state().parameters().filter(|entry| entry.tensor.requires_grad());
    trained.map(|entry| (entry.name.clone(), entry.tensor.grad().copy())).collect()
}

fn compare(what: &str, got: &[(String, Tensor)], want: &[(String, Tensor)]) {
    assert_eq!(got.len(), want.len());
    for ((name, got), (_, want)) in got.iter().zip(want) {
        let off = relative(got, want);
        assert!(off < ROUNDING, "{what}: the gradient of {name} is off by {off:e}");
    }
}

#[test]
fn accumulated_gradients_are_those_of_an_exchange_after_each_batch() {
    on_two_ranks("accumulated_gradients_are_those_of_an_exchange_after_each_batch", |rank, group| {
        let (mut each, mut last) = (learner(Some(group), &[]), learner(Some(group), &[]));
        // The reducer rebuilds its buckets in the second step, while they hold gradients.
        for step in 0..3 {
            for batch in 0..3 {
                let images = images(rank, 3 * step + batch);
                let targets = objects(0.2 + 0.1 * rank as f32);
                let exchanged = each.backward(&images, &targets).unwrap();
                let own = if batch < 2 {
                    last.accumulate(&images, &targets).unwrap()
                } else {
                    last.backward(&images, &targets).unwrap()
                };
                assert_eq!(exchanged, own, "the loss of a rank");
            }
            compare(&format!("step {step}"), &gradients(&last), &gradients(&each));
            let _norms = (each.update().unwrap(), last.update().unwrap());
            // Both go on from the same weights, so that rounding does not add up.
            no_grad(|| {
                for (to, from) in last.model().state().iter().zip(each.model().state()) {
                    to.tensor.shallow_clone().copy_(&from.tensor);
                }
            });
        }
    });
}

#[test]
fn a_step_exchanges_only_when_it_is_due() {
    on_two_ranks("a_step_exchanges_only_when_it_is_due", |rank, group| {
        let mut learner = learner(Some(group), &[]);
        let settings = StepSettings { accumulate: 2, lr_bias: 0.01, lr_other: 0.01, momentum: 0.9 };
        let mut last_update = -1;
        // Rank 1 makes its first step when rank 0 has finished its own, so they exchange nothing.
        if rank == 1 {
            group.barrier(None).unwrap();
        }
        let _items = learner.step(&images(rank, 0), &objects(0.3), &settings, 0, &mut last_update).unwrap();
        assert_eq!(last_update, -1);
        if rank == 0 {
            group.barrier(None).unwrap();
        }
        let _items = learner.step(&images(rank, 1), &objects(0.3), &settings, 1, &mut last_update).unwrap();
        assert_eq!(last_update, 1);
        for entry in learner.model().state().parameters() {
            let of_rank_0 = entry.tensor.detach().copy();
            group.broadcast(&[&of_rank_0], 0).unwrap();
            assert!(of_rank_0.equal(&entry.tensor), "{} differs between the ranks", entry.name);
        }
    });
}

#[test]
fn gradients_of_an_interrupted_nominal_batch_are_shared_once() {
    on_two_ranks("gradients_of_an_interrupted_nominal_batch_are_shared_once", |rank, group| {
        let (mut each, mut cut) = (learner(Some(group), &[]), learner(Some(group), &[]));
        for batch in 0..2 {
            let _items = each.backward(&images(rank, batch), &objects(0.3)).unwrap();
            let _items = cut.accumulate(&images(rank, batch), &objects(0.3)).unwrap();
        }
        for _ in 0..2 {
            cut.share_gradients().unwrap();
            compare("interrupted", &gradients(&cut), &gradients(&each));
        }
        // A run that goes on afterwards counts them once.
        let _items = each.backward(&images(rank, 2), &objects(0.3)).unwrap();
        let _items = cut.backward(&images(rank, 2), &objects(0.3)).unwrap();
        compare("continued", &gradients(&cut), &gradients(&each));
    });
}

/// Trains on several ranks with these targets of each, and compares with the sum of the gradients that
/// each rank computes alone.
fn trains_on(rank: usize, group: &Rc<ProcessGroup>, frozen: &[usize], targets: &dyn Fn(usize) -> Targets) {
    let mut together = learner(Some(group), frozen);
    for step in 0..3 {
        let mut alone = learner(None, frozen);
        no_grad(|| {
            for (to, from) in alone.model().state().iter().zip(together.model().state()) {
                to.tensor.shallow_clone().copy_(&from.tensor);
            }
        });
        let _items = alone.backward(&images(rank, step), &targets(rank)).unwrap();
        let want = gradients(&alone);
        for (_, gradient) in &want {
            group.all_reduce(gradient).unwrap();
        }
        let _items = together.backward(&images(rank, step), &targets(rank)).unwrap();
        compare(&format!("step {step}"), &gradients(&together), &want);
        let _norm = together.update().unwrap();
    }
}

#[test]
fn a_rank_whose_batch_is_background_trains_on() {
    on_two_ranks("a_rank_whose_batch_is_background_trains_on", |rank, group| {
        trains_on(rank, group, &[], &|rank| if rank == 1 { Targets::new() } else { objects(0.3) });
        trains_on(rank, group, &[], &|_| Targets::new());
        trains_on(rank, group, &[0, 1, 24], &|rank| if rank == 0 { Targets::new() } else { objects(0.3) });
    });
}

#[test]
fn a_rank_that_leaves_a_scale_without_target_trains_on() {
    // Objects of 8 pixels are for the finest scale only, those of 160 for the coarsest only.
    on_ranks("a_rank_that_leaves_a_scale_without_target_trains_on", 3, |rank, group| {
        trains_on(rank, group, &[], &|rank| match rank {
            0 => objects(0.05),
            1 => objects(1.0),
            _ => Targets::new(),
        });
    });
}

/// Images of a batch in which all have the same two objects, so that the means over the objects of each
/// rank, weighted by its images, are the mean over all objects.
fn alike(images: i64) -> Targets {
    let objects = [[0.0, 0.4, 0.6, 0.3, 0.2], [1.0, 0.7, 0.3, 0.1, 0.1]];
    (0..images).flat_map(|image| objects.map(|[c, x, y, w, h]| [image as f32, c, x, y, w, h])).collect()
}

#[test]
fn unequal_shares_have_the_gradients_of_one_rank_with_the_whole_batch() {
    on_two_ranks("unequal_shares_have_the_gradients_of_one_rank_with_the_whole_batch", |rank, group| {
        const SHARES: [i64; 2] = [5, 2];
        let new = |group: Option<&Rc<ProcessGroup>>| {
            tch::manual_seed(7);
            let model = Model::new(&ModelSpec::load("yolov5n", 2, None).unwrap(), Device::Cpu).unwrap();
            let optimizer = Optimizer::new(Algorithm::Sgd, model.state(), 0.01, 0.9, 0.0).unwrap();
            // The whole batch normalizes over all images, so the ranks do too.
            Learner::new(model, optimizer, None, LOSS, group, group.is_some()).unwrap()
        };
        tch::manual_seed(11);
        let whole = Tensor::rand([7, 3, SIDE, SIDE], (Kind::Float, Device::Cpu));
        let (mut one, mut several) = (new(None), new(Some(group)));
        let _items = one.backward(&whole, &alike(7)).unwrap();
        let first: i64 = SHARES[..rank].iter().sum();
        let own = whole.narrow(0, first, SHARES[rank]);
        let _items = several.backward(&own, &alike(SHARES[rank])).unwrap();
        // Control: a mean over the ranks that does not count images is another one.
        let mut unweighted = new(Some(group));
        let heads = unweighted.forward(&own).unwrap();
        let mut loss = unweighted.loss().compute(&heads, &alike(SHARES[rank])).unwrap();
        loss.total = loss.total * 3.5 / SHARES[rank] as f64;
        unweighted.add_gradients(&loss).unwrap();
        let off = |(got, want): (&(String, Tensor), &(String, Tensor))| relative(&got.1, &want.1);
        let farthest =
            |learner: &Learner| gradients(learner).iter().zip(&gradients(&one)).map(off).fold(0.0, f64::max);
        let (several, unweighted) = (farthest(&several), farthest(&unweighted));
        println!("weighted by images {several:e}, unweighted {unweighted:e}");
        assert!(several < SYNCHRONIZED, "weighted by images, the gradients are off by {several:e}");
        assert!(unweighted > 20.0 * several, "unweighted, they are off by only {unweighted:e}");
    });
}

#[test]
fn an_overflow_on_one_rank_skips_the_step_on_all() {
    on_two_ranks("an_overflow_on_one_rank_skips_the_step_on_all", |rank, group| {
        let mut learner = learner(Some(group), &[]).with_precision(Precision::Fp16).unwrap();
        let scale =
            |learner: &Learner| learner.scaler_state().unwrap().get("scale").unwrap().as_f64().unwrap();
        let weights = |learner: &Learner| -> Vec<Tensor> {
            learner.model().state().parameters().map(|entry| entry.tensor.detach().copy()).collect()
        };
        let mut train = |overflows: bool| {
            let (scale_before, weights_before) = (scale(&learner), weights(&learner));
            let _items = learner.accumulate(&images(rank, 0), &objects(0.3)).unwrap();
            if overflows && rank == 1 {
                let first = learner.model().state().parameters().next().unwrap();
                let _ = first.tensor.grad().fill_(f64::INFINITY);
            }
            let _norm = learner.update().unwrap();
            let moved = weights(&learner) != weights_before;
            (moved, scale(&learner) / scale_before)
        };
        // Real gradients may overflow with the first scale, which is what it is for.
        while train(false) == (false, 0.5) {}
        assert_eq!(train(true), (false, 0.5), "rank {rank} with an overflow on rank 1");
        assert_eq!(train(false), (true, 1.0), "rank {rank} afterwards");
        for weights in weights(&learner) {
            let of_rank_0 = weights.copy();
            group.broadcast(&[&of_rank_0], 0).unwrap();
            assert!(of_rank_0.equal(&weights), "the ranks have other weights");
        }
    });
}
