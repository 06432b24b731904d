//! Changes to a model around training: frozen layers, weights of another model, half precision, and
//! batch normalization over two ranks.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use std::rc::Rc;

use support::ranks::on_two_ranks;
use support::{alone, relative};
use tch::{Device, Kind, Tensor, no_grad};
use tch_distributed::ProcessGroup;
use torch_checkpoint::Value;
use yolo_plan::model::ModelSpec;
use yolo_plan::options::Optimizer as Algorithm;
use yolo_trainer::learner::{Learner, Optimizer};
use yolo_trainer::loss::LossSettings;
use yolo_trainer::model::{Model, Reshaped};

const LOSS: LossSettings = LossSettings { box_gain: 0.05, class_gain: 0.5, ..LossSettings::NEUTRAL };

fn model(classes: usize) -> Model {
    Model::new(&ModelSpec::load("yolov5n", classes, None).unwrap(), Device::Cpu).unwrap()
}

/// Another model with the same weights.
fn twin(of: &Model) -> Model {
    let twin = model(of.spec().nc);
    no_grad(|| {
        for (own, theirs) in twin.state().iter().zip(of.state()) {
            own.tensor.shallow_clone().copy_(&theirs.tensor);
        }
    });
    twin
}

fn images(count: i64, side: i64) -> Tensor {
    Tensor::rand([count, 3, side, side], (Kind::Float, Device::Cpu))
}

fn learner(model: Model, group: Option<&Rc<ProcessGroup>>, sync_bn: bool) -> Learner {
    let optimizer = Optimizer::new(Algorithm::Sgd, model.state(), 0.01, 0.9, 5e-4).unwrap();
    Learner::new(model, optimizer, None, LOSS, group, sync_bn).unwrap()
}

/// Copies of all tensors of a model.
fn snapshot(model: &Model) -> Vec<(String, Tensor)> {
    model.state().iter().map(|entry| (entry.name.clone(), entry.tensor.detach().copy())).collect()
}

const TARGETS: [[f32; 6]; 2] = [[0.0, 1.0, 0.5, 0.5, 0.4, 0.3], [1.0, 0.0, 0.3, 0.7, 0.2, 0.2]];

#[test]
fn frozen_layers_keep_their_weights_and_update_their_statistics() {
    let _alone = alone();
    for layers in [(0..10).collect::<Vec<_>>(), vec![2, 17, 24]] {
        tch::manual_seed(3);
        let model = model(2);
        let frozen = model.freeze(&layers).unwrap();
        let is_frozen =
            |name: &str| layers.contains(&name.split('.').nth(1).unwrap().parse::<usize>().unwrap());
        let expected: Vec<&String> =
            model.state().parameters().map(|entry| &entry.name).filter(|name| is_frozen(name)).collect();
        assert_eq!(frozen.iter().collect::<Vec<_>>(), expected);
        let learning: usize = model
            .state()
            .parameters()
            .filter(|entry| !is_frozen(&entry.name))
            .map(|entry| entry.tensor.numel())
            .sum();
        assert_eq!(model.summary().unwrap().gradients, learning);

        let before = snapshot(&model);
        let mut learner = learner(model, None, false);
        let _items = learner.backward(&images(2, 64), &TARGETS).unwrap();
        let _norm = learner.update().unwrap();
        for ((name, before), entry) in before.iter().zip(learner.model().state()) {
            let moved = before != &entry.tensor;
            let is_anchor = name.ends_with("anchors");
            // As in YOLOv5, running statistics of frozen layers are still updated (spec §6).
            let expected = !is_anchor && (!entry.is_parameter() || !is_frozen(name));
            assert_eq!(moved, expected, "{name} with layers {layers:?} frozen");
        }
    }
}

