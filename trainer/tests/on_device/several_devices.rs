//! One process with several devices: the device under test and the CPU. Layers that are spread over both, and
//! replicas on both, train as double precision on the CPU does.

use tch::{Device, Tensor};
use yolo_plan::options::Optimizer as Algorithm;
use yolo_trainer::learner::{Ema, Learner, Optimizer};
use yolo_trainer::model::{Model, images_tensor};

use crate::compare::{Closest, device, double, largest};
use crate::models::{in_double, model, twin};
use crate::reference_loss::{SETTINGS, items, total};
use crate::reference_step::{Exact, Rates};
use crate::scenes::{Scenes, images_in_double};

/// Largest difference of a gradient, relative to the largest value of its tensor, and of a weight after a step,
/// relative to its largest change.
const GRADIENT: f64 = 1e-3;

/// Largest difference of the loss, relative to it.
const LOSS: f64 = 1e-5;

/// Rounding of a stored value, relative to the largest of its tensor.
const ROUNDING: f64 = 1e-6;

const RATES: Rates = Rates { lr: [0.05, 0.001, 0.002], momentum: 0.8, weight_decay: 5e-4 };

fn learner(model: Model, algorithm: Algorithm) -> Learner {
    let Rates { lr, momentum, weight_decay } = RATES;
    let mut optimizer = Optimizer::new(algorithm, model.state(), 0.01, momentum, weight_decay).unwrap();
    for (group, lr) in lr.into_iter().enumerate() {
        optimizer.set_lr(group, lr).unwrap();
    }
    let ema = Ema::new(&model).unwrap();
    Learner::new(model, optimizer, Some(ema), SETTINGS, None, false).unwrap()
}

#[test]
fn layers_on_two_devices_take_the_step_of_one() {
    let cpu = model();
    let batch = Scenes::new(4, cpu.spec().nc).batch();
    for (first, second) in [(device(), Device::Cpu), (Device::Cpu, device())] {
        for algorithm in [Algorithm::Sgd, Algorithm::AdamW] {
            let layers = cpu.spec().layers.len();
            let devices: Vec<Device> =
                (0..layers).map(|layer| if layer < layers / 2 { first } else { second }).collect();
            let mut learner = learner(twin(&cpu, first).spread_over(&devices).unwrap(), algorithm);
            let got = learner.backward(&images_tensor(&batch, first).unwrap(), &batch.targets).unwrap();
            let norm = learner.update().unwrap();

            let mut exact = Exact::new(&cpu, algorithm, 0);
            let heads = exact.model.forward_train(&images_in_double(&batch)).unwrap();
            let want = items(&heads, &batch.targets, exact.model.anchors().unwrap());
            total(&want, batch.items.len()).backward();
            let want_norm = exact.update(&RATES);

            let mut closest = Closest::default();
            let what = format!("{algorithm:?} on {first:?} and {second:?}");
            closest.check_anywhere(&format!("{what}: loss"), &got, &want, LOSS * largest(&want));
            let bound = GRADIENT * largest(&want_norm);
            closest.check_anywhere(&format!("{what}: norm"), &norm, &want_norm, bound);
            // The steps of AdamW have the size of the learning rate also where a gradient is mere rounding.
            if algorithm == Algorithm::Sgd {
                let averages = learner.ema().unwrap().model().state();
                for (((own, average), exact), start) in learner
                    .model()
                    .state()
                    .parameters()
                    .zip(averages.parameters())
                    .zip(exact.model.state().parameters())
                    .zip(cpu.state().parameters())
                {
                    let moved = largest(&(exact.tensor.detach() - double(&start.tensor)));
                    let bound = GRADIENT * moved + ROUNDING * largest(&exact.tensor);
                    closest.check_anywhere(&own.name, &own.tensor, &exact.tensor, bound);
                    assert_eq!(average.tensor.device(), own.tensor.device(), "{}", own.name);
                }
            }
            closest.print();
        }
    }
}

#[test]
fn replicas_on_two_devices_have_the_gradients_of_both_parts() {
    let cpu = model();
    let batch = Scenes::new(4, cpu.spec().nc).batch();
    let mut learner =
        learner(twin(&cpu, device()), Algorithm::Sgd).with_replicas(vec![device(), Device::Cpu]).unwrap();
    let got = learner.backward(&images_tensor(&batch, device()).unwrap(), &batch.targets).unwrap();

    let images = images_in_double(&batch);
    let parts = [in_double(&cpu), in_double(&cpu)];
    let heads: Vec<Vec<Tensor>> = parts
        .iter()
        .zip([0, 2])
        .map(|(model, first)| model.forward_train(&images.narrow(0, first, 2)).unwrap())
        .collect();
    let heads: Vec<Tensor> =
        heads[0].iter().zip(&heads[1]).map(|(one, other)| Tensor::cat(&[one, other], 0)).collect();
    let want = items(&heads, &batch.targets, parts[0].anchors().unwrap());
    total(&want, batch.items.len()).backward();

    let mut closest = Closest::default();
    closest.check("loss", &got, &want, LOSS * largest(&want));
    let [first, second] = &parts;
    for ((own, first), second) in
        learner.model().state().parameters().zip(first.state().parameters()).zip(second.state().parameters())
    {
        let want = first.tensor.grad() + second.tensor.grad();
        let bound = GRADIENT * largest(&want);
        closest.check(&format!("gradient of {}", own.name), &own.tensor.grad(), &want, bound);
    }
    closest.print();
}
