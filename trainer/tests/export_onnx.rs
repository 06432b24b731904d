//! ONNX files of networks with random weights, run by a runtime that shares no code with the trainer: outputs must be
//! those of the network.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/networks.rs"]
mod networks;

use networks::{ACTIVATIONS, images, names, network, with_every_module};
use tch::{Tensor, no_grad};
use tract_onnx::prelude::*;
use yolo_plan::model::builtin;
use yolo_plan::run::{OnnxNms, OnnxSettings};
use yolo_trainer::detection::{Detection, NmsSettings, suppress};
use yolo_trainer::model::Model;
use yolo_trainer::tasks::export::onnx::encode;

fn settings(dynamic: bool) -> OnnxSettings {
    OnnxSettings { opset: 17, dynamic, nms: None }
}

/// The first output of a file for images in single precision.
fn run(file: &[u8], images: &Tensor) -> Tensor {
    let output = &outputs(file, images)[0];
    let output = output.to_plain_array_view::<f32>().unwrap();
    let shape: Vec<i64> = output.shape().iter().map(|&side| side as i64).collect();
    Tensor::from_slice(&output.iter().copied().collect::<Vec<f32>>()).reshape(shape)
}

/// All outputs of a file for images in single precision.
fn outputs(file: &[u8], images: &Tensor) -> TVec<TValue> {
    let shape: Vec<usize> = images.size().iter().map(|&side| side as usize).collect();
    let values = Vec::<f32>::try_from(images.reshape([-1])).unwrap();
    let input = tract_ndarray::ArrayD::from_shape_vec(shape.clone(), values).unwrap();
    let model = tract_onnx::onnx().model_for_read(&mut &*file).unwrap();
    let model = model.with_input_fact(0, f32::fact(&shape).into()).unwrap();
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    model.run(tvec!(input.into_tensor().into())).unwrap()
}

/// Fails unless boxes and probabilities are those of the network, to 1e-4 of the largest.
#[track_caller]
fn assert_close(network: &Model, images: &Tensor, written: &Tensor, what: &str) {
    let (expected, _) = no_grad(|| network.forward_eval(images)).unwrap();
    assert_eq!(expected.size(), written.size(), "{what}");
    for (first, count) in [(0, 4), (4, expected.size()[2] - 4)] {
        let part = |tensor: &Tensor| tensor.narrow(2, first, count);
        let apart = (part(&expected) - part(written)).abs().max().double_value(&[]);
        let scale = part(&expected).abs().max().double_value(&[]);
        assert!(apart <= 1e-4 * scale, "{what}: {apart} of {scale}");
    }
}

#[test]
fn every_built_in_model_computes_what_the_network_computes() {
    for name in builtin::names() {
        let model = network(&name);
        let fused = model.fuse().unwrap();
        let images = images([1, 3, 64, 128]);
        for (network, what) in [(&fused, "fused"), (&model, "not fused")] {
            let file = encode(network, &names(), &settings(false), [1, 64, 128]).unwrap();
            assert_close(&model, &images, &run(&file, &images), &format!("{name}, {what}"));
        }
    }
}

#[test]
fn a_dynamic_file_takes_images_of_any_size() {
    let fused = network("yolov5n").fuse().unwrap();
    let file = encode(&fused, &names(), &settings(true), [1, 640, 640]).unwrap();
    for shape in [[1, 3, 64, 64], [2, 3, 96, 32]] {
        let images = images(shape);
        assert_close(&fused, &images, &run(&file, &images), &format!("{shape:?}"));
    }
}

#[test]
fn every_module_computes_what_the_network_computes() {
    for activation in ACTIVATIONS {
        let model = with_every_module(activation);
        let images = images([2, 3, 64, 128]);
        for network in [model.fuse().unwrap(), model] {
            let file = encode(&network, &names(), &settings(false), [2, 64, 128]).unwrap();
            assert_close(&network, &images, &run(&file, &images), activation);
        }
    }
}

#[test]
fn a_file_of_one_size_has_no_arithmetic_of_shapes() {
    let fused = network("yolov5n").fuse().unwrap();
    let bytes = encode(&fused, &names(), &settings(false), [1, 64, 64]).unwrap();
    let file = onnx_rs::parse(&bytes).unwrap();
    let graph = file.graph.as_ref().unwrap();
    let mut operations: Vec<&str> = graph.node.iter().map(|node| node.op_type.as_str()).collect();
    operations.sort_unstable();
    operations.dedup();
    assert_eq!(
        operations,
        ["Add", "Concat", "Conv", "MaxPool", "Mul", "Reshape", "Resize", "Sigmoid", "Slice", "Transpose"]
    );
    let metadata: Vec<(&str, &str)> =
        file.metadata_props.iter().map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(
        metadata,
        [("stride", "32"), ("names", "{0: 'cat', 1: 'dog', 2: 'owl'}"), ("model", "custom")]
    );
    assert_eq!((graph.input[0].name, graph.output[0].name), ("images", "output0"));
}

