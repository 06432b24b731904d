//! One batch of images forward and backward.

use yolo_trainer::loss::DetectionLoss;
use yolo_trainer::model::images_tensor;

use crate::compare::{Closest, device, largest};
use crate::models::{in_double, model, twin};
use crate::reference_loss::{SETTINGS, items, total};
use crate::scenes::{Scenes, images_in_double};

/// Largest difference of the loss, relative to it.
const LOSS: f64 = 1e-5;

/// Largest difference of a gradient, relative to the largest value of its tensor.
const GRADIENT: f64 = 1e-3;

/// The same for running statistics: of a variance, and of a mean relative to a standard deviation.
const STATISTICS: f64 = 1e-5;

#[test]
fn loss_and_gradients_agree() {
    let cpu = model();
    let batch = Scenes::new(4, cpu.spec().nc).batch();
    assert!(batch.targets.len() >= 8, "only {} objects", batch.targets.len());

    let own = twin(&cpu, device());
    let loss = DetectionLoss::new(own.anchors().unwrap(), own.spec().nc, SETTINGS, device()).unwrap();
    let heads = own.forward_train(&images_tensor(&batch, device()).unwrap()).unwrap();
    let got = loss.compute(&heads, &batch.targets).unwrap();
    got.total.backward();

    let exact = in_double(&cpu);
    let heads = exact.forward_train(&images_in_double(&batch)).unwrap();
    let want = items(&heads, &batch.targets, exact.anchors().unwrap());
    let want_total = total(&want, batch.items.len());
    want_total.backward();

    let mut closest = Closest::default();
    closest.check("loss", &got.total, &want_total, LOSS * largest(&want_total));
    for (index, name) in (0..).zip(["box loss", "objectness loss", "class loss"]) {
        let (got, want) = (got.items.get(index), want.get(index));
        closest.check(name, &got, &want, LOSS * largest(&want));
    }
    closest.print();

    let mut closest = Closest::default();
    for (own, exact) in own.state().parameters().zip(exact.state().parameters()) {
        let (got, want) = (own.tensor.grad(), exact.tensor.grad());
        closest.check(&format!("gradient of {}", own.name), &got, &want, GRADIENT * largest(&want));
    }
    closest.print();

    let mut closest = Closest::default();
    let exact_state = exact.state();
    for (own, exact) in own.state().buffers().zip(exact_state.buffers()) {
        if own.tensor.is_floating_point() {
            let variance = own.name.replace("running_mean", "running_var");
            let scale = largest(exact_state.get(&variance).unwrap());
            let scale = if variance == own.name { scale } else { scale.sqrt() };
            closest.check(&own.name, &own.tensor, &exact.tensor, STATISTICS * scale);
        } else {
            assert_eq!(own.tensor.int64_value(&[]), exact.tensor.int64_value(&[]), "{}", own.name);
        }
    }
    closest.print();
}
