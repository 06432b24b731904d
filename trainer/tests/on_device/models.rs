//! The model under test, and copies of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tch::{Device, Kind, Tensor, no_grad};
use yolo_base::env::YOLO_TEST_WEIGHTS;
use yolo_plan::model::ModelSpec;
use yolo_trainer::model::{Model, Role};

use crate::compare::device;
use crate::scenes::CLASSES;

/// The threads of a process share one generator, and tests run in parallel.
pub(crate) fn drawing() -> MutexGuard<'static, ()> {
    static GENERATOR: Mutex<()> = Mutex::new(());
    let _ = device();
    GENERATOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The model under test on the CPU: that of the weights file that `YOLO_TEST_WEIGHTS` names, or a yolov5n
/// with random weights, which are always the same.
pub(crate) fn model() -> Model {
    let _drawing = drawing();
    let Some(path) = std::env::var_os(YOLO_TEST_WEIGHTS) else {
        tch::manual_seed(1);
        let model = Model::new(&ModelSpec::load("yolov5n", CLASSES, None).unwrap(), Device::Cpu).unwrap();
        calm(&model);
        return model;
    };
    let file =
        torch_checkpoint::read(path.as_ref()).unwrap_or_else(|error| panic!("{YOLO_TEST_WEIGHTS}: {error}"));
    let model = Model::from_weights(&file, None, None, Device::Cpu).unwrap();
    let transfer = model.transfer(&file, false).unwrap();
    assert_eq!(transfer.matched, transfer.total, "{YOLO_TEST_WEIGHTS}: {}", transfer.summary());
    model
}

/// Makes activations a quarter as large, so that activation functions work in their nearly linear part. The
/// rounding errors of a random network grow from layer to layer otherwise, and the gradients of its first
/// layer are off ten times as much.
fn calm(model: &Model) {
    no_grad(|| {
        for entry in model.state().parameters().filter(|entry| entry.role == Role::NormWeight) {
            let _ = entry.tensor.shallow_clone().fill_(0.25);
        }
    });
}

/// A model of the same kind with the same tensors on `device`.
pub(crate) fn twin(of: &Model, device: Device) -> Model {
    let twin = {
        let _drawing = drawing();
        Model::new(of.spec(), device).unwrap()
    };
    no_grad(|| {
        for (own, theirs) in twin.state().iter().zip(of.state()) {
            own.tensor.shallow_clone().copy_(&theirs.tensor);
        }
    });
    twin
}

/// The model with the same tensors in double precision on the CPU.
pub(crate) fn in_double(of: &Model) -> Model {
    let twin = twin(of, Device::Cpu);
    no_grad(|| {
        for entry in twin.state().iter().filter(|entry| entry.tensor.is_floating_point()) {
            // Replaces the data in place, so that the module that shares the tensor sees it too.
            entry.tensor.shallow_clone().set_data(&entry.tensor.to_kind(Kind::Double));
        }
    });
    twin
}

/// Makes a random model decisive: its objectness and class scores then range from 0 to 1, as those of a
/// trained model do. With random weights all scores are nearly equal, so that rounding decides which box
/// wins. A model of `YOLO_TEST_WEIGHTS` stays as it is.
pub(crate) fn sharpen(model: &Model, images: &Tensor) {
    if std::env::var_os(YOLO_TEST_WEIGHTS).is_some() {
        return;
    }
    no_grad(|| {
        // The statistics of these images, of which one pass takes over 3 %. With those that a new model starts
        // from, activations fade from layer to layer.
        let statistics = || model.state().buffers().filter(|entry| entry.name.contains(".running_"));
        statistics().for_each(|entry| drop(entry.tensor.shallow_clone().zero_()));
        let _ = model.forward_train(images).unwrap();
        statistics().for_each(|entry| drop(entry.tensor.shallow_clone().g_div_scalar_(0.03)));
        let (_, heads) = model.forward_eval(images).unwrap();
        for (level, head) in heads.iter().enumerate() {
            let of = |name: &str| {
                let suffix = format!(".m.{level}.{name}");
                let mut all = model.state().parameters();
                all.find(|entry| entry.name.ends_with(&suffix)).unwrap().tensor.shallow_clone()
            };
            let cells = &[0i64, 2, 3][..];
            let mean = head.mean_dim(cells, false, Kind::Float);
            let spread = mean.full_like(2.0);
            let _ = spread.narrow(1, 0, 4).fill_(0.5);
            let factor = spread / head.std_dim(cells, true, false);
            // Numbers of objectness and classes vary around these by 2, those of boxes around 0 by a half.
            let around = mean.zeros_like();
            let _ = around.narrow(1, 4, 1).fill_(-2.5);
            let _ = around.narrow(1, 5, around.size()[1] - 5).fill_(-1.0);
            let (mut weight, mut bias) = (of("weight"), of("bias"));
            bias.copy_(&(around.reshape([-1]) - factor.reshape([-1]) * (mean.reshape([-1]) - &bias)));
            let _ = weight.g_mul_(&factor.reshape([-1, 1, 1, 1]));
        }
    });
}