#[test]
fn a_transfer_reports_what_it_leaves_out() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let source = model(80);
    let Value::Dict(mut entries) = source.state().to_value(false).unwrap() else { panic!() };
    let key = |name: &str| Value::Str(name.to_owned());
    entries.retain(|(name, _)| *name != key("model.3.conv.weight") && *name != key("model.3.bn.bias"));
    let spare = entries[0].1.clone();
    entries.push((key("model.99.weight"), spare));
    let path = folder.path().join("other.pt");
    torch_checkpoint::write_pt(&path, &Value::dict([("model", Value::Dict(entries))])).unwrap();
    let file = torch_checkpoint::read(&path).unwrap();

    let target = model(3);
    let untouched = target.state().get("model.24.m.1.weight").unwrap().copy();
    let report = target.transfer(&file, false).unwrap();
    // For 3 classes, six tensors of the head have other shapes than for 80.
    assert_eq!((report.matched, report.total), (341, 349));
    assert_eq!(report.missing, ["model.3.conv.weight", "model.3.bn.bias"]);
    assert_eq!(report.extra, ["model.99.weight"]);
    assert_eq!(report.reshaped.len(), 6);
    let first = Reshaped {
        name: "model.24.m.0.weight".to_owned(),
        source: vec![255, 64, 1, 1],
        model: vec![24, 64, 1, 1],
    };
    assert_eq!(report.reshaped[0], first);
    for entry in target.state() {
        let same = source.state().get(&entry.name).is_some_and(|theirs| {
            theirs.size() == entry.tensor.size() && theirs.detach() == entry.tensor.detach()
        });
        let named = report.missing.contains(&entry.name)
            || report.reshaped.iter().any(|reshaped| reshaped.name == entry.name);
        if !named {
            assert!(same, "{} was not copied", entry.name);
        }
    }
    assert_eq!(target.state().get("model.24.m.1.weight").unwrap(), &untouched);

    let skipped = model(80).transfer(&file, true).unwrap();
    assert!(skipped.missing.contains(&"model.24.anchors".to_owned()), "{:?}", skipped.missing);
    assert_eq!(skipped.matched, 346);
}

#[test]
fn anchors_of_the_hyper_parameters_win_over_those_of_a_file() {
    let file = torch_checkpoint::WeightsFile {
        tensors: indexmap::IndexMap::new(),
        names: None,
        yaml: Some(model(3).spec().yaml.clone()),
        stride: None,
        root: Value::None,
    };
    let shape = |anchors| {
        let model = Model::from_weights(&file, None, anchors, Device::Cpu).unwrap();
        model.anchors().unwrap().size()
    };
    assert_eq!(shape(None), [3, 3, 2]);
    assert_eq!(shape(Some(4.0)), [3, 4, 2]);
}

#[test]
fn half_precision_gives_nearly_the_same_boxes() {
    let _alone = alone();
    tch::manual_seed(5);
    let model = model(2);
    let mut half = model.fuse().unwrap();
    half.to_half().unwrap();
    for entry in half.state() {
        let integer = entry.name.ends_with("num_batches_tracked");
        assert_eq!(entry.tensor.kind(), if integer { Kind::Int64 } else { Kind::Half }, "{}", entry.name);
    }
    let images = images(2, 64);
    let whole = no_grad(|| model.forward_eval(&images)).unwrap().0;
    let halved = no_grad(|| half.forward_eval(&images.to_kind(Kind::Half))).unwrap().0;
    // Half precision is too coarse for coordinates.
    assert_eq!(halved.kind(), Kind::Float);
    // Eleven bits of mantissa, over two dozen layers.
    let off = relative(&halved, &whole);
    assert!((1e-6..5e-3).contains(&off), "off by {off:e}");
}

#[test]
fn sync_bn_on_two_ranks_equals_one_rank_with_all_images() {
    on_two_ranks("sync_bn_on_two_ranks_equals_one_rank_with_all_images", |rank, group| {
        tch::manual_seed(11);
        let whole = images(4, 128);
        // Every image has the same boxes, so the loss of all images is the mean over the ranks.
        let targets = |count: usize| -> Vec<[f32; 6]> {
            (0..count)
                .flat_map(|image| TARGETS.map(|[_, c, x, y, w, h]| [image as f32, c, x, y, w, h]))
                .collect()
        };
        let first = model(2);
        let mut alone = learner(twin(&first), None, false);
        let mut together = learner(twin(&first), Some(group), true);
        let mut apart = learner(first, Some(group), false);
        let own = whole.narrow(0, 2 * rank as i64, 2);
        let _items = alone.backward(&whole, &targets(4)).unwrap();
        let _items = together.backward(&own, &targets(2)).unwrap();
        let _items = apart.backward(&own, &targets(2)).unwrap();
        for learner in [&mut alone, &mut together, &mut apart] {
            let _norm = learner.update().unwrap();
        }
        let farthest = |learner: &Learner| -> f64 {
            let pairs = alone.model().state().iter().zip(learner.model().state());
            pairs
                .filter(|(one, _)| one.tensor.is_floating_point())
                .map(|(one, other)| relative(&other.tensor.detach(), &one.tensor.detach()))
                .fold(0.0, f64::max)
        };
        let (together, apart) = (farthest(&together), farthest(&apart));
        println!("together {together:e}, apart {apart:e}");
        assert!(together < 1e-3, "with SyncBatchNorm the ranks are off by {together:e}");
        assert!(apart > 10.0 * together, "without it they would be off by only {apart:e}");
    });
}
