//! Suppression inside the graph: from the decoded outputs of the network to its detections, with the rules of
//! `yolo predict` and of YOLOv5's detect.py (spec §9). A box has its most probable class only. Boxes of different classes
//! are moved apart as there, so that overlaps round alike.

use yolo_plan::run::OnnxNms;

use super::graph::{FLOAT, Graph, INT64, Setting, Value};
use crate::detection::{CLASS_OFFSET, largest_float_up_to};

/// The outputs of the graph: (B, `topk_all`, 6) and (B).
pub(super) const OUTPUTS: [&str; 2] = ["detections", "num_detections"];

/// Adds the operations after `rows` (B, N, 5 + nc), and names their outputs. `size` is B and N, if they are known.
pub(super) fn suppress(
    graph: &mut Graph,
    rows: &Value,
    nc: usize,
    size: Option<[i64; 2]>,
    settings: &OnnxNms,
) {
    let most = settings.topk_all as i64;
    let corners = corners(graph, rows);
    let objectness = graph.slice(rows, 2, [4, 5, 1]);
    let classes = graph.slice(rows, 2, [5, 5 + nc as i64, 1]);
    let confidences = graph.add("Mul", &[&classes, &objectness], Vec::new());
    let axis = |axis| vec![("axis", Setting::Int(axis)), ("keepdims", Setting::Int(1))];
    let along = |axis: i64, keep| vec![("axes", Setting::Ints(vec![axis])), ("keepdims", Setting::Int(keep))];
    // (B, N, 1) each.
    let confidence = graph.add("ReduceMax", &[&confidences], along(2, 1));
    let class = graph.add("ArgMax", &[&confidences], axis(2));
    let class_number = graph.add("Cast", &[&class], vec![("to", Setting::Int(FLOAT))]);

    let apart = if settings.agnostic {
        corners.clone()
    } else {
        let pixels = graph.floats(&[1], &[CLASS_OFFSET]);
        let offset = graph.add("Mul", &[&class_number, &pixels], Vec::new());
        graph.add("Add", &[&corners, &offset], Vec::new())
    };
    // Without a limit per class, all boxes are of one class here, which needs a fraction of the comparisons.
    let limited = !settings.agnostic && nc > 1 && settings.topk_per_class < settings.topk_all;
    let (candidates, limit) = if limited {
        let numbers = graph.ints(&(0..nc as i64).collect::<Vec<_>>());
        let is_best = graph.add("Equal", &[&class, &numbers], Vec::new());
        let zero = graph.floats(&[1], &[0.0]);
        (graph.add("Where", &[&is_best, &confidence, &zero], Vec::new()), settings.topk_per_class)
    } else {
        let per_class = if settings.agnostic { settings.topk_all } else { settings.topk_per_class };
        (confidence.clone(), settings.topk_all.min(per_class))
    };
    let scores = graph.transpose(&candidates, &[0, 2, 1]);
    let limit = graph.ints(&[limit as i64]);
    // The operation compares floats, and YOLOv5 doubles.
    let overlap = graph.floats(&[1], &[largest_float_up_to(settings.iou_thres)]);
    let least = graph.floats(&[1], &[settings.conf_thres as f32]);
    // Rows of image, class and box.
    let chosen = graph.add("NonMaxSuppression", &[&apart, &scores, &limit, &overlap, &least], Vec::new());

    // The confidences of the boxes that were chosen, in the places of all boxes; zeros elsewhere.
    let columns = graph.ints(&[0, 2]);
    let places = graph.add("Gather", &[&chosen, &columns], vec![("axis", Setting::Int(1))]);
    let flat = graph.reshape(&confidence, &[0, -1]);
    let found = graph.add("GatherND", &[&flat, &places], Vec::new());
    let shape = match size {
        Some(size) => graph.ints(&size),
        None => graph.add("Shape", &[&flat], Vec::new()),
    };
    let zeros = graph.add("ConstantOfShape", &[&shape], Vec::new());
    let mut kept = graph.add("ScatterND", &[&zeros, &places, &found], Vec::new());
    let mut rows = graph.concat(&[&corners, &confidence, &class_number], 2);
    // A small image may have fewer boxes than rows are asked for.
    let missing = size.map_or(most, |[_, boxes]| (most - boxes).max(0));
    if missing > 0 {
        let mut padded = |x: &Value, pads: &[i64]| {
            let pads = graph.ints(pads);
            graph.add("Pad", &[x, &pads], Vec::new())
        };
        kept = padded(&kept, &[0, 0, 0, missing]);
        rows = padded(&rows, &[0, 0, 0, 0, missing, 0]);
    }
    let count = graph.ints(&[most]);
    let sorted = ["axis", "largest", "sorted"].map(|name| (name, Setting::Int(1)));
    let top = graph.add_several("TopK", &[&kept, &count], sorted.into(), 2);
    let (confidence, place) = (&top[0], graph.reshape(&top[1], &[0, -1, 1]));
    let rows = graph.add("GatherND", &[&rows, &place], vec![("batch_dims", Setting::Int(1))]);
    let zero = graph.floats(&[1], &[0.0]);
    let is_found = graph.add("Greater", &[confidence, &zero], Vec::new());
    let column = graph.reshape(&is_found, &[0, -1, 1]);
    let detections = graph.add("Where", &[&column, &rows, &zero], Vec::new());
    let counted = graph.add("Cast", &[&is_found], vec![("to", Setting::Int(FLOAT))]);
    // The sum: ReduceSum takes its axes elsewhere in younger opsets.
    let counted = graph.add("ReduceL1", &[&counted], along(1, 0));
    let number = graph.add("Cast", &[&counted], vec![("to", Setting::Int(INT64))]);
    graph.rename(&detections, OUTPUTS[0]);
    graph.rename(&number, OUTPUTS[1]);
}

/// Left, top, right and bottom of all boxes: (B, N, 4).
fn corners(graph: &mut Graph, rows: &Value) -> Value {
    let center = graph.slice(rows, 2, [0, 2, 1]);
    let size = graph.slice(rows, 2, [2, 4, 1]);
    let half = graph.floats(&[1], &[0.5]);
    let half = graph.add("Mul", &[&size, &half], Vec::new());
    let least = graph.add("Sub", &[&center, &half], Vec::new());
    let most = graph.add("Add", &[&center, &half], Vec::new());
    graph.concat(&[&least, &most], 2)
}