/// The detections of our own suppression among the rows (B, N, 8) of a file without suppression, for each image.
fn expected(rows: &Tensor, nms: &OnnxNms) -> Vec<Vec<Detection>> {
    let settings = NmsSettings {
        conf_thres: nms.conf_thres as f32,
        iou_thres: nms.iou_thres,
        multi_label: false,
        agnostic: nms.agnostic,
        classes: None,
        max_det: usize::MAX,
    };
    let of_image = |index: i64| {
        let rows = Vec::<f32>::try_from(rows.get(index).contiguous().reshape([-1])).unwrap();
        let mut per_class = [0; 3];
        let found = suppress(&rows, 3, &[], &settings).into_iter().filter(|one| {
            per_class[one.class] += 1;
            nms.agnostic || per_class[one.class] <= nms.topk_per_class
        });
        found.take(nms.topk_all).collect()
    };
    (0..rows.size()[0]).map(of_image).collect()
}

/// Fails unless a file with suppression returns these detections.
#[track_caller]
fn assert_detections(file: &[u8], images: &Tensor, nms: &OnnxNms, expected: &[Vec<Detection>], what: &str) {
    let outputs = outputs(file, images);
    let rows = outputs[0].to_plain_array_view::<f32>().unwrap();
    // The runtime of these tests has a type of its own for numbers that can be dimensions.
    let counts = outputs[1].cast_to::<i64>().unwrap();
    let counts = counts.to_plain_array_view::<i64>().unwrap();
    assert_eq!(
        (rows.shape(), counts.shape()),
        (&[expected.len(), nms.topk_all, 6][..], &[expected.len()][..])
    );
    for (image, expected) in expected.iter().enumerate() {
        assert_eq!(counts[[image]] as usize, expected.len(), "{what}");
        for row in 0..nms.topk_all {
            let number = |column| rows[[image, row, column]];
            let Some(one) = expected.get(row) else {
                assert!((0..6).all(|column| number(column) == 0.0), "{what}: row {row} is not empty");
                continue;
            };
            assert_eq!(number(5), one.class as f32, "{what}: row {row}");
            assert_eq!(number(4), one.confidence, "{what}: row {row}");
            assert_eq!([0, 1, 2, 3].map(number), one.corners, "{what}: row {row}");
        }
    }
}

/// Suppression in the graph keeps the boxes of our own, in its order. Networks with random weights find hundreds of
/// objects everywhere, so boxes overlap and limits are reached.
#[test]
fn suppression_in_the_graph_keeps_the_same_boxes() {
    let network = network("yolov5n").fuse().unwrap();
    let default =
        OnnxNms { agnostic: false, topk_per_class: 100, topk_all: 100, iou_thres: 0.45, conf_thres: 0.0 };
    let cases = [
        ("default", default),
        ("agnostic", OnnxNms { agnostic: true, iou_thres: 0.05, ..default }),
        ("few", OnnxNms { topk_all: 7, ..default }),
        ("few per class", OnnxNms { topk_per_class: 3, ..default }),
        ("more rows than boxes", OnnxNms { topk_all: 1000, topk_per_class: 1000, ..default }),
        ("nothing", OnnxNms { conf_thres: 1.0, ..default }),
        ("low overlap", OnnxNms { iou_thres: 0.05, ..default }),
    ];
    let images = images([2, 3, 64, 96]);
    let rows = run(&encode(&network, &names(), &settings(false), [2, 64, 96]).unwrap(), &images);
    let mut counts = Vec::new();
    for (what, nms) in cases {
        let expected = expected(&rows, &nms);
        for dynamic in [false, true] {
            let settings = OnnxSettings { nms: Some(nms), ..settings(dynamic) };
            let file = encode(&network, &names(), &settings, [2, 64, 96]).unwrap();
            assert_detections(&file, &images, &nms, &expected, &format!("{what}, dynamic: {dynamic}"));
        }
        counts.push(expected[0].len());
    }
    // Every limit was reached, and the classes matter: a box that one of another class suppresses no longer
    // suppresses others, so without them there may be more boxes or fewer.
    assert_eq!([counts[0], counts[2], counts[3], counts[5]], [100, 7, 9, 0]);
    assert!(counts[4] > counts[0] && counts[6] < counts[0] && counts[1] != counts[6], "{counts:?}");
}

/// The runtime of these tests has no half precision, so the file is only read.
#[test]
fn half_precision_is_in_the_tensors() {
    let half = network("yolov5n").fused_half().unwrap();
    let bytes = encode(&half, &names(), &settings(false), [1, 64, 64]).unwrap();
    let single =
        encode(&network("yolov5n").fuse().unwrap(), &names(), &settings(false), [1, 64, 64]).unwrap();
    assert!(bytes.len() * 10 < single.len() * 6, "{} of {} bytes", bytes.len(), single.len());
    let graph = onnx_rs::parse(&bytes).unwrap().graph.unwrap();
    assert_eq!(graph.input[0].tensor_elem_type(), Some(onnx_rs::ast::DataType::Float16));
    assert_eq!(graph.output[0].tensor_elem_type(), Some(onnx_rs::ast::DataType::Float));
}
